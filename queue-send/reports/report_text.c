#include "queue-send/reports/report_text.h"

#include "base/io.h"

/* ---- the text ---- */

/* Text that is ready goes into the file. */
static int
flush(struct report_work *w)
{
	int r = accept_content(&w->accept, w->out.data, w->out.len);

	buf_reset(&w->out);
	return r;
}

static int
add_rcpt(void *arg, const struct report_rcpt *to)
{
	struct report_work *w = arg;
	int r = w->add(&w->facts, to, &w->out);

	return r < 0 ? r : flush(w);
}

/* Each recipient once, by `add`. */
static int
add_all(struct report_work *w,
    int (*add)(
	struct report_facts *r, const struct report_rcpt *to, struct buf *out))
{
	w->add = add;
	if (w->only != NULL)
		return add_rcpt(w, w->only);
	return report_rcpts_tell(&w->rcpts, add_rcpt, w);
}

/* A message that has not failed is not returned (RFC 3461 section 4.3). Of
 * several reports the last one that tells of a failure returns it. */
static bool
is_returned(const struct report_work *w, enum report_kind kind)
{
	return (kind == REPORT_FAILURE || kind == REPORT_DOUBLE) &&
	    w->failures_left == 0 && w->dsn.ret != DSN_RET_HDRS &&
	    w->file.content_len <= w->t->size_limit;
}

int
report_read_content(struct report_work *w, enum report_kind kind)
{
	const uint64_t len = w->file.content_len;
	const bool whole = is_returned(w, kind);
	const size_t want = (size_t)(whole ? len
		: len < REPORT_HEADER_MAX  ? len
					   : REPORT_HEADER_MAX);
	int64_t n;
	int r;

	buf_reset(&w->content);
	r = buf_reserve(&w->content, want);
	if (r < 0)
		return r;
	n = io_pread_all(
	    w->fd, w->content.data, want, (int64_t)w->file.content_off);
	if (n < 0)
		return (int)n;
	w->content.len = (size_t)n;
	w->facts.whole = whole;
	w->facts.content = w->content.data;
	w->facts.content_len = w->content.len;
	return 0;
}

int
report_add_text(struct report_work *w)
{
	int r = report_begin(&w->facts, &w->out);

	if (r == 0)
		r = flush(w);
	if (r == 0)
		r = add_all(w, report_say);
	if (r == 0)
		r = report_middle(&w->facts, &w->out);
	if (r == 0)
		r = add_all(w, report_state);
	if (r == 0)
		r = report_end(&w->facts, &w->out);
	return r < 0 ? r : flush(w);
}

void
report_set_facts(struct report_work *w, enum report_kind kind)
{
	struct report_task *t = w->t;

	w->facts.kind = kind;
	w->facts.mixed =
	    kind == REPORT_FAILURE && w->rcpts.done > 0 && w->only == NULL;
	w->facts.damaged = t->corrupt;
	w->facts.envid = w->dsn.envid[0] == '\0' ? NULL : w->dsn.envid;
	w->facts.host = t->host;
	w->facts.sender = w->sender;
	w->facts.now_wall = t->now_wall;
	w->facts.arrival_wall = w->file.arrival_wall;
	w->facts.until_wall = t->until_wall;
}

/* ---- a report of bounded size ---- */

static int
measure(void *arg, const struct report_rcpt *to)
{
	struct report_work *w = arg;
	int r = report_say(&w->facts, to, &w->out);

	if (r == 0)
		r = report_state(&w->facts, to, &w->out);
	w->size += w->out.len;
	buf_reset(&w->out);
	if (r < 0)
		return r;
	if (w->size > w->t->rcpts_limit && w->fit > 0)
		return 1;
	w->fit++;
	w->fit_done += to->action >= REPORT_DELIVERED;
	w->fit_reasons = w->rcpts.line;
	return 0;
}

int
report_take_part(struct report_work *w, enum report_kind kind)
{
	int r;

	report_set_facts(w, kind);
	w->facts.said = w->facts.more = 0;
	w->fit = w->fit_done = w->failures_left = 0;
	w->size = 0;
	r = report_rcpts_tell(&w->rcpts, measure, w);
	if (r == 1) {
		w->facts.more = w->rcpts.count - w->fit;
		w->failures_left =
		    w->facts.more - (w->rcpts.done - w->fit_done);
		w->rcpts.most = w->rcpts.count = w->fit;
		w->rcpts.done = w->fit_done;
	}
	return r < 0 ? r : 0;
}
