#include "tests/unit/smtp/encode_model.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
		encode_whole(rows[i].in, rows[i].in_len, SIZE_MAX, &out);
		cr_expect(out.len == rows[i].want_len &&
			memcmp(out.data, rows[i].want, out.len) == 0,
		    "%s: got %s", rows[i].name, out.data);
		encode_check(rows[i].name, rows[i].in, rows[i].in_len);
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
	encode_check(name, in.data, in.len);
	encode_whole(in.data, in.len, 5, &out);
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
	encode_check("dots", in, len);
	memset(in, '\r', len);
	encode_check("CRs", in, len);
	memset(in, '\n', len);
	encode_check("LFs", in, len);
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
		encode_check("random", in, len);
	}
}
