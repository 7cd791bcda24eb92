#include "smtp/smtp.h"

#include <string.h>

/* The length that a first octet promises; 1 for an octet that is not UTF-8. */
static size_t
utf8_promise(unsigned char c)
{
	return c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf8 ? 4 : 1;
}

static char *
put_line_end(struct smtp_encode *e, char *out)
{
	e->column = 0;
	memcpy(out, "\r\n", 2);
	return out + 2;
}

/* One octet of a line. */
static char *
put_octet(struct smtp_encode *e, unsigned char c, char *out)
{
	if (e->column + utf8_promise(c) > SMTP_LINE_MAX) {
		out = put_line_end(e, out);
		*out++ = ' ';
		e->column = 1;
	}
	if (e->column == 0 && c == '.' && !e->chunk)
		*out++ = '.';
	*out++ = (char)c;
	e->column++;
	return out;
}

/* A CR that was kept back, now that c follows it. */
static char *
settle_cr(struct smtp_encode *e, unsigned char c, char *out)
{
	if (!e->cr)
		return out;
	e->cr = false;
	return c == '\n' ? out : put_octet(e, ' ', out);
}

/* How many octets from p on are plain: no line ends, no dot to be doubled, and
 * the line has room for them whatever they are. */
static size_t
plain_run(const struct smtp_encode *e, const char *p, size_t len)
{
	size_t room = SMTP_LINE_MAX - 3, i;

	if (e->cr || e->column == 0 || e->column >= room)
		return 0;
	room -= e->column;
	if (len > room)
		len = room;
	for (i = 0; i < len && p[i] != '\n' && p[i] != '\r'; i++)
		;
	return i;
}

size_t
smtp_encode_feed(struct smtp_encode *e, const char *data, size_t len, char *out)
{
	char *const begin = out;
	size_t i = 0, run;
	unsigned char c;

	while (i < len) {
		run = plain_run(e, data + i, len - i);
		if (run > 0) {
			memcpy(out, data + i, run);
			out += run;
			i += run;
			e->column += run;
			continue;
		}
		c = (unsigned char)data[i++];
		out = settle_cr(e, c, out);
		if (c == '\r')
			e->cr = true;
		else if (c == '\n')
			out = put_line_end(e, out);
		else
			out = put_octet(e, c, out);
	}
	return (size_t)(out - begin);
}

size_t
smtp_encode_end(struct smtp_encode *e, char *out)
{
	char *const begin = out;

	out = settle_cr(e, '\0', out);
	if (e->column > 0)
		out = put_line_end(e, out);
	if (e->chunk)
		return (size_t)(out - begin);
	memcpy(out, ".\r\n", 3);
	return (size_t)(out + 3 - begin);
}
