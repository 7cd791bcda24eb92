#include "tests/unit/smtp/encode_model.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- encode in slices, each in memory of its own ---- */

void
encode_feed(
    struct smtp_encode *e, const char *data, size_t len, struct buf *out)
{
	char *in = malloc(len + 1), *to = malloc(SMTP_ENCODE_MAX(len));
	size_t n;

	memcpy(in, data, len);
	n = smtp_encode_feed(e, in, len, to);
	cr_assert_leq(n, SMTP_ENCODE_MAX(len));
	buf_add(out, to, n);
	free(in);
	free(to);
}

static void
encode_as(struct smtp_encode e, const char *data, size_t len, size_t slice,
    struct buf *out)
{
	char *end = malloc(SMTP_ENCODE_MAX(0));
	size_t i, n;

	buf_reset(out);
	for (i = 0; i < len; i += n) {
		n = len - i < slice ? len - i : slice;
		encode_feed(&e, data + i, n, out);
	}
	n = smtp_encode_end(&e, end);
	cr_assert_leq(n, SMTP_ENCODE_MAX(0));
	buf_add(out, end, n);
	free(end);
}

void
encode_whole(const char *data, size_t len, size_t slice, struct buf *out)
{
	encode_as((struct smtp_encode){ 0 }, data, len, slice, out);
}

/* ---- the definition, written as plainly as can be ---- */

static size_t
sequence(unsigned char c)
{
	return c >= 0xf8 ? 1
	    : c >= 0xf0  ? 4
	    : c >= 0xe0  ? 3
	    : c >= 0xc0  ? 2
			 : 1;
}

/* CRLF and LF to LF, other CR to a blank. */
static void
without_cr(const char *data, size_t len, struct buf *out)
{
	size_t i;

	buf_reset(out);
	for (i = 0; i < len; i++) {
		if (data[i] == '\r' && i + 1 < len && data[i + 1] == '\n')
			continue;
		buf_add_char(out, data[i] == '\r' ? ' ' : data[i]);
	}
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool
is_blank_run(const char *line, size_t len)
{
	return strspn(line, " \t") >= len;
}

/* The first octet that is too much for a line, or len. */
static size_t
overflow(const char *line, size_t len)
{
	size_t i = 0;

	while (i < len && i + sequence((unsigned char)line[i]) <= 998)
		i++;
	return i;
}

/* Behind the colon of a field; 0: the line begins none. */
static size_t
field_value(const char *line, size_t len)
{
	size_t i = 0, name;

	while (i < len && line[i] > ' ' && line[i] < 0x7f && line[i] != ':')
		i++;
	name = i;
	while (i < len && is_blank(line[i]))
		i++;
	return name > 0 && i < len && i < 998 && line[i] == ':' ? i + 1 : 0;
}

/* Where a line of the header is cut at a blank, up to the octet that is too
 * much; 0: nowhere. */
static size_t
blank_cut(const char *line, size_t too_much)
{
	size_t first = is_blank(line[0]) ? strspn(line, " \t") + 1
					 : field_value(line, too_much);
	size_t i, any = 0, word = 0;

	for (i = first; i <= too_much; i++) {
		if (!is_blank(line[i]) || line[i - 1] == '\\')
			continue;
		any = i;
		if (i < too_much && !is_blank(line[i + 1]))
			word = i;
	}
	return word > 0 ? word : any;
}

static void
header_line(const char *text, size_t len, struct buf *out)
{
	struct buf copy = { 0 };
	char *line;
	size_t cut, more;
	bool folded = false;

	buf_add(&copy, text, len);
	buf_add_char(&copy, '\0');
	line = copy.data;
	while ((more = overflow(line, len)) < len) {
		if (is_blank_run(line, more)) {
			memmove(line + more - 1, line + more, len - more + 1);
			len--;
			continue;
		}
		cut = blank_cut(line, more);
		if (folded)
			buf_add_char(out, '\n');
		buf_add(out, line, cut > 0 ? cut : more);
		folded = true;
		line += cut > 0 ? cut : more - 1;
		len -= cut > 0 ? cut : more - 1;
		if (cut == 0)
			line[0] = ' ';
	}
	if (!folded || !is_blank_run(line, len)) {
		if (folded)
			buf_add_char(out, '\n');
		buf_add(out, line, len);
	}
	buf_done(&copy);
}

static void
body_line(const char *line, size_t len, struct buf *out)
{
	size_t i, column = 0;

	for (i = 0; i < len; i++) {
		if (column + sequence((unsigned char)line[i]) > 998) {
			buf_add_str(out, "\n ");
			column = 1;
		}
		buf_add_char(out, line[i]);
		column++;
	}
}

/* One kind of line ends, folded, a line end at the end: what the other side
 * must get. */
static void
normal_form(const char *data, size_t len, struct buf *out)
{
	struct buf plain = { 0 };
	size_t at = 0, n;
	bool fields = false, body = false;

	without_cr(data, len, &plain);
	buf_reset(out);
	for (at = 0; at < plain.len; at += n + 1) {
		const char *line = plain.data + at;
		const char *lf = memchr(line, '\n', plain.len - at);

		n = lf == NULL ? plain.len - at : (size_t)(lf - line);
		body |= n == 0 ||
		    !((fields && is_blank(line[0])) || field_value(line, n));
		fields = true;
		(body ? body_line : header_line)(line, n, out);
		buf_add_char(out, '\n');
	}
	buf_done(&plain);
}

/* What a server does (RFC 5321 section 4.5.2): lines up to the dot, dots taken
 * off, CRLF to LF. Fails where the wire has octets that SMTP forbids. */
static void
receive(const struct buf *wire, struct buf *out)
{
	const char *p = wire->data, *end = p + wire->len;

	buf_reset(out);
	while (p < end) {
		const char *eol = memmem(p, (size_t)(end - p), "\r\n", 2);
		size_t len;

		cr_assert_not_null(eol, "ends without CRLF");
		len = (size_t)(eol - p);
		cr_assert_null(memchr(p, '\r', len), "a bare CR");
		cr_assert_null(memchr(p, '\n', len), "a bare LF");
		cr_assert_leq(len - (len > 0 && *p == '.'), 998);
		if (len == 1 && *p == '.') {
			cr_assert_eq(eol + 2, end, "ends too early");
			return;
		}
		if (len > 0 && *p == '.') {
			p++;
			len--;
		}
		buf_add(out, p, len);
		buf_add_char(out, '\n');
		p = eol + 2;
	}
	cr_assert(false, "no dot at the end");
}

static const size_t slices[] = { 1, 2, 3, 7, 997, 998, 999, 4096 };

/* A chunk for BDAT is the normal form with CRLF, and nothing else. */
static void
check_chunk(const char *name, const char *data, size_t len)
{
	struct buf wire = { 0 }, got = { 0 }, want = { 0 };
	size_t i, k;

	normal_form(data, len, &want);
	for (i = 0; i < ARRAY_LEN(slices); i++) {
		encode_as((struct smtp_encode){ .chunk = true }, data, len,
		    slices[i], &wire);
		buf_reset(&got);
		for (k = 0; k < wire.len; k++)
			if (wire.data[k] != '\r')
				buf_add_char(&got, wire.data[k]);
			else
				cr_assert(k + 1 < wire.len &&
				    wire.data[k + 1] == '\n');
		cr_expect(got.len == want.len &&
			(got.len == 0 ||
			    memcmp(got.data, want.data, got.len) == 0),
		    "%s: a chunk in slices of %zu", name, slices[i]);
	}
	buf_done(&wire);
	buf_done(&got);
	buf_done(&want);
}

void
encode_check(const char *name, const char *data, size_t len)
{
	struct buf whole = { 0 }, cut = { 0 }, got = { 0 }, want = { 0 };
	size_t i;

	check_chunk(name, data, len);

	encode_whole(data, len, SIZE_MAX, &whole);
	receive(&whole, &got);
	normal_form(data, len, &want);
	cr_expect(got.len == want.len &&
		(got.len == 0 || memcmp(got.data, want.data, got.len) == 0),
	    "%s: does not come back", name);
	for (i = 0; i < ARRAY_LEN(slices); i++) {
		encode_whole(data, len, slices[i], &cut);
		cr_expect(cut.len == whole.len &&
			memcmp(cut.data, whole.data, cut.len) == 0,
		    "%s: differs in slices of %zu", name, slices[i]);
	}
	buf_done(&whole);
	buf_done(&cut);
	buf_done(&got);
	buf_done(&want);
}
