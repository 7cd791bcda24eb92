#include "smtp/smtp.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* ---- encode in slices, each in memory of its own ---- */

static void
feed(struct smtp_encode *e, const char *data, size_t len, struct buf *out)
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
		feed(&e, data + i, n, out);
	}
	n = smtp_encode_end(&e, end);
	cr_assert_leq(n, SMTP_ENCODE_MAX(0));
	buf_add(out, end, n);
	free(end);
}

static void
encode(const char *data, size_t len, size_t slice, struct buf *out)
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

/* CRLF and LF to LF, other CR to a blank, folded, a line end at the end: what
 * the other side must get. */
static void
normal_form(const char *data, size_t len, struct buf *out)
{
	size_t i, column = 0;

	buf_reset(out);
	for (i = 0; i < len; i++) {
		char c = data[i];

		if (c == '\r' && i + 1 < len && data[i + 1] == '\n')
			continue;
		if (c == '\n') {
			buf_add_char(out, '\n');
			column = 0;
			continue;
		}
		if (c == '\r')
			c = ' ';
		if (column + sequence((unsigned char)c) > 998) {
			buf_add_str(out, "\n ");
			column = 1;
		}
		buf_add_char(out, c);
		column++;
	}
	if (column > 0)
		buf_add_char(out, '\n');
}

/* What a server does (RFC 5321 section 4.5.2): lines up to the dot, dots taken
 * off, CRLF to LF. Insists on what the wire must never have. */
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

static void
check(const char *name, const char *data, size_t len)
{
	struct buf whole = { 0 }, cut = { 0 }, got = { 0 }, want = { 0 };
	size_t i;

	check_chunk(name, data, len);

	encode(data, len, SIZE_MAX, &whole);
	receive(&whole, &got);
	normal_form(data, len, &want);
	cr_expect(got.len == want.len &&
		(got.len == 0 || memcmp(got.data, want.data, got.len) == 0),
	    "%s: does not come back", name);
	for (i = 0; i < ARRAY_LEN(slices); i++) {
		encode(data, len, slices[i], &cut);
		cr_expect(cut.len == whole.len &&
			memcmp(cut.data, whole.data, cut.len) == 0,
		    "%s: differs in slices of %zu", name, slices[i]);
	}
	buf_done(&whole);
	buf_done(&cut);
	buf_done(&got);
	buf_done(&want);
}

#define BYTES(s) (s), sizeof(s) - 1

/* clang-format off */
static const struct {
	const char *name, *in;
	size_t in_len;
	const char *want;
	size_t want_len;
} rows[] = {
	{ "empty", BYTES(""), BYTES(".\r\n") },
	{ "a line", BYTES("a\n"), BYTES("a\r\n.\r\n") },
	{ "no last line end", BYTES("a"), BYTES("a\r\n.\r\n") },
	{ "an empty line", BYTES("\n"), BYTES("\r\n.\r\n") },
	{ "CRLF", BYTES("a\r\nb\r\n"), BYTES("a\r\nb\r\n.\r\n") },
	{ "mixed line ends", BYTES("a\r\nb\n"), BYTES("a\r\nb\r\n.\r\n") },
	{ "S8 a dot", BYTES(".\n"), BYTES("..\r\n.\r\n") },
	{ "S8 dots", BYTES("..\n...\n"), BYTES("...\r\n....\r\n.\r\n") },
	{ "S8 a dot, no line end", BYTES("."), BYTES("..\r\n.\r\n") },
	{ "S8 a dot inside", BYTES("a.b\n.c\n"), BYTES("a.b\r\n..c\r\n.\r\n") },
	{ "S1 LF . LF", BYTES("a\n.\nb\n"), BYTES("a\r\n..\r\nb\r\n.\r\n") },
	{ "S1 LF . CRLF", BYTES("a\n.\r\nb\n"), BYTES("a\r\n..\r\nb\r\n.\r\n") },
	{ "S1 CRLF . LF", BYTES("a\r\n.\nb\n"), BYTES("a\r\n..\r\nb\r\n.\r\n") },
	{ "S1 CR . CR", BYTES("a\r.\rb\n"), BYTES("a . b\r\n.\r\n") },
	{ "S1 CRLF . CR CRLF", BYTES("a\r\n.\r\r\nb\n"),
	    BYTES("a\r\n.. \r\nb\r\n.\r\n") },
	{ "S1 CR first", BYTES("\r.\r\nb\n"), BYTES(" .\r\nb\r\n.\r\n") },
	{ "CR CR LF", BYTES("a\r\r\nb\n"), BYTES("a \r\nb\r\n.\r\n") },
	{ "CR last", BYTES("a\r"), BYTES("a \r\n.\r\n") },
	{ "CR alone", BYTES("\r"), BYTES(" \r\n.\r\n") },
	{ "CR in a header field", BYTES("Subject: a\rBcc: b\n"),
	    BYTES("Subject: a Bcc: b\r\n.\r\n") },
	{ "NUL and 8-bit", BYTES("a\0b\xff\n"), BYTES("a\0b\xff\r\n.\r\n") },
};
/* clang-format on */

Test(encode, S8_S1_C1_table)
{
	struct buf out = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		encode(rows[i].in, rows[i].in_len, SIZE_MAX, &out);
		cr_expect(out.len == rows[i].want_len &&
			memcmp(out.data, rows[i].want, out.len) == 0,
		    "%s: got %s", rows[i].name, out.data);
		check(rows[i].name, rows[i].in, rows[i].in_len);
	}
	buf_done(&out);
}

/* ---- long lines ---- */

static void
check_long(size_t len, const char *tail, size_t first_line)
{
	struct buf in = { 0 }, out = { 0 };
	char name[64];
	size_t i;

	for (i = 0; i < len; i++)
		buf_add_char(&in, (char)('a' + i % 26));
	buf_add_str(&in, tail);
	snprintf(name, sizeof(name), "%zu octets and %zu", len, strlen(tail));
	check(name, in.data, in.len);
	encode(in.data, in.len, 5, &out);
	cr_expect_eq(
	    (size_t)((char *)memmem(out.data, out.len, "\r\n", 2) - out.data),
	    first_line, "%s", name);
	buf_done(&in);
	buf_done(&out);
}

Test(encode, S8_long_lines_are_folded)
{
	check_long(997, "\n", 997);
	check_long(998, "\n", 998);
	check_long(998, "", 998);
	check_long(998, "\r\n", 998);
	check_long(999, "\n", 998);
	check_long(998, "\rx\n", 998);
	check_long(997, "\rx\n", 998);
	check_long(5000, "", 998);
}

Test(encode, S8_a_fold_is_not_inside_a_character)
{
	check_long(996, "\xc3\xa4\n", 998);
	check_long(997, "\xc3\xa4\n", 997);
	check_long(996, "\xe2\x82\xac\n", 996);
	check_long(995, "\xe2\x82\xac\n", 998);
	check_long(994, "\xf0\x9f\x93\xa7\n", 998);
	check_long(995, "\xf0\x9f\x93\xa7\n", 995);
	/* Not UTF-8: folded where the line is full. */
	check_long(998, "\xa4\n", 998);
	check_long(990, "\xa4\xa4\xa4\xa4\xa4\xa4\xa4\xa4\xa4\xa4\n", 998);
}

Test(encode, S8_a_line_of_a_megabyte)
{
	size_t len = 1 << 20;
	char *in = malloc(len);

	memset(in, '.', len);
	check("dots", in, len);
	memset(in, '\r', len);
	check("CRs", in, len);
	memset(in, '\n', len);
	check("LFs", in, len);
	free(in);
}

/* Anything at all, or now and then one of what matters most. */
static char
any_octet(unsigned kind)
{
	static const char hard[] = "\r\n\r\n..aB\xc3\xa4\xe2\xf0\x80";
	int one_in = kind == 1 ? 4 : 400;

	if (kind == 0)
		return (char)(rand() & 0xff);
	if (rand() % one_in == 0)
		return hard[(size_t)rand() % (sizeof(hard) - 1)];
	return (char)('a' + rand() % 26);
}

Test(encode, any_octets_in_any_slices)
{
	char in[3000];
	unsigned round, seed = 20240601;

	for (round = 0; round < 400; round++) {
		size_t len, i;

		srand(seed + round);
		len = (size_t)rand() % sizeof(in);
		for (i = 0; i < len; i++)
			in[i] = any_octet(round % 4);
		check("random", in, len);
	}
}
