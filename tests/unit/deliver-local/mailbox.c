#include "deliver-local/child.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

Test(mailbox, addresses)
{
	static const struct {
		const char *address;
		int want;
		const char *user, *base, *domain;
	} rows[] = {
		{ "bob@example.org", 0, "bob", "bob", "example.org" },
		{ "Bob@Example.ORG", 0, "bob", "bob", "example.org" },
		{ "bob", 0, "bob", "bob", "" },
		{ "bob+list@x", 0, "bob+list", "bob", "x" },
		{ "bob+a+b@x", 0, "bob+a+b", "bob", "x" },
		{ "+ext@x", 0, "+ext", "+ext", "x" },
		{ "bob+@x", 0, "bob+", "bob", "x" },
		{ "\"john doe\"@x", 0, "john doe", "john doe", "x" },
		{ "\"a\\\"b\"@x", 0, "a\"b", "a\"b", "x" },
		{ "a@b@x", 0, "a@b", "a@b", "x" },
		{ "-rf@x", 0, "-rf", "-rf", "x" },
		{ "$(id)@x", 0, "$(id)", "$(id)", "x" },
		{ "gr\xc3\xbc\xc3\x9f@x", 0, "gr\xc3\xbc\xc3\x9f",
		    "gr\xc3\xbc\xc3\x9f", "x" },
		{ "", -EINVAL, "", "", "" },
		{ "@x", -EINVAL, "", "", "" },
		{ "\"\"@x", -EINVAL, "", "", "" },
		{ ".@x", -EINVAL, "", "", "" },
		{ "..@x", -EINVAL, "", "", "" },
		{ ".profile@x", -EINVAL, "", "", "" },
		{ "../bob@x", -EINVAL, "", "", "" },
		{ "/etc/passwd@x", -EINVAL, "", "", "" },
		{ "bob/new@x", -EINVAL, "", "", "" },
		{ "\"bob/\\../x\"@x", -EINVAL, "", "", "" },
		{ "\"\\.\\.\"@x", -EINVAL, "", "", "" },
		{ "bob@.", -EINVAL, "", "", "" },
		{ "bob@..", -EINVAL, "", "", "" },
		{ "bob@a/../b", -EINVAL, "", "", "" },
		{ "b\tb@x", -EINVAL, "", "", "" },
		{ "b\x7f@x", -EINVAL, "", "", "" },
		{ "b@x\ny", -EINVAL, "", "", "" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct mailbox m = { 0 };
		const char *why = NULL;

		cr_expect_eq(mailbox_parse(rows[i].address, &m, &why),
		    rows[i].want, "%s", rows[i].address);
		cr_expect_str_eq(m.user, rows[i].user, "%s", rows[i].address);
		cr_expect_str_eq(m.base, rows[i].base, "%s", rows[i].address);
		cr_expect_str_eq(
		    m.domain, rows[i].domain, "%s", rows[i].address);
		cr_expect_eq(
		    why != NULL, rows[i].want < 0, "%s", rows[i].address);
	}
}

Test(mailbox, S10_long_parts)
{
	char address[600];
	struct mailbox m;
	const char *why;

	memset(address, 'a', sizeof(address));
	memcpy(address + MAILBOX_PART_MAX, "@x", 3);
	cr_expect_eq(mailbox_parse(address, &m, &why), 0);
	cr_expect_eq(strlen(m.user), MAILBOX_PART_MAX);
	memset(address, 'a', sizeof(address));
	memcpy(address + MAILBOX_PART_MAX + 1, "@x", 3);
	cr_expect_eq(mailbox_parse(address, &m, &why), -EINVAL);
	memset(address, 'a', sizeof(address));
	address[1] = '@';
	address[2 + MAILBOX_PART_MAX + 1] = '\0';
	cr_expect_eq(mailbox_parse(address, &m, &why), -EINVAL);
}

Test(mailbox, paths)
{
	static const struct {
		const char *template, *user, *domain, *home;
		int want;
		const char *path;
	} rows[] = {
		{ "%h/Maildir/", "bob", "x", "/home/bob", 0,
		    "/home/bob/Maildir" },
		{ "/mail/%d/%u", "bob", "x.org", NULL, 0, "/mail/x.org/bob" },
		{ "/mail/%u%%%u///", "b", "x", NULL, 0, "/mail/b%b" },
		{ "/mail/%u", "%d%h", "x", "/h", 0, "/mail/%d%h" },
		{ "/", "b", "x", NULL, 0, "/" },
		{ "/mail/%d/%u", "bob", "", NULL, -EDESTADDRREQ, NULL },
		{ "%h/Maildir", "bob", "x", "", -ENOENT, NULL },
		{ "%h/Maildir", "bob", "x", NULL, -ENOENT, NULL },
		{ "%h/Maildir", "bob", "x", "home", -EINVAL, NULL },
		{ "mail/%u", "bob", "x", NULL, -EINVAL, NULL },
		{ "", "bob", "x", NULL, -EINVAL, NULL },
		{ "/mail/%x", "bob", "x", NULL, -EINVAL, NULL },
		{ "/mail/%", "bob", "x", NULL, -EINVAL, NULL },
	};
	struct buf out = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct mailbox_values values = { .user = rows[i].user,
			.domain = rows[i].domain,
			.home = rows[i].home };

		cr_expect_eq(mailbox_path(rows[i].template, &values, &out),
		    rows[i].want, "%s", rows[i].template);
		if (rows[i].want == 0)
			cr_expect_str_eq(buf_str(&out), rows[i].path, "%s",
			    rows[i].template);
	}
	buf_done(&out);
}

Test(mailbox, a_path_too_long_for_the_system)
{
	const struct mailbox_values values = { .user = "u" };
	static char template[5000];
	struct buf out = { 0 };

	memset(template, 'a', sizeof(template) - 1);
	template[0] = '/';
	cr_expect_eq(mailbox_path(template, &values, &out), -ENAMETOOLONG);
	buf_done(&out);
}

Test(mailbox, which_escapes_are_used)
{
	cr_expect(mailbox_path_uses("%h/Maildir", 'h'));
	cr_expect(mailbox_path_uses("/mail/%d/%u", 'u'));
	cr_expect_not(mailbox_path_uses("/mail/%d/%u", 'h'));
	cr_expect_not(mailbox_path_uses("/mail/%%h", 'h'));
	cr_expect_not(mailbox_path_uses("/mail/%", 'h'));
	cr_expect_not(mailbox_path_uses("", 'h'));
}
