#include "qctl/task/out.h"

#include <string.h>

#include "base/date.h"
#include "base/num.h"
#include "base/text.h"

static void
note_error(struct out *o, int r)
{
	if (r < 0 && o->error == 0)
		o->error = r;
}

void
out_printf(struct out *o, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (o->error == 0)
		note_error(o, buf_vprintf(&o->text, fmt, ap));
	va_end(ap);
}

void
out_str(struct out *o, const char *s)
{
	if (o->error == 0)
		note_error(o, buf_add_str(&o->text, s));
}

void
out_clean(struct out *o, const char *s, size_t max)
{
	out_clean_len(o, s, strlen(s), max);
}

void
out_clean_len(struct out *o, const char *s, size_t len, size_t max)
{
	if (o->error == 0)
		note_error(o, text_clean(&o->text, s, len, max));
}

void
out_time(struct out *o, usec_t wall, usec_t now_wall)
{
	const usec_t away = wall - now_wall;
	char date[DATE_SIZE];

	date_format(wall, date);
	out_printf(o, "%s (%s", date, away > 0 ? "in " : "");
	out_span(o, away > 0 ? away : -away);
	out_str(o, away > 0 ? ")" : " ago)");
}

void
out_span(struct out *o, usec_t span)
{
	if (o->error == 0)
		note_error(o, num_add_span(&o->text, span));
}

/* Cleaned text has no control characters: two are left to be escaped. */
void
out_json(struct out *o, const char *s)
{
	struct buf clean = { 0 };

	note_error(o, text_clean(&clean, s, strlen(s), SIZE_MAX));
	if (o->error == 0)
		note_error(
		    o, buf_add_quoted(&o->text, buf_str(&clean), clean.len));
	buf_done(&clean);
}

void
out_member(struct out *o, const char *name, const char *value)
{
	if (value == NULL)
		return;
	out_printf(o, ", \"%s\": ", name);
	out_json(o, value);
}

void
out_take_error(struct out *o, const struct out *piece)
{
	note_error(o, piece->error);
}

int
out_send(struct out *o, struct worker *w)
{
	const int r = o->error < 0
	    ? o->error
	    : worker_text(w, buf_str(&o->text), o->text.len);

	out_reset(o);
	return r;
}

void
out_reset(struct out *o)
{
	buf_reset(&o->text);
	o->error = 0;
}

void
out_done(struct out *o)
{
	buf_done(&o->text);
	o->error = 0;
}
