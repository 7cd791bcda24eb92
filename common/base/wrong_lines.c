#include "base/wrong_lines.h"

#include <errno.h>
#include <string.h>

/* Keeps the rows in order; the last one goes when there is no room. */
static void
insert(struct wrong_lines *w, uint32_t line, const struct buf *text)
{
	size_t at = w->n;

	while (at > 0 && w->rows[at - 1].line > line)
		at--;
	if (w->n == WRONG_LINES_MAX) {
		buf_done(&w->rows[--w->n].text);
		w->more++;
	}
	memmove(
	    &w->rows[at + 1], &w->rows[at], (w->n - at) * sizeof(w->rows[at]));
	w->rows[at] = (struct wrong_line){ line, *text };
	w->n++;
}

int
wrong_lines_go_on(struct wrong_lines *w, uint32_t line, int r, struct buf *text)
{
	if (w == NULL || r != -EINVAL)
		return r;
	if (w->n == WRONG_LINES_MAX && w->rows[w->n - 1].line <= line) {
		w->more++;
		buf_reset(text);
		return 0;
	}
	insert(w, line, text);
	*text = (struct buf){ 0 };
	return 0;
}

static int
add_rows(const struct wrong_lines *w, struct buf *out)
{
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < w->n; i++)
		r = buf_printf(
		    out, "%s%s", i > 0 ? "\n" : "", buf_str(&w->rows[i].text));
	if (r == 0 && w->more > 0)
		r = buf_printf(out, "\n%u more wrong line%s", w->more,
		    w->more == 1 ? "" : "s");
	return r;
}

int
wrong_lines_tell(struct wrong_lines *w, int r, struct buf *text)
{
	struct buf last;
	int added;

	if (w == NULL || w->n == 0)
		return r;
	last = *text;
	*text = (struct buf){ 0 };
	added = add_rows(w, text);
	if (added == 0 && last.len > 0)
		added = buf_printf(text, "\n%s", buf_str(&last));
	buf_done(&last);
	wrong_lines_done(w);
	if (added < 0)
		return added;
	return r == 0 ? -EINVAL : r;
}

void
wrong_lines_done(struct wrong_lines *w)
{
	while (w->n > 0)
		buf_done(&w->rows[--w->n].text);
	w->more = 0;
}
