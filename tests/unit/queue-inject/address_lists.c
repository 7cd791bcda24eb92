#include "queue-inject/message.h"

#include "base/address.h"
#include "base/buf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct list_case {
	const char *list;
	int want_error;
	const char *want; /* joined by `|` */
};

/* clang-format off */
/* An error ends it; what came before it was handed on. */
static const struct list_case cases[] = {
	/* plain */
	{ "", 0, "" },
	{ " \t ", 0, "" },
	{ "a@b.c", 0, "a@b.c" },
	{ " a@b.c , d@e.f ", 0, "a@b.c|d@e.f" },
	{ "a@b.c,,d@e.f,", 0, "a@b.c|d@e.f" },
	{ ",a@b.c", 0, "a@b.c" },
	{ "a@b.c;d@e.f", 0, "a@b.c|d@e.f" },
	{ "joe", 0, "joe@default.example" },
	{ "joe, ann@b", 0, "joe@default.example|ann@b" },
	{ "a+b_c=d/e!f%g@h.i", 0, "a+b_c=d/e!f%g@h.i" },
	{ "host!user", 0, "host!user@default.example" },
	{ "a@[192.0.2.1]", 0, "a@[192.0.2.1]" },
	{ "a@[IPv6:2001:db8::1]", 0, "a@[IPv6:2001:db8::1]" },
	{ "\xc3\xa4@\xc3\xb6.example", 0, "\xc3\xa4@\xc3\xb6.example" },
	/* names and angle brackets */
	{ "<a@b.c>", 0, "a@b.c" },
	{ "Anna Berg <a@b.c>", 0, "a@b.c" },
	{ "\"Berg, Anna\" <a@b.c>, Otto <o@b>", 0, "a@b.c|o@b" },
	{ "John Q. Public <j@b>", 0, "j@b" },
	{ "a@b.c <a@b.c>", 0, "a@b.c" },
	{ "x@y, z@w <a@b.c>", 0, "x@y|a@b.c" },
	{ "=?UTF-8?B?0JrQstCw?= =?utf-8?q?a=2Cb?= <k@b>", 0, "k@b" },
	{ "Anna < a @ b . c >", 0, "a@b.c" },
	{ "Anna <joe>", 0, "joe@default.example" },
	{ "<>", 0, "<>" },
	{ "Nobody <>", 0, "<>" },
	{ "< >", 0, "<>" },
	/* routes */
	{ "<@a.b,@c.d:u@e.f>", 0, "u@e.f" },
	{ "<@a.b:u@e.f>", 0, "u@e.f" },
	{ "Name <@a.b , , @c.d : u@e.f>", 0, "u@e.f" },
	/* comments and folds */
	{ "(c) a (c) @ (c) b.c (c)", 0, "a@b.c" },
	{ "a@b.c (Anna (the (one\\) ) here))", 0, "a@b.c" },
	{ "a@b.c\n (Anna),\r\n\td@e.f\n", 0, "a@b.c|d@e.f" },
	{ "a@\n b.\n c\r\n", 0, "a@b.c" },
	{ "(only a comment)", 0, "" },
	{ "(a@b.c)", 0, "" },
	/* quoted strings */
	{ "\"a b\"@c", 0, "\"a b\"@c" },
	{ "\"ab\"@c", 0, "ab@c" },
	{ "\"a\\\"b\\\\c\"@d", 0, "\"a\\\"b\\\\c\"@d" },
	{ "\"a@b\"@c", 0, "\"a@b\"@c" },
	{ "\"a@b\"", 0, "\"a@b\"@default.example" },
	{ "\"a b\".c@d", 0, "\"a b.c\"@d" },
	{ "\"\"@d", 0, "\"\"@d" },
	{ "\"a\r\n b\"@d", 0, "\"a b\"@d" },
	{ "\"-f\"@d", 0, "-f@d" },
	{ "a..b@c, .a@c, a.@c", 0, "\"a..b\"@c|\".a\"@c|\"a.\"@c" },
	/* groups */
	{ "friends: a@b, Anna <c@d>;", 0, "a@b|c@d" },
	{ "undisclosed-recipients:;", 0, "" },
	{ "\"x, y\" : ; a@b", 0, "a@b" },
	{ "x: a@b;, y: c@d;", 0, "a@b|c@d" },
	{ "x: a@b", 0, "a@b" },
	{ "My friends : a , b;c", 0, "a@default.example|b@default.example|c@default.example" },
	/* wrong */
	{ "Anna Berg", -EINVAL, "" },
	{ "a@b c@d", -EINVAL, "" },
	{ "a@b@c", -EINVAL, "" },
	{ "@b", -EINVAL, "" },
	{ "a@", -EINVAL, "" },
	{ "@", -EINVAL, "" },
	{ "<@b>", -EINVAL, "" },
	{ "<a@b", -EINVAL, "" },
	{ "a@b>", -EINVAL, "" },
	{ "<a@b> c", -EINVAL, "a@b" },
	{ "<a@b> <c@d>", -EINVAL, "a@b" },
	{ "<<a@b>>", -EINVAL, "" },
	{ "<a,b@c>", -EINVAL, "" },
	{ "<:a@b>", -EINVAL, "" },
	{ "<a:b@c>", -EINVAL, "" },
	{ "x: y: a@b;;", -EINVAL, "" },
	{ "\"a@b", -EINVAL, "" },
	{ "(a@b", -EINVAL, "" },
	{ "a@b)", -EINVAL, "" },
	{ "a@[1.2", -EINVAL, "" },
	{ "[1.2]@a", -EINVAL, "" },
	{ "a@[1.2].c", -EINVAL, "" },
	{ "a@b.[1.2]", -EINVAL, "" },
	{ "a@[]", -EINVAL, "" },
	{ "a@[1\\]2]", -EINVAL, "" },
	{ "a@b..c", -EINVAL, "" },
	{ "a@.b", -EINVAL, "" },
	{ "a@b.", 0, "a@b." },
	{ "a@b..", -EINVAL, "" },
	{ "a@\"b\"", -EINVAL, "" },
	{ "a\\b@c", -EINVAL, "" },
	{ "x@y, Anna Berg", -EINVAL, "x@y" },
	/* CR, LF and other controls (S2) */
	{ "a\rb@c", -EILSEQ, "" },
	{ "a\nb@c", -EILSEQ, "" },
	{ "a\001b@c", -EILSEQ, "" },
	{ "a\177b@c", -EILSEQ, "" },
	{ "\"a\nb\"@c", -EILSEQ, "" },
	{ "\"a\\\nb\"@c", -EILSEQ, "" },
	{ "\"a\\\rb\"@c", -EILSEQ, "" },
	{ "\"a\tb\"@c", -EILSEQ, "" },
	{ "a@[\r1]", -EILSEQ, "" },
};
/* clang-format on */

static int
collect(void *arg, const char *address, size_t len)
{
	struct buf *out = arg;

	cr_assert_eq(strlen(address), len);
	if (out->len > 0)
		buf_add_char(out, '|');
	return buf_add_str(out, len == 0 ? "<>" : address);
}

Test(address_list, S10_forms)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		const struct list_case *c = &cases[i];
		struct buf out = { 0 };
		int r = address_list_parse(
		    c->list, strlen(c->list), "default.example", collect, &out);

		cr_expect_eq(r, c->want_error, "`%s': %d", c->list, r);
		cr_expect_str_eq(
		    buf_str(&out), c->want, "`%s': %s", c->list, buf_str(&out));
		buf_done(&out);
	}
}

Test(address_list, S2_nul_is_refused)
{
	struct buf out = { 0 };

	cr_expect_eq(
	    address_list_parse("a\0b@c", 5, "d", collect, &out), -EILSEQ);
	cr_expect_eq(
	    address_list_parse("\"a\0b\"@c", 7, "d", collect, &out), -EILSEQ);
	cr_expect_eq(
	    address_list_parse("a@b\0", 4, "d", collect, &out), -EILSEQ);
	buf_done(&out);
}

Test(address_list, S10_length_is_limited)
{
	static const struct {
		size_t local, domain;
		int want;
	} lengths[] = { { ADDRESS_MAX - 2, 1, 0 },
		{ ADDRESS_MAX - 1, 1, -ENAMETOOLONG },
		{ 1, ADDRESS_MAX - 2, 0 }, { 1, ADDRESS_MAX, -ENAMETOOLONG },
		{ 200000, 1, -ENAMETOOLONG } };
	size_t i;

	for (i = 0; i < ARRAY_LEN(lengths); i++) {
		struct buf list = { 0 }, out = { 0 };
		size_t n;

		for (n = 0; n < lengths[i].local; n++)
			buf_add_char(&list, 'l');
		buf_add_char(&list, '@');
		for (n = 0; n < lengths[i].domain; n++)
			buf_add_char(&list, 'd');
		cr_expect_eq(
		    address_list_parse(list.data, list.len, "x", collect, &out),
		    lengths[i].want, "%zu", i);
		buf_done(&list);
		buf_done(&out);
	}
}

static int
stop_at_two(void *arg, UNUSED const char *address, UNUSED size_t len)
{
	return ++*(int *)arg == 2 ? -ECANCELED : 0;
}

Test(address_list, stops_when_told)
{
	int count = 0;

	cr_expect_eq(address_list_parse("a,b,c", 5, "x", stop_at_two, &count),
	    -ECANCELED);
	cr_expect_eq(count, 2);
}

Test(address_list, nesting_is_counted_not_recursed)
{
	size_t depth = 1000000, i;
	struct buf list = { 0 }, out = { 0 };

	for (i = 0; i < depth; i++)
		buf_add_char(&list, '(');
	for (i = 0; i < depth; i++)
		buf_add_char(&list, ')');
	buf_add_str(&list, "a@b");
	cr_expect_eq(
	    address_list_parse(list.data, list.len, "x", collect, &out), 0);
	cr_expect_str_eq(buf_str(&out), "a@b");
	buf_done(&list);
	buf_done(&out);
}

static int
check_address(UNUSED void *arg, const char *address, size_t len)
{
	cr_assert_eq(strlen(address), len);
	if (len > 0) {
		cr_assert_eq(address_check(address, len), 0);
		cr_assert_not_null(strchr(address, '@'));
	}
	return 0;
}

/* Whatever comes in: an error of the contract, or addresses that may stand in
 * an envelope, and each parses to itself. */
Test(address_list, fuzz_gives_addresses_or_errors)
{
	static const char letters[] = "ab.@,;:<>()[]\"\\ \t\r\n-\xff\x01";
	uint32_t seed = 5322;
	int round;

	for (round = 0; round < 200000; round++) {
		/* On the heap, exact: a sanitizer sees one byte too far. */
		size_t i, len;
		char *list;
		int r;

		seed = seed * 1664525u + 1013904223u;
		len = (seed >> 8) % 24;
		list = malloc(len + 1);
		cr_assert_not_null(list);
		for (i = 0; i < len; i++) {
			seed = seed * 1664525u + 1013904223u;
			list[i] = letters[(seed >> 8) % sizeof(letters)];
		}
		list = realloc(list, len == 0 ? 1 : len);
		r = address_list_parse(
		    list, len, "d.example", check_address, NULL);
		cr_assert(r == 0 || r == -EINVAL || r == -EILSEQ, "%d", r);
		free(list);
	}
}

static int
reparse(void *arg, const char *address, size_t len)
{
	struct buf again = { 0 };

	if (len == 0)
		return 0;
	cr_assert_eq(address_list_parse(address, len, "wrong", collect, &again),
	    0, "%s", address);
	cr_assert_str_eq(buf_str(&again), address);
	buf_done(&again);
	++*(int *)arg;
	return 0;
}

Test(address_list, an_address_parses_to_itself)
{
	int count = 0;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		(void)address_list_parse(cases[i].list, strlen(cases[i].list),
		    "d.example", reparse, &count);
	cr_expect_gt(count, 40);
}

static int
note_place(void *arg, const struct address_place *p)
{
	return buf_printf(arg, "%zu-%zu@%zu-%zu %d %s\n", p->local,
	    p->local_end, p->domain, p->domain_end, p->plain,
	    p->address == NULL ? "-" : p->address);
}

Test(address_list, places)
{
	static const struct {
		const char *list, *places;
		int error;
	} rows[] = {
		{ " a@b.c", "1-2@3-6 1 a@b.c\n", 0 },
		{ "x <a . b@\n [1.2]>(c), d\n",
		    "3-8@11-16 1 a.b@[1.2]\n22-23@0-0 1 -\n", 0 },
		{ "g: \"a b\"(x)@(y)c. ,<@r,@s:e@f> ;",
		    "3-8@15-17 1 \"a b\"@c.\n"
		    "26-27@28-29 1 e@f\n",
		    0 },
		{ "<>, a..b, .c@d", "4-8@0-0 0 -\n10-12@13-14 0 \".c\"@d\n",
		    0 },
		{ "a@b c <d@e>", "7-8@9-10 1 d@e\n", 0 },
		{ "<a@b> c", "1-2@3-4 1 a@b\n", -EINVAL },
	};
	struct buf out = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		buf_reset(&out);
		cr_expect_eq(address_list_places(rows[i].list,
				 strlen(rows[i].list), note_place, &out),
		    rows[i].error);
		cr_expect_str_eq(
		    buf_str(&out), rows[i].places, "%s", rows[i].list);
	}
	buf_done(&out);
}
