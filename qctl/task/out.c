#include "qctl/task/out.h"

#include <string.h>

#include "base/date.h"
#include "base/num.h"
#include "base/text.h"

void
out_clean(struct buf *o, const char *s, size_t max)
{
	(void)text_clean(o, s, strlen(s), max);
}

void
out_time(struct buf *o, usec_t wall, usec_t now_wall)
{
	const usec_t away = wall - now_wall;
	char date[DATE_SIZE];

	date_format(wall, date);
	buf_printf(o, "%s (%s", date, away > 0 ? "in " : "");
	num_add_span(o, away > 0 ? away : -away);
	buf_add_str(o, away > 0 ? ")" : " ago)");
}

/* Cleaned text has no control characters: two are left to be escaped. */
void
out_json(struct buf *o, const char *s, size_t len)
{
	struct buf clean = { 0 };

	if (text_clean(&clean, s, len, SIZE_MAX) < 0)
		o->error = clean.error;
	buf_add_quoted(o, buf_str(&clean), clean.len);
	buf_done(&clean);
}

void
out_member(struct buf *o, const char *name, const char *value)
{
	if (value == NULL)
		return;
	buf_printf(o, ", \"%s\": ", name);
	out_json(o, value, strlen(value));
}

int
out_send(struct buf *o, struct worker *w)
{
	const int r =
	    o->error < 0 ? o->error : worker_text(w, buf_str(o), o->len);

	buf_reset(o);
	return r;
}
