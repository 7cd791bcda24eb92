#include "smtp/smtp.h"

#include <string.h>

enum state {
	AT_LINE, /* the next octet begins a line */
	IN_TEXT,
	AT_CR,     /* a CR is kept back */
	AT_DOT,    /* a dot that began a line was left out */
	AT_DOT_CR, /* and a CR after it is kept back */
};

/* A bare LF; whether it ends the line is the caller's rule. */
static char *
take_bare_lf(struct smtp_decode *d, char *out)
{
	*out++ = '\n';
	d->state = d->bare_lf ? AT_LINE : IN_TEXT;
	return out;
}

/* An octet of a line that is no dot at its beginning. */
static char *
take_text(struct smtp_decode *d, char c, char *out)
{
	if (c == '\n')
		return take_bare_lf(d, out);
	d->state = c == '\r' ? AT_CR : IN_TEXT;
	if (c != '\r')
		*out++ = c;
	return out;
}

/* The octet after a CR. */
static char *
take_after_cr(struct smtp_decode *d, char c, char *out)
{
	if (c == '\n') {
		d->state = AT_LINE;
		*out++ = '\n';
		return out;
	}
	*out++ = '\r';
	return take_text(d, c, out);
}

static char *
take_octet(struct smtp_decode *d, char c, char *out)
{
	switch (d->state) {
	case AT_LINE:
		if (c != '.')
			return take_text(d, c, out);
		d->state = AT_DOT;
		return out;
	case AT_CR:
		return take_after_cr(d, c, out);
	case AT_DOT:
		d->end = c == '\n' && d->bare_lf;
		if (d->end)
			return out;
		out = take_text(d, c, out);
		if (d->state == AT_CR)
			d->state = AT_DOT_CR;
		return out;
	case AT_DOT_CR:
		d->end = c == '\n';
		return d->end ? out : take_after_cr(d, c, out);
	default:
		return take_text(d, c, out);
	}
}

/* How many octets from p on are text without a line end. */
static size_t
plain_run(const struct smtp_decode *d, const char *p, size_t len)
{
	size_t i;

	if (d->state != IN_TEXT)
		return 0;
	for (i = 0; i < len && p[i] != '\n' && p[i] != '\r'; i++)
		;
	return i;
}

size_t
smtp_decode_feed(struct smtp_decode *d, const char *data, size_t len, char *out,
    size_t room, size_t *ret_used)
{
	char *const begin = out, *const end = out + room;
	size_t used = 0;

	while (used < len && end - out >= 2 && !d->end) {
		size_t left = len - used, space = (size_t)(end - out);
		size_t run =
		    plain_run(d, data + used, left < space ? left : space);

		if (run > 0) {
			memcpy(out, data + used, run);
			out += run;
			used += run;
			continue;
		}
		out = take_octet(d, data[used++], out);
	}
	*ret_used = used;
	return (size_t)(out - begin);
}
