#include "smtp/verp.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct {
	const char *sender;
	enum verp_kind kind;
	const char *recipient, *want;
} rows[] = {
	{ "list-@site.example-@[]", VERP_WANTED, "bob@sink.test", "list-bob=sink.test@site.example" },
	{ "list+@site.example-@[]", VERP_WANTED, "bob@sink.test", "list+bob=sink.test@site.example" },
	{ "@site.example-@[]", VERP_WANTED, "bob@sink.test", "bob=sink.test@site.example" },
	{ "list-@[192.0.2.1]-@[]", VERP_WANTED, "bob@[192.0.2.2]", "\"list-bob=[192.0.2.2]\"@[192.0.2.1]" },
	/* the last at sign in front of the suffix is that of the sender */
	{ "a@b@c-@[]", VERP_WANTED, "bob@sink.test", "\"a@bbob=sink.test\"@c" },
	{ "list-@site.example-@[]", VERP_WANTED, "x@y@sink.test", "\"list-x@y=sink.test\"@site.example" },
	{ "list-@site.example-@[]", VERP_WANTED, "\"a b\"@sink.test", "\"list-a b=sink.test\"@site.example" },
	{ "list-@site.example-@[]", VERP_WANTED, "\"ab\"@sink.test", "list-ab=sink.test@site.example" },
	{ "list-@site.example-@[]", VERP_WANTED, "\"a\\\"b\"@sink.test", "\"list-a\\\"b=sink.test\"@site.example" },
	{ "\"my list-\"@site.example-@[]", VERP_WANTED, "bob@sink.test", "\"my list-bob=sink.test\"@site.example" },
	{ "\"list-\"@site.example-@[]", VERP_WANTED, "bob@sink.test", "list-bob=sink.test@site.example" },
	{ "list-@site.example-@[]", VERP_WANTED, "bob", "list-bob=here.example@site.example" },
	{ "list-@site.example-@[]", VERP_WANTED, "b\xc3\xb8""b@sink.test", "list-b\xc3\xb8""b=sink.test@site.example" },
	/* a domain in A-labels, where it has some */
	{ "list-@site.example-@[]", VERP_WANTED, "bob@B\xc3\xbc""cher.example", "list-bob=xn--bcher-kva.example@site.example" },
	{ "list-@site.example-@[]", VERP_WANTED, "bob@-\xc3\xbc.example", "list-bob=-\xc3\xbc.example@site.example" },
	{ "list-@site.example-@[]", VERP_WANTED, "bob@XN--Bcher-kva.example", "list-bob=XN--Bcher-kva.example@site.example" },
	{ "list-@site.example-@[]", VERP_WANTED, "b\xc3\xb8""b@b\xc3\xbc""cher.example", "list-b\xc3\xb8""b=xn--bcher-kva.example@site.example" },
	{ "list.@site.example-@[]", VERP_WANTED, ".bob@sink.test", "\"list..bob=sink.test\"@site.example" },
	/* sent as they stand */
	{ "x-@[]", VERP_MALFORMED, "bob@sink.test", "x-@[]" },
	{ "-@[]", VERP_MALFORMED, "bob@sink.test", "-@[]" },
	{ "x@-@[]", VERP_MALFORMED, "bob@sink.test", "x@-@[]" },
	{ "", VERP_NONE, "bob@sink.test", "" },
	{ "#@[]", VERP_NONE, "bob@sink.test", "#@[]" },
	{ "list@site.example", VERP_NONE, "bob@sink.test", "list@site.example" },
	{ "list@site.example@[]", VERP_NONE, "bob@sink.test", "list@site.example@[]" },
	{ "list@site.example-@[] ", VERP_NONE, "bob@sink.test", "list@site.example-@[] " },
};
/* clang-format on */

Test(verp, each_recipient_has_its_sender)
{
	char out[ADDRESS_MAX + 1];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		cr_expect_eq(verp_kind(rows[i].sender, strlen(rows[i].sender)),
		    rows[i].kind, "%s", rows[i].sender);
		cr_expect_eq(verp_expand(rows[i].sender, rows[i].recipient,
				 "here.example", out),
		    0, "%s", rows[i].sender);
		cr_expect_str_eq(
		    out, rows[i].want, "%s: %s", rows[i].sender, out);
	}
}

/* mutation: common/smtp/verp.c, restore() without the quotes. */
/* In front of the variable part. */
static bool
has_delimiter(const char *stored)
{
	const char *at = strchr(stored, '@');

	return at > stored && strchr("-+=", at[-1]) != NULL;
}

Test(verp, the_stored_form_of_a_sender)
{
	static const struct {
		const char *sender, *recipient;
	} others[] = {
		{ "list@site.example", "bob@sink.test" },
		{ "list-bob=sink.test@site.example", "rob@sink.test" },
		{ "list-bob=sink.test@site.example", "bob@sink.tes" },
		{ "list-bob=sink.test", "bob@sink.test" },
		{ "t@site.example", "bob@sink.test" },
		{ "bob=sink.test@site.example", "bob@sink.test" },
		{ "xbob=sink.test@site.example", "bob@sink.test" },
		{ "", "bob@sink.test" },
	};
	char out[ADDRESS_MAX + 1], stored[ADDRESS_MAX + 1];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].kind != VERP_WANTED ||
		    strchr(rows[i].recipient, '@') == NULL ||
		    !has_delimiter(rows[i].sender))
			continue;
		cr_expect_eq(
		    verp_restore(rows[i].want, rows[i].recipient, stored), 1,
		    "%s", rows[i].want);
		cr_expect_eq(
		    verp_expand(stored, rows[i].recipient, "", out), 0);
		cr_expect_str_eq(out, rows[i].want);
		/* Quotes that are not needed, and those that are. */
		if (strpbrk(rows[i].sender, "\"") == NULL &&
		    rows[i].want[0] != '"')
			cr_expect_str_eq(stored, rows[i].sender);
	}
	cr_expect_eq(verp_restore("\"a list-b=c\"@d", "b@c", stored), 1);
	cr_expect_str_eq(stored, "\"a list-\"@d-@[]");
	snprintf(stored, sizeof(stored), "untouched");
	for (i = 0; i < ARRAY_LEN(others); i++)
		cr_expect_eq(
		    verp_restore(others[i].sender, others[i].recipient, stored),
		    0, "%s", others[i].sender);
	memset(out, 'l', ADDRESS_MAX);
	memcpy(out + ADDRESS_MAX - 6, "-b=c@d", 7);
	cr_expect_eq(verp_restore(out, "b@c", stored), 0);
	cr_expect_str_eq(stored, "untouched");
}

/* "list-@s-@[]" and a recipient of so many octets. */
static int
expand_long(size_t len, char out[ADDRESS_MAX + 1])
{
	char recipient[ADDRESS_MAX + 1];

	memset(recipient, 'u', len);
	memcpy(recipient + len - 2, "@h", 3);
	return verp_expand("list-@s-@[]", recipient, "", out);
}

Test(verp, the_limit_is_that_of_addresses)
{
	char out[ADDRESS_MAX + 1];

	/* list-, @s */
	cr_expect_eq(expand_long(ADDRESS_MAX - 7, out), 0);
	cr_expect_eq(strlen(out), ADDRESS_MAX);
	snprintf(out, sizeof(out), "untouched");
	cr_expect_eq(expand_long(ADDRESS_MAX - 6, out), -ENAMETOOLONG);
	cr_expect_str_eq(out, "untouched");
	/* a local part above 64 octets, a path above 256: carried */
	cr_expect_eq(expand_long(300, out), 0);
}

Test(verp, the_address_in_front_of_the_suffix)
{
	cr_expect_eq(verp_base_len("a@b-@[]", 7), 3);
	cr_expect_eq(verp_base_len("x-@[]", 5), 5);
	cr_expect_eq(verp_base_len("#@[]", 4), 4);
	cr_expect_eq(verp_base_len("", 0), 0);
}

Test(verp, delimiters_of_Postfix_have_the_same_form)
{
	static const struct {
		const char *address;
		int r;
		const char *stored, *sent;
	} forms[] = {
		{ "owner-list@site", 0, "owner-list+@site-@[]",
		    "owner-list+bob=sink.test@site" },
		{ "\"a b\"@site", 0, "\"a b+\"@site-@[]",
		    "\"a b+bob=sink.test\"@site" },
		{ "list", -EINVAL, NULL, NULL },
		{ "list@", -EINVAL, NULL, NULL },
		{ "@site", -EINVAL, NULL, NULL },
		{ "", -EINVAL, NULL, NULL },
	};
	char stored[ADDRESS_MAX + 1], sent[ADDRESS_MAX + 1];
	char longest[ADDRESS_MAX + 1];
	size_t i;

	for (i = 0; i < ARRAY_LEN(forms); i++) {
		cr_expect_eq(verp_compose(forms[i].address, '+', stored),
		    forms[i].r, "%s", forms[i].address);
		if (forms[i].r < 0)
			continue;
		cr_expect_str_eq(stored, forms[i].stored);
		cr_expect_eq(verp_expand(stored, "bob@sink.test", "", sent), 0);
		cr_expect_str_eq(sent, forms[i].sent);
	}
	memset(longest, 'a', ADDRESS_MAX);
	longest[ADDRESS_MAX] = '\0';
	longest[10] = '@';
	cr_expect_eq(verp_compose(longest, '+', stored), -ENAMETOOLONG);
	longest[ADDRESS_MAX - 5] = '\0';
	cr_expect_eq(verp_compose(longest, '+', stored), 0);
	cr_expect_eq(strlen(stored), ADDRESS_MAX);
}
