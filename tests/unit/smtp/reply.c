#include "smtp/smtp.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Feed in slices of `cut`, each in memory of its own. 1 with *ret_used, 0, or
 * -errno. */
static int
feed(struct smtp_reply_parser *p, const char *data, size_t len, size_t cut,
    size_t *ret_used)
{
	size_t i, n, used;
	int r;

	for (i = 0; i < len; i += n) {
		char *copy;

		n = len - i < cut ? len - i : cut;
		copy = malloc(n);
		memcpy(copy, data + i, n);
		r = smtp_reply_feed(p, copy, n, &used);
		free(copy);
		if (r != 0) {
			if (r == 1)
				*ret_used = i + used;
			return r;
		}
		cr_assert_eq(used, n);
	}
	return 0;
}

#define BYTES(s) (s), sizeof(s) - 1

/* clang-format off */
static const struct {
	const char *name, *in;
	size_t len;
	int want;
	const char *text, *dsn;
} rows[] = {
	{ "plain", BYTES("250 ok\r\n"), 1, "250 ok", "2.0.0" },
	{ "enhanced code", BYTES("250 2.1.5 ok\r\n"), 1, "250 2.1.5 ok", "2.1.5" },
	{ "code alone", BYTES("250\r\n"), 1, "250", "2.0.0" },
	{ "code and blank", BYTES("250 \r\n"), 1, "250", "2.0.0" },
	{ "a tab", BYTES("250\tok\r\n"), 1, "250 ok", "2.0.0" },
	{ "a tab in the last line", BYTES("550-5.1.1 a\r\n550\t5.1.1 b\r\n"),
	    1, "550 5.1.1 a b", "5.1.1" },
	{ "bare LF", BYTES("250 ok\n"), 1, "250 ok", "2.0.0" },
	{ "several lines", BYTES("550-5.1.1 a\r\n550-5.1.1 b\r\n550 5.1.1 c\r\n"),
	    1, "550 5.1.1 a b c", "5.1.1" },
	{ "bare LF in several lines", BYTES("250-a\n250 b\n"), 1, "250 a b",
	    "2.0.0" },
	{ "an empty line of several", BYTES("250-\r\n250 b\r\n"), 1, "250 b",
	    "2.0.0" },
	{ "enhanced code of another class", BYTES("450 5.1.1 x\r\n"), 1,
	    "450 5.1.1 x", "4.2.0" },
	{ "no enhanced code", BYTES("550 5.1 x\r\n"), 1, "550 5.1 x", "5.2.0" },
	{ "too long for one", BYTES("550 5.1.1234 x\r\n"), 1, "550 5.1.1234 x",
	    "5.2.0" },
	{ "enhanced code alone", BYTES("550 5.7.1\r\n"), 1, "550 5.7.1", "5.7.1" },
	{ "of a code without one", BYTES("599 x\r\n"), 1, "599 x", "5.0.0" },
	{ "NUL", BYTES("250 a\0b\r\n"), 1, "250 a?b", "2.0.0" },
	{ "8-bit", BYTES("250 \xff\xc3\xa4\r\n"), 1, "250 ?\xc3\xa4", "2.0.0" },
	{ "bare CR", BYTES("250 a\rb\r\n"), 1, "250 a?b", "2.0.0" },
	{ "escape", BYTES("250 \x1b[2J\r\n"), 1, "250 ?[2J", "2.0.0" },
	{ "no line end", BYTES("250 ok"), 0, NULL, NULL },
	{ "a CR is none", BYTES("250 ok\r"), 0, NULL, NULL },
	{ "not the last line", BYTES("250-ok\r\n"), 0, NULL, NULL },
	{ "another code within", BYTES("250-a\r\n251 b\r\n"), -EPROTO, NULL,
	    NULL },
	{ "empty line", BYTES("\r\n"), -EPROTO, NULL, NULL },
	{ "two digits", BYTES("25 ok\r\n"), -EPROTO, NULL, NULL },
	{ "four digits", BYTES("2500 ok\r\n"), -EPROTO, NULL, NULL },
	{ "a letter in it", BYTES("2a0 ok\r\n"), -EPROTO, NULL, NULL },
	{ "a word", BYTES("hello\r\n"), -EPROTO, NULL, NULL },
	{ "a letter behind", BYTES("250ok\r\n"), -EPROTO, NULL, NULL },
	{ "NUL in the code", BYTES("2\0" "0 ok\r\n"), -EPROTO, NULL, NULL },
	{ "NUL behind it", BYTES("250\0ok\r\n"), -EPROTO, NULL, NULL },
	{ "a blank before", BYTES(" 250 ok\r\n"), -EPROTO, NULL, NULL },
	{ "1xx", BYTES("150 ok\r\n"), -EPROTO, NULL, NULL },
	{ "999", BYTES("999 ok\r\n"), -EPROTO, NULL, NULL },
	{ "000", BYTES("000 ok\r\n"), -EPROTO, NULL, NULL },
	{ "negative", BYTES("-250 ok\r\n"), -EPROTO, NULL, NULL },
};
/* clang-format on */

Test(reply, N6_table)
{
	static const size_t cuts[] = { 1, 2, 5, SIZE_MAX };
	size_t i, k, used = 0;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		for (k = 0; k < ARRAY_LEN(cuts); k++) {
			struct smtp_reply_parser p;
			struct buf text = { 0 };
			char dsn[SMTP_DSN_SIZE];
			int r;

			smtp_reply_init(&p);
			r = feed(&p, rows[i].in, rows[i].len, cuts[k], &used);
			cr_expect_eq(
			    r, rows[i].want, "%s: %d", rows[i].name, r);
			if (r == 1) {
				smtp_reply_dsn(&p.reply, dsn);
				smtp_reply_text(&p.reply, 100, &text);
				cr_expect_eq(used, rows[i].len);
				cr_expect_str_eq(dsn, rows[i].dsn, "%s: %s",
				    rows[i].name, dsn);
				cr_expect_str_eq(buf_str(&text), rows[i].text,
				    "%s: %s", rows[i].name, buf_str(&text));
			}
			buf_done(&text);
			smtp_reply_done(&p);
		}
}

Test(reply, one_after_the_other)
{
	static const char in[] = "250-a\r\n250 b\r\n354 go\r\n";
	struct smtp_reply_parser p;
	size_t used = 0;

	smtp_reply_init(&p);
	cr_assert_eq(smtp_reply_feed(&p, in, sizeof(in) - 1, &used), 1);
	cr_expect_eq(used, 14);
	cr_expect_eq(p.reply.code, 250);
	cr_expect_str_eq(buf_str(&p.reply.text), "a\nb\n");
	cr_assert_eq(smtp_reply_feed(&p, in + 14, sizeof(in) - 15, &used), 1);
	cr_expect_eq(p.reply.code, 354);
	cr_expect_str_eq(buf_str(&p.reply.text), "go\n");
	smtp_reply_done(&p);
}

/* Feed the same over and over, until it is refused; how much that took. */
static size_t
feed_without_end(const char *piece)
{
	size_t total = 0, used = 0, len = strlen(piece);
	struct smtp_reply_parser p;
	int r = 0;

	smtp_reply_init(&p);
	while (r == 0 && total < (1 << 24)) {
		r = smtp_reply_feed(&p, piece, len, &used);
		cr_assert_leq(p.reply.text.cap, 4 * SMTP_REPLY_TEXT_MAX);
		total += len;
	}
	cr_expect_eq(r, -EPROTO);
	cr_expect_not_null(p.error);
	smtp_reply_done(&p);
	return total;
}

Test(reply, N6_without_end_in_bounded_memory)
{
	cr_expect_leq(
	    feed_without_end("250 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
	    SMTP_REPLY_TEXT_MAX + 64);
	cr_expect_leq(feed_without_end("250-a\r\n"),
	    (SMTP_REPLY_LINES_MAX + 1) * strlen("250-a\r\n"));
	cr_expect_leq(
	    feed_without_end("250-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"),
	    SMTP_REPLY_TEXT_MAX + SMTP_REPLY_TEXT_MAX / 8);
	cr_expect_leq(feed_without_end("\r"), SMTP_REPLY_TEXT_MAX + 64);
	cr_expect_leq(feed_without_end("x"), SMTP_REPLY_TEXT_MAX + 64);
}

/* mutation: common/smtp/reply.c, take_octet() that refuses at once. */
Test(reply, N6_the_end_of_a_long_line_is_dropped)
{
	char line[3000 + 64] = "550-5.1.1 ";
	size_t begin = strlen(line), used = 0, cut;
	struct smtp_reply_parser p;

	memset(line + begin, 'a', 3000 - begin);
	memcpy(line + 3000, "\r\n550 5.1.1 b\r\n250", 19);
	for (cut = 1; cut < 3018; cut += 1009) {
		smtp_reply_init(&p);
		cr_assert_eq(feed(&p, line, 3018, cut, &used), 1);
		cr_expect_eq(used, 3015);
		cr_expect_eq(p.reply.code, 550);
		cr_expect_eq(p.reply.lines, 2);
		/* Without the code and the hyphen; and the second line. */
		cr_expect_eq(p.reply.text.len,
		    SMTP_REPLY_LINE_MAX - 4 + 1 + strlen("5.1.1 b\n"));
		smtp_reply_done(&p);
	}
}

Test(reply, text_is_cut)
{
	struct smtp_reply_parser p;
	struct buf text = { 0 };
	size_t used = 0;
	int i;

	smtp_reply_init(&p);
	for (i = 0; i < 100; i++)
		cr_assert_eq(
		    feed(&p, BYTES("550-some words of no use\r\n"), 7, &used),
		    0);
	cr_assert_eq(feed(&p, BYTES("550 x\r\n"), 7, &used), 1);
	smtp_reply_text(&p.reply, 50, &text);
	cr_expect_leq(text.len, 52);
	cr_expect_geq(text.len, 48);
	buf_done(&text);
	smtp_reply_done(&p);
}

/* Whatever comes in, in whatever slices: the same comes of it. */
Test(reply, N6_any_octets)
{
	static const char hard[] = "2225450- \r\n\r\n.\0\xff-";
	unsigned round;

	for (round = 0; round < 3000; round++) {
		struct smtp_reply_parser one, two;
		char in[64];
		size_t len, i, used_one = 0, used_two = 0;
		int r;

		srand(4711 + round);
		len = (size_t)rand() % sizeof(in);
		for (i = 0; i < len; i++)
			in[i] = hard[(size_t)rand() % (sizeof(hard) - 1)];
		if (len > 4 && round % 2 == 0)
			memcpy(in, "250-", 4);
		smtp_reply_init(&one);
		smtp_reply_init(&two);
		r = feed(&one, in, len, 1, &used_one);
		cr_expect_eq(r, feed(&two, in, len, SIZE_MAX, &used_two));
		cr_expect_eq(used_one, used_two);
		if (r == 1) {
			cr_expect_geq(one.reply.code, 200);
			cr_expect_leq(one.reply.code, 599);
			cr_expect_str_eq(
			    buf_str(&one.reply.text), buf_str(&two.reply.text));
		}
		smtp_reply_done(&one);
		smtp_reply_done(&two);
	}
}

Test(reply, the_length_of_a_status_code)
{
	static const struct {
		const char *text;
		size_t len;
	} codes[] = {
		{ "2.0.0", 5 },
		{ "5.1.1 no", 5 },
		{ "4.22.333\tx", 8 },
		{ "5.7.1\r\n", 5 },
		{ "3.0.0", 0 },
		{ "5.1", 0 },
		{ "5.1.", 0 },
		{ "5..1", 0 },
		{ "5.1.1x", 0 },
		{ "5.1.1.1", 0 },
		{ "5.1.1234", 0 },
		{ "55.1.1", 0 },
		{ "", 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(codes); i++)
		cr_expect_eq(smtp_dsn_len(codes[i].text, strlen(codes[i].text)),
		    codes[i].len, "%s", codes[i].text);
	cr_expect_eq(smtp_dsn_len("5.1.12", 5), 5, "no more than len octets");
}

Test(reply, lines_as_a_server_sends_them)
{
	static const struct {
		unsigned code;
		const char *text, *lines;
	} cases[] = {
		{ 250, "ok\n", "250 ok\n" },
		{ 250, "ok", "250 ok\n" },
		{ 250, "site\nSIZE 10\nDSN\n",
		    "250-site\n250-SIZE 10\n250 DSN\n" },
		{ 354, "", "354 \n" },
		{ 550, "\n\n", "550-\n550 \n" },
	};
	struct buf out = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		buf_reset(&out);
		cr_assert_eq(smtp_reply_lines(cases[i].code, cases[i].text,
				 strlen(cases[i].text), &out),
		    0);
		cr_expect_str_eq(buf_str(&out), cases[i].lines);
	}
	buf_done(&out);
}
