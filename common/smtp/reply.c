#include "smtp/smtp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

void
smtp_reply_init(struct smtp_reply_parser *p)
{
	memset(p, 0, sizeof(*p));
}

void
smtp_reply_done(struct smtp_reply_parser *p)
{
	buf_done(&p->reply.text);
}

static int
bad(struct smtp_reply_parser *p, const char *error)
{
	p->error = error;
	return -EPROTO;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The code of a line, 0 for none. */
static unsigned
line_code(const char *line, size_t len)
{
	if (len < 3 || line[0] < '2' || line[0] > '5' || !is_digit(line[1]) ||
	    !is_digit(line[2]))
		return 0;
	if (len > 3 && line[3] != ' ' && line[3] != '\t' && line[3] != '-')
		return 0;
	return (unsigned)(line[0] - '0') * 100 +
	    (unsigned)(line[1] - '0') * 10 + (unsigned)(line[2] - '0');
}

/* A line without its end: 1 when it is the last of its reply. */
static int
take_line(struct smtp_reply_parser *p, const char *line, size_t len)
{
	unsigned code = line_code(line, len);
	size_t text = len > 3 ? len - 4 : 0;

	if (code == 0)
		return bad(p, "a reply that is none");
	if (p->reply.lines > 0 && code != p->reply.code)
		return bad(p, "the code changes within a reply");
	if (p->reply.lines == SMTP_REPLY_LINES_MAX ||
	    p->reply.text.len + text + 1 > SMTP_REPLY_TEXT_MAX)
		return bad(p, "a reply without end");
	if (buf_add(&p->reply.text, line + len - text, text) < 0 ||
	    buf_add_char(&p->reply.text, '\n') < 0)
		return -ENOMEM;
	p->reply.code = code;
	p->reply.lines++;
	return len > 3 && line[3] == '-' ? 0 : 1;
}

static int
end_line(struct smtp_reply_parser *p)
{
	size_t len = p->line_len;

	p->line_len = p->dropped = 0;
	if (len > 0 && p->line[len - 1] == '\r')
		len--;
	return take_line(p, p->line, len);
}

/* An octet of a line. */
static int
take_octet(struct smtp_reply_parser *p, char c)
{
	if (p->line_len < sizeof(p->line))
		p->line[p->line_len++] = c;
	else if (++p->dropped > SMTP_REPLY_TEXT_MAX - SMTP_REPLY_LINE_MAX)
		return bad(p, "a line without end");
	return 0;
}

int
smtp_reply_feed(
    struct smtp_reply_parser *p, const char *data, size_t len, size_t *ret_used)
{
	size_t i;
	int r;

	if (p->whole) {
		buf_reset(&p->reply.text);
		p->reply.lines = 0;
		p->whole = false;
	}
	for (i = 0; i < len; i++) {
		r = data[i] == '\n' ? end_line(p) : take_octet(p, data[i]);
		if (r < 0)
			return r;
		if (r == 1) {
			p->whole = true;
			*ret_used = i + 1;
			return 1;
		}
	}
	*ret_used = len;
	return 0;
}

/* ---- enhanced status codes ---- */

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

size_t
smtp_dsn_len(const char *s, size_t len)
{
	size_t i = 1;
	int part;

	if (len < 5 || (s[0] != '2' && s[0] != '4' && s[0] != '5'))
		return 0;
	for (part = 0; part < 2; part++) {
		size_t begin = i + 1;

		if (i >= len || s[i] != '.')
			return 0;
		for (i = begin; i < len && is_digit(s[i]); i++)
			;
		if (i == begin || i - begin > 3)
			return 0;
	}
	return i == len || is_blank(s[i]) ? i : 0;
}

/* The length of a code of that class. */
static size_t
class_dsn_len(const char *s, size_t len, char class)
{
	return len > 0 && s[0] == class ? smtp_dsn_len(s, len) : 0;
}

/* RFC 5248 section 2.4 and the meaning of the codes in RFC 5321. */
static const struct {
	unsigned code;
	const char *dsn;
} code_dsn[] = {
	{ 251, "2.1.5" },
	{ 252, "2.1.5" },
	{ 421, "4.3.2" },
	{ 450, "4.2.0" },
	{ 451, "4.3.0" },
	{ 452, "4.3.1" },
	{ 454, "4.7.0" },
	{ 455, "4.5.4" },
	{ 500, "5.5.2" },
	{ 501, "5.5.4" },
	{ 502, "5.5.1" },
	{ 503, "5.5.1" },
	{ 504, "5.5.4" },
	{ 521, "5.3.2" },
	{ 530, "5.7.0" },
	{ 535, "5.7.8" },
	{ 550, "5.2.0" },
	{ 551, "5.1.6" },
	{ 552, "5.2.2" },
	{ 553, "5.1.3" },
	{ 555, "5.5.4" },
	{ 556, "5.1.10" },
};

void
smtp_reply_dsn(const struct smtp_reply *reply, char ret_dsn[SMTP_DSN_SIZE])
{
	char class = (char)('0' + reply->code / 100);
	const char *text = buf_str(&reply->text);
	size_t len = class_dsn_len(text, reply->text.len, class), i;

	if (len > 0) {
		memcpy(ret_dsn, text, len);
		ret_dsn[len] = '\0';
		return;
	}
	for (i = 0; i < ARRAY_LEN(code_dsn); i++)
		if (code_dsn[i].code == reply->code) {
			snprintf(ret_dsn, SMTP_DSN_SIZE, "%s", code_dsn[i].dsn);
			return;
		}
	snprintf(ret_dsn, SMTP_DSN_SIZE, "%c.0.0", class);
}

/* ---- text ---- */

/* Where the text of a further line begins: behind a code that repeats. */
static size_t
skip_dsn(const char *line, size_t len, char class)
{
	size_t n = class_dsn_len(line, len, class);

	return n < len && n > 0 && line[n] == ' ' ? n + 1 : n;
}

int
smtp_reply_text(const struct smtp_reply *reply, size_t max, struct buf *out)
{
	char class = (char)('0' + reply->code / 100);
	const char *p = buf_str(&reply->text), *end = p + reply->text.len;
	size_t begin = out->len;
	bool first = true;
	int r = buf_printf(out, "%u", reply->code);

	while (r == 0 && p < end && out->len - begin < max) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)(eol - p);
		size_t skip = first ? 0 : skip_dsn(p, len, class);

		if (len > skip) {
			r = buf_add_char(out, ' ');
			if (r == 0)
				r = text_clean(out, p + skip, len - skip,
				    max - (out->len - begin));
		}
		first = false;
		p = eol + 1;
	}
	return r;
}

int
smtp_reply_lines(unsigned code, const char *text, size_t len, struct buf *out)
{
	const char *end = text + len, *at = text, *next;
	int r = 0;

	do {
		next = len == 0 ? NULL : memchr(at, '\n', (size_t)(end - at));
		if (next == NULL)
			next = end;
		r = buf_printf(out, "%u%c%.*s\n", code,
		    next + 1 < end ? '-' : ' ', (int)(next - at), at);
		at = next + 1;
	} while (r == 0 && at < end);
	return r;
}
