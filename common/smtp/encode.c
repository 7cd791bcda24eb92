#include "smtp/smtp.h"

#include <string.h>

#include "base/text.h"

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

/* One octet of a line of the body. */
static char *
body_octet(struct smtp_encode *e, unsigned char c, char *out)
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

/* ---- lines of the header, which are held until their end is known ---- */

static void
hold(struct smtp_encode *e, char c)
{
	if (e->blanks == e->held && text_is_blank(c))
		e->blanks++;
	e->hold[e->held++] = c;
}

/* The colon behind the name of the field (RFC 5322 section 2.2, with the
 * blanks of section 4.5) that the held line begins; 0: the line begins none. */
static size_t
held_colon(const struct smtp_encode *e)
{
	size_t name = 0, i;

	while (name < e->held && e->hold[name] > ' ' && e->hold[name] < 0x7f &&
	    e->hold[name] != ':')
		name++;
	for (i = name; i < e->held && text_is_blank(e->hold[i]);)
		i++;
	return i < e->held && e->hold[i] == ':' && name > 0 ? i : 0;
}

/* The held line is a line of the header: a field begins or goes on. */
static bool
held_is_header(const struct smtp_encode *e)
{
	if (e->folded || (e->fields && text_is_blank(e->hold[0])))
		return true;
	return held_colon(e) > 0;
}

/* Put the first n octets of the held line. */
static char *
held_put(struct smtp_encode *e, size_t n, char *out)
{
	if (e->folded)
		out = put_line_end(e, out);
	if (e->hold[0] == '.' && !e->chunk)
		*out++ = '.';
	memcpy(out, e->hold, n);
	e->held -= n;
	memmove(e->hold, e->hold + n, e->held);
	e->blanks = 0;
	while (e->blanks < e->held && text_is_blank(e->hold[e->blanks]))
		e->blanks++;
	return out + n;
}

/* The held line is no line of the header: the body has begun. */
static char *
body_begin(struct smtp_encode *e, char *out)
{
	size_t i;

	e->body = true;
	for (i = 0; i < e->held; i++)
		out = body_octet(e, (unsigned char)e->hold[i], out);
	e->held = 0;
	return out;
}

/* The blank that the rest of the held line, and c behind it, goes to the next
 * line with; 0: there is none. Behind it is a word, so that no line is made of
 * blanks alone, unless the only blanks are behind the last word. A blank behind
 * a backslash may be half of a quoted pair. */
static size_t
fold_place(const struct smtp_encode *e, char c)
{
	const size_t first = e->blanks > 0 ? e->blanks : held_colon(e);
	size_t i = e->held, last = 0;
	bool word = false; /* behind i */

	if (text_is_blank(c))
		last = e->hold[e->held - 1] == '\\' ? 0 : e->held;
	else
		word = true;
	while (--i > first) {
		const bool blank =
		    text_is_blank(e->hold[i]) && e->hold[i - 1] != '\\';

		if (blank && word)
			return i;
		if (blank && last == 0)
			last = i;
		word = !text_is_blank(e->hold[i]);
	}
	return last;
}

/* The held line has no room for c. Afterwards, it has, or the body has begun,
 * or the next call makes more room. */
static char *
held_fold(struct smtp_encode *e, unsigned char c, char *out)
{
	size_t at;

	if (!held_is_header(e))
		return body_begin(e, out);
	/* A relay that cuts blanks off at the end of lines would end the header
	 * at a line of blanks. */
	if (e->blanks == e->held) {
		e->blanks = --e->held;
		return out;
	}
	at = fold_place(e, (char)c);
	out = held_put(e, at > 0 ? at : e->held, out);
	if (at == 0)
		hold(e, ' ');
	e->folded = true;
	return out;
}

static char *
header_octet(struct smtp_encode *e, unsigned char c, char *out)
{
	while (!e->body && e->held + utf8_promise(c) > SMTP_LINE_MAX)
		out = held_fold(e, c, out);
	if (e->body)
		return body_octet(e, c, out);
	hold(e, (char)c);
	return out;
}

static char *
header_line_end(struct smtp_encode *e, char *out)
{
	if (e->held == 0)
		e->body = true;
	else if (!held_is_header(e))
		out = body_begin(e, out);
	else if (e->folded && e->blanks == e->held)
		e->held = e->blanks = 0;
	else
		out = held_put(e, e->held, out);
	e->folded = false;
	e->fields = true;
	return put_line_end(e, out);
}

/* ---- all lines ---- */

static char *
put_octet(struct smtp_encode *e, unsigned char c, char *out)
{
	return e->body ? body_octet(e, c, out) : header_octet(e, c, out);
}

static char *
end_line(struct smtp_encode *e, char *out)
{
	return e->body ? put_line_end(e, out) : header_line_end(e, out);
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

/* How many octets of a body from p on are plain: no line ends, no dot to be
 * doubled, and the line has room for them whatever they are. */
static size_t
plain_run(const struct smtp_encode *e, const char *p, size_t len)
{
	size_t room = SMTP_LINE_MAX - 3, i;

	if (!e->body || e->cr || e->column == 0 || e->column >= room)
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
			out = end_line(e, out);
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
	if (e->column > 0 || e->held > 0)
		out = end_line(e, out);
	if (e->chunk)
		return (size_t)(out - begin);
	memcpy(out, ".\r\n", 3);
	return (size_t)(out + 3 - begin);
}
