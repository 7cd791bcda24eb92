#include "queue-inject/message.h"

#include "base/address.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

struct envelope_case {
	const char *name, *input;
	size_t len;
	enum refusal_kind want;
	const char *sender, *rcpts; /* joined by `|` */
};

#define IN(s) s, sizeof(s) - 1

/* clang-format off */
static const struct envelope_case cases[] = {
	{ "usual", IN("Fa@b\0Tc@d\0Te@f\0\0"), 0, "a@b", "c@d|e@f" },
	{ "null sender", IN("F\0Tc@d\0\0"), 0, "", "c@d" },
	{ "duplicates are kept", IN("Fa\0Tc\0Tc\0Tc\0\0"), 0, "a", "c|c|c" },
	{ "8-bit and blanks", IN("F\"a b\"@c\0T\xc3\xa4@d\0\0"), 0, "\"a b\"@c", "\xc3\xa4@d" },
	{ "a letter in an address", IN("FT\0TF\0\0"), 0, "T", "F" },
	{ "no recipient", IN("Fa@b\0\0"), REFUSAL_NO_RECIPIENT, "a@b", "" },
	{ "empty", IN(""), REFUSAL_ENVELOPE, "", "" },
	{ "NUL", IN("\0"), REFUSAL_ENVELOPE, "", "" },
	{ "F", IN("F"), REFUSAL_ENVELOPE, "", "" },
	{ "sender cut", IN("Fa@b"), REFUSAL_ENVELOPE, "", "" },
	{ "no end", IN("Fa@b\0"), REFUSAL_ENVELOPE, "a@b", "" },
	{ "recipient cut", IN("Fa@b\0Tc@"), REFUSAL_ENVELOPE, "a@b", "" },
	{ "last NUL missing", IN("Fa@b\0Tc@d\0"), REFUSAL_ENVELOPE, "a@b", "c@d" },
	{ "recipient first", IN("Tc@d\0Fa@b\0\0"), REFUSAL_ENVELOPE, "", "" },
	{ "two senders", IN("Fa\0Fb\0Tc\0\0"), REFUSAL_ENVELOPE, "a", "" },
	{ "sender later", IN("Fa\0Tc\0Fb\0\0"), REFUSAL_ENVELOPE, "a", "c" },
	{ "unknown letter", IN("Fa\0Xc\0\0"), REFUSAL_ENVELOPE, "a", "" },
	{ "lower case", IN("fa\0tc\0\0"), REFUSAL_ENVELOPE, "", "" },
	{ "something follows", IN("Fa\0Tc\0\0x"), REFUSAL_ENVELOPE, "a", "c" },
	{ "NUL follows", IN("Fa\0Tc\0\0\0"), REFUSAL_ENVELOPE, "a", "c" },
	{ "empty recipient", IN("Fa\0T\0\0"), REFUSAL_ADDRESS, "a", "" },
	{ "LF in the recipient", IN("Fa\0Tc\nd\0\0"), REFUSAL_ADDRESS, "a", "" },
	{ "CR in the recipient", IN("Fa\0Tc\rd\0\0"), REFUSAL_ADDRESS, "a", "" },
	{ "LF in the sender", IN("Fa\nb\0Tc\0\0"), REFUSAL_ADDRESS, "", "" },
	{ "DEL in the sender", IN("Fa\177\0Tc\0\0"), REFUSAL_ADDRESS, "", "" },
	{ "too many", IN("Fa\0T1\0T2\0T3\0T4\0T5\0\0"), REFUSAL_TOO_MANY, "a", "1|2|3|4" },
};
/* clang-format on */

static void
check_case(const struct envelope_case *c, size_t piece)
{
	struct envelope e = { .rcpt_limit = 4 };
	struct envelope_reader rd = { 0 };
	struct refusal why = { 0 };
	struct buf rcpts = { 0 };
	size_t at, n, pos = 0;
	const char *rcpt;
	int r = 0;

	for (at = 0; at < c->len && r == 0; at += n) {
		n = c->len - at < piece ? c->len - at : piece;
		r = envelope_feed(&rd, &e, c->input + at, n, &why);
	}
	if (r == 0)
		r = envelope_finish(&rd, &e, &why);
	buf_done(&rd.address);
	cr_expect_eq(r, c->want == REFUSAL_NONE ? 0 : -1, "%s", c->name);
	cr_expect_eq(why.kind, c->want, "%s by %zu: %d %s", c->name, piece,
	    (int)why.kind, why.text);
	cr_expect_str_eq(buf_str(&e.sender), c->sender, "%s", c->name);
	while ((rcpt = envelope_next_rcpt(&e, &pos, &n)) != NULL) {
		cr_expect_eq(strlen(rcpt), n);
		if (rcpts.len > 0)
			buf_add_char(&rcpts, '|');
		buf_add_str(&rcpts, rcpt);
	}
	cr_expect_str_eq(buf_str(&rcpts), c->rcpts, "%s", c->name);
	buf_done(&rcpts);
	envelope_done(&e);
}

Test(envelope, S10_S13_forms)
{
	size_t i, piece;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		for (piece = 1; piece < 8; piece++)
			check_case(&cases[i], piece);
}

Test(envelope, once_whatever_their_number)
{
	struct envelope e = { .rcpt_limit = 5000, .once = true };
	struct refusal why = { 0 };
	char address[32];
	int i, round;

	for (round = 0; round < 2; round++)
		for (i = 0; i < 5000; i++) {
			snprintf(address, sizeof(address),
			    round ? "USER%d@x" : "user%d@X", i);
			cr_assert_eq(envelope_add_rcpt(
					 &e, address, strlen(address), &why),
			    0);
		}
	cr_expect_eq(e.rcpt_count, 5000);
	cr_expect_eq(envelope_add_rcpt(&e, "one more", 8, &why), -1);
	cr_expect_eq(why.kind, REFUSAL_TOO_MANY);
	envelope_done(&e);
}

Test(envelope, S10_length_is_limited)
{
	static char address[ADDRESS_MAX + 3];
	size_t len, piece;

	memset(address, 'a', sizeof(address));
	address[0] = 'F';
	for (len = ADDRESS_MAX - 1; len <= ADDRESS_MAX + 1; len++)
		for (piece = 1; piece < sizeof(address); piece += 100) {
			struct envelope e = { 0 };
			struct envelope_reader rd = { 0 };
			struct refusal why = { 0 };
			size_t at, n;
			int r = 0;

			for (at = 0; at < len + 1 && r == 0; at += n) {
				n = len + 1 - at < piece ? len + 1 - at : piece;
				r = envelope_feed(
				    &rd, &e, address + at, n, &why);
			}
			if (r == 0)
				r = envelope_feed(&rd, &e, "", 1, &why);
			cr_expect_eq(why.kind,
			    len > ADDRESS_MAX ? REFUSAL_ADDRESS_LONG
					      : REFUSAL_NONE);
			buf_done(&rd.address);
			envelope_done(&e);
		}
}

Test(envelope, memory_is_bounded_whatever_comes)
{
	struct envelope e = { 0 };
	struct envelope_reader rd = { 0 };
	struct refusal why = { 0 };
	static char data[100000];

	memset(data, 'x', sizeof(data));
	data[0] = 'F';
	cr_expect_eq(envelope_feed(&rd, &e, data, sizeof(data), &why), -1);
	cr_expect_eq(why.kind, REFUSAL_ADDRESS_LONG);
	cr_expect_leq(rd.address.cap, 2 * ADDRESS_MAX);
	buf_done(&rd.address);
	envelope_done(&e);
}

/* Any bytes: a refusal of the contract, or addresses that may stand. */
Test(envelope, fuzz)
{
	static const char letters[] = "FTab@\n\0\0\0";
	uint32_t seed = 91;
	int round;

	for (round = 0; round < 50000; round++) {
		struct envelope e = { .rcpt_limit = 3 };
		struct envelope_reader rd = { 0 };
		struct refusal why = { 0 };
		char data[24];
		size_t i;
		int r;

		for (i = 0; i < sizeof(data); i++) {
			seed = seed * 1664525u + 1013904223u;
			data[i] = letters[(seed >> 8) % (sizeof(letters) - 1)];
		}
		data[0] = 'F';
		r = envelope_feed(&rd, &e, data, sizeof(data), &why);
		if (r == 0)
			r = envelope_finish(&rd, &e, &why);
		cr_assert_eq(r == 0, why.kind == REFUSAL_NONE);
		cr_assert_leq(e.rcpt_count, 3);
		buf_done(&rd.address);
		envelope_done(&e);
	}
}
