#include "smtp/smtp.h"

#include <criterion/criterion.h>
#include <string.h>

#define BYTES(s) s, sizeof(s) - 1

/* ---- where a message ends ---- */

struct ending {
	const char *content;
	size_t len;
	const char *strict, *local; /* what is stored; NULL: no end yet */
};

static const struct ending endings[] = {
	{ BYTES("a\r\n.\r\n"), "a\n", "a\n" },
	{ BYTES("a\n.\n"), NULL, "a\n" },
	{ BYTES("a\n.\r\n"), NULL, "a\n" },
	{ BYTES("a\r\n.\n"), NULL, "a\n" },
	{ BYTES("a\r.\r\r\n"), NULL, NULL },
	{ BYTES("a\r\n.\r"), NULL, NULL },
	{ BYTES("a\r.\r"), NULL, NULL },
	{ BYTES("a\r\r\n.\r\r\n"), NULL, NULL },
	{ BYTES("a\n.\n\r\n.\r\n"), "a\n.\n\n", "a\n" },
	{ BYTES("a\n.\r\n\r\n.\r\n"), "a\n.\n\n", "a\n" },
	{ BYTES("a\r\n.\n\r\n.\r\n"), "a\n\n\n", "a\n" },
	{ BYTES("a\r\n.\r\r\n.\r\n"), "a\n\r\n", "a\n\r\n" },
	{ BYTES("a\r.\r\n.\r\n"), "a\r.\n", "a\r.\n" },
	{ BYTES("a\n..\r\n.\r\n"), "a\n..\n", "a\n.\n" },
	{ BYTES(".\r\n"), "", "" },
	{ BYTES("\r\n.\r\n"), "\n", "\n" },
	{ BYTES("\r.\r\n.\r\n"), "\r.\n", "\r.\n" },
};

static void
check_ending(const struct ending *e, bool bare_lf, const char *want)
{
	struct smtp_decode d = { .bare_lf = bare_lf };
	struct buf got = { 0 };
	size_t at, used;

	/* Nothing else in the input can be its end. */
	for (at = 0; at < e->len && !d.end; at += used) {
		char out[2];
		size_t n =
		    smtp_decode_feed(&d, e->content + at, 1, out, 2, &used);

		cr_assert_eq(used, 1);
		buf_add(&got, out, n);
	}
	cr_expect_eq(d.end, want != NULL, "`%s' %d", e->content, bare_lf);
	if (want != NULL)
		cr_expect_str_eq(buf_str(&got), want, "`%s' %d: `%s'",
		    e->content, bare_lf, buf_str(&got));
	buf_done(&got);
}

Test(decode, S15_only_one_end_of_a_message)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(endings); i++) {
		check_ending(&endings[i], false, endings[i].strict);
		check_ending(&endings[i], true, endings[i].local);
	}
}

/* What one system sends is what the next one stores. */
Test(decode, S15_content_goes_round)
{
	static const char text[] =
	    ".\n..\na\n\n.b\nlonger text, with. dots.\n.\nend\n";
	char wire[SMTP_ENCODE_MAX(sizeof(text)) + SMTP_ENCODE_MAX(0)];
	char out[sizeof(text) + 2];
	struct smtp_encode e = { 0 };
	size_t len = smtp_encode_feed(&e, text, sizeof(text) - 1, wire), used;
	struct smtp_decode d = { 0 };
	size_t n;

	len += smtp_encode_end(&e, wire + len);
	n = smtp_decode_feed(&d, wire, len, out, sizeof(out), &used);
	cr_expect(d.end);
	cr_expect_eq(used, len);
	cr_expect_eq(n, sizeof(text) - 1);
	cr_expect_arr_eq(out, text, sizeof(text) - 1);
}
