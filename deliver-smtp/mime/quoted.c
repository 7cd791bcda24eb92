#include "deliver-smtp/mime/mime.h"

#define LINE_MAX 75 /* and the `=` of a soft line break */

static char *
put_atom(struct quoted *q, unsigned char c, bool plain, char *out)
{
	static const char hex[] = "0123456789ABCDEF";
	const size_t len = plain ? 1 : 3;

	if (q->column + len > LINE_MAX) {
		*out++ = '=';
		*out++ = '\n';
		q->column = 0;
	}
	if (plain && !(q->column == 0 && c == '-')) {
		*out++ = (char)c;
		q->column++;
		return out;
	}
	*out++ = '=';
	*out++ = hex[c >> 4];
	*out++ = hex[c & 15];
	q->column += 3;
	return out;
}

/* The octets that waited, now that a line end follows them, or does not. */
static char *
settle(struct quoted *q, bool line_end, char *out)
{
	if (q->blank != 0)
		out = put_atom(q, (unsigned char)q->blank, !line_end, out);
	q->blank = 0;
	if (q->cr && !line_end)
		out = put_atom(q, '\r', false, out);
	q->cr = false;
	return out;
}

size_t
quoted_put(struct quoted *q, unsigned char c, char out[QUOTED_MAX])
{
	char *p = out;

	if (c == '\n') {
		p = settle(q, true, p);
		*p++ = '\n';
		q->column = 0;
		return (size_t)(p - out);
	}
	if (c == '\r' && !q->cr) {
		q->cr = true;
		return 0;
	}
	p = settle(q, false, p);
	if (c == '\r')
		q->cr = true;
	else if (c == ' ' || c == '\t')
		q->blank = (char)c;
	else
		p = put_atom(q, c, c > ' ' && c < 0x7f && c != '=', p);
	return (size_t)(p - out);
}

size_t
quoted_end(struct quoted *q, char out[QUOTED_MAX])
{
	/* A CR that waits ends no line, and follows the blank. */
	return (size_t)(settle(q, !q->cr, out) - out);
}
