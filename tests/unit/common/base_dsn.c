#include "base/dsn.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

Test(dsn, notify)
{
	static const struct {
		const char *text;
		int want; /* -1: refused */
	} rows[] = {
		{ "never", DSN_NEVER },
		{ "NEVER", DSN_NEVER },
		{ "success", DSN_SUCCESS },
		{ "failure,delay", DSN_FAILURE | DSN_DELAY },
		{ "Delay,Success,Failure",
		    DSN_SUCCESS | DSN_FAILURE | DSN_DELAY },
		{ "success,success", DSN_SUCCESS },
		{ "", -1 },
		{ "never,failure", -1 },
		{ "failure,never", -1 },
		{ "failure,", -1 },
		{ ",failure", -1 },
		{ "failures", -1 },
		{ "fail", -1 },
		{ "failure delay", -1 },
	};
	char text[DSN_NOTIFY_MAX];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t got = 99, again;
		int r = dsn_notify_parse(rows[i].text, &got);

		cr_expect_eq(
		    r, rows[i].want < 0 ? -EINVAL : 0, "%s", rows[i].text);
		cr_expect_eq(got, rows[i].want < 0 ? 99 : rows[i].want, "%s",
		    rows[i].text);
		if (r < 0)
			continue;
		dsn_notify_format(got, text);
		cr_expect_eq(dsn_notify_parse(text, &again), 0, "%s", text);
		cr_expect_eq(again, got);
	}
	dsn_notify_format(0, text);
	cr_expect_str_eq(text, "");
}

Test(dsn, which_notify_is_valid)
{
	unsigned i, valid = 0;

	for (i = 0; i < 256; i++)
		valid += dsn_notify_is_valid(i);
	cr_expect_eq(valid, 9u, "none, never, and the sums of three");
	cr_expect(dsn_notify_is_valid(DSN_NEVER));
	cr_expect_not(dsn_notify_is_valid(DSN_NEVER | DSN_FAILURE));
}

Test(dsn, ret)
{
	uint8_t ret = 0;

	cr_expect_eq(dsn_ret_parse("full", &ret), 0);
	cr_expect_eq(ret, DSN_RET_FULL);
	cr_expect_eq(dsn_ret_parse("HDRS", &ret), 0);
	cr_expect_eq(ret, DSN_RET_HDRS);
	cr_expect_eq(dsn_ret_parse("", &ret), -EINVAL);
	cr_expect_eq(dsn_ret_parse("headers", &ret), -EINVAL);
	cr_expect_str_eq(dsn_ret_name(DSN_RET_HDRS), "hdrs");
	cr_expect_str_eq(dsn_ret_name(DSN_RET_FULL), "full");
	cr_expect_str_eq(dsn_ret_name(0), "");
}

Test(dsn, the_default_is_failure_and_delay)
{
	cr_expect(dsn_wants(0, DSN_FAILURE));
	cr_expect(dsn_wants(0, DSN_DELAY));
	cr_expect_not(dsn_wants(0, DSN_SUCCESS));
	cr_expect_not(dsn_wants(DSN_NEVER, DSN_FAILURE));
	cr_expect_not(dsn_wants(DSN_NEVER, DSN_DELAY));
	cr_expect_not(dsn_wants(DSN_SUCCESS, DSN_FAILURE));
	cr_expect(dsn_wants(DSN_SUCCESS | DSN_DELAY, DSN_SUCCESS));
}

Test(dsn, envid_and_orcpt)
{
	static const struct {
		const char *text;
		int envid, orcpt;
	} rows[] = {
		{ "", -EINVAL, -EINVAL },
		{ "QQ314159", 0, -EINVAL },
		{ "a+2Bb+3Dc+20d", 0, -EINVAL },
		{ "rfc822;bob@example.org", 0, 0 },
		{ "utf-8;bob+5Cx{E4}@example.org", 0, 0 },
		{ "rfc822;", 0, -EINVAL },
		{ ";bob", 0, -EINVAL },
		{ "rfc 822;bob", -EINVAL, -EINVAL },
		{ "rfc822;a b", -EINVAL, -EINVAL },
		{ "rfc822;a=b", -EINVAL, -EINVAL },
		{ "rfc822;a+", -EINVAL, -EINVAL },
		{ "rfc822;a+2", -EINVAL, -EINVAL },
		{ "rfc822;a+2b", -EINVAL, -EINVAL },
		{ "rfc822;a+0Ab", -EINVAL, -EINVAL },
		{ "rfc822;a+1B[2J", -EINVAL, -EINVAL },
		{ "rfc822;a+00", -EINVAL, -EINVAL },
		{ "rfc822;a+7F", -EINVAL, -EINVAL },
		{ "rfc822;a+E4", -EINVAL, -EINVAL },
		{ "rfc822;\xc3\xa4", -EINVAL, -EINVAL },
		{ "a\nX: y", -EINVAL, -EINVAL },
		{ "rfc822;a\tb", -EINVAL, -EINVAL },
		{ "rfc822;a\x7f", -EINVAL, -EINVAL },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const size_t len = strlen(rows[i].text);

		cr_expect_eq(dsn_envid_check(rows[i].text, len), rows[i].envid,
		    "%s", rows[i].text);
		cr_expect_eq(dsn_orcpt_check(rows[i].text, len), rows[i].orcpt,
		    "%s", rows[i].text);
	}
	cr_expect_eq(dsn_envid_check("a\0b", 3), -EINVAL);
	cr_expect_eq(dsn_envid_check("a+2Bx", 3), -EINVAL, "cut");
}

Test(dsn, limits_are_exact)
{
	struct dsn_mail mail = { .envid = "kept" };
	struct dsn_rcpt rcpt = { .orcpt = "x;kept" };
	char text[DSN_ORCPT_MAX + 2];

	memset(text, 'x', sizeof(text));
	cr_expect_eq(
	    dsn_envid_set(&mail, text, DSN_ENVID_MAX + 1), -ENAMETOOLONG);
	cr_expect_str_eq(mail.envid, "kept");
	cr_expect_eq(dsn_envid_set(&mail, text, DSN_ENVID_MAX), 0);
	cr_expect_eq(strlen(mail.envid), (size_t)DSN_ENVID_MAX);
	text[1] = ';';
	cr_expect_eq(
	    dsn_orcpt_set(&rcpt, text, DSN_ORCPT_MAX + 1), -ENAMETOOLONG);
	cr_expect_str_eq(rcpt.orcpt, "x;kept");
	cr_expect_eq(dsn_orcpt_set(&rcpt, text, DSN_ORCPT_MAX), 0);
	cr_expect_eq(strlen(rcpt.orcpt), (size_t)DSN_ORCPT_MAX);
}

Test(dsn, an_address_as_it_was_written)
{
	static const struct {
		const char *address, *want;
	} rows[] = {
		{ "team@one.test", "rfc822;team@one.test" },
		{ "a+b=c@x", "rfc822;a+2Bb+3Dc@x" },
		{ "\"a b\"@x", "rfc822;\"a+20b\"@x" },
	};
	struct dsn_rcpt rcpt = { 0 };
	char text[DSN_ORCPT_MAX + 2] = "";
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		cr_expect_eq(dsn_orcpt_write(&rcpt, rows[i].address), 0);
		cr_expect_str_eq(rcpt.orcpt, rows[i].want);
	}
	cr_expect_eq(dsn_orcpt_write(&rcpt, "b\xc3\xa4r@x"), -EINVAL);
	cr_expect_eq(dsn_orcpt_write(&rcpt, ""), -EINVAL);
	memset(text, 'x', DSN_ORCPT_MAX - 7);
	cr_expect_eq(dsn_orcpt_write(&rcpt, text), 0);
	for (i = 0; i < 4; i++) {
		memset(text, i % 2 == 0 ? 'x' : '+', DSN_ORCPT_MAX - 6 + i);
		cr_expect_eq(dsn_orcpt_write(&rcpt, text), -ENAMETOOLONG);
	}
}

Test(dsn, what_is_empty)
{
	cr_expect(dsn_mail_is_empty(&(struct dsn_mail){ 0 }));
	cr_expect_not(dsn_mail_is_empty(&(struct dsn_mail){ .ret = 'F' }));
	cr_expect_not(dsn_mail_is_empty(&(struct dsn_mail){ .envid = "x" }));
	cr_expect(dsn_rcpt_is_empty(&(struct dsn_rcpt){ 0 }));
	cr_expect_not(dsn_rcpt_is_empty(&(struct dsn_rcpt){ .notify = 1 }));
	cr_expect_not(dsn_rcpt_is_empty(&(struct dsn_rcpt){ .orcpt = "x;y" }));
}
