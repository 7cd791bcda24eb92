/* tests/report has the table of whole reports, which other parsers read. */
#include "report/report.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct report_facts usual = {
	.host = "mail.example.net",
	.from = "MAILER-DAEMON@example.net",
	.to = "s@example.com",
	.sender = "s@example.com",
	.id = "0006432E9F1B2C0A001DEADBEEF",
	.token = "t",
	.now_wall = 1800000600 * USEC_PER_SEC,
	.arrival_wall = 1800000000 * USEC_PER_SEC,
	.content = "Subject: s\n\nbody\n",
	.content_len = 17,
};

/* The report of one recipient. */
static void
build(struct report_facts *r, const struct report_rcpt *to, struct buf *out)
{
	cr_assert_eq(report_begin(r, out), 0);
	cr_assert_eq(report_say(r, to, out), 0);
	cr_assert_eq(report_middle(r, out), 0);
	cr_assert_eq(report_state(r, to, out), 0);
	cr_assert_eq(report_end(r, out), 0);
}

static size_t
count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)) != NULL; text += strlen(what))
		n++;
	return n;
}

Test(report_parts, C5_fields_of_a_recipient)
{
	static const struct {
		const char *name, *want;
		struct report_rcpt to;
	} rows[] = {
		{ "a reply",
		    "\nFinal-Recipient: rfc822; b@x.org\nAction: failed\n"
		    "Status: 5.1.1\nRemote-MTA: dns; mx.x.org\n"
		    "Diagnostic-Code: smtp; 550 5.1.1 no\n",
		    { "b@x.org", NULL, REPORT_FAILED, "5.1.1",
			"mx.x.org[192.0.2.1]:25",
			"host mx.x.org[192.0.2.1] said: 550 5.1.1 no (in "
			"reply to RCPT TO)",
			0 } },
		{ "no reply",
		    "\nStatus: 4.4.7\nDiagnostic-Code: X-Qscheduler; late\n",
		    { "b@x.org", NULL, REPORT_FAILED, "4.4.7", "none", "late",
			0 } },
		{ "another class", "\nAction: delivered\nStatus: 2.0.0\n",
		    { "b@x.org", NULL, REPORT_DELIVERED, "5.1.1", "none", "",
			0 } },
		{ "UTF-8", "\nFinal-Recipient: utf-8; b\\x{E4}\\x{2B}@x.org\n",
		    { "b\xc3\xa4+@x.org", NULL, REPORT_FAILED, "", "none", "",
			0 } },
		{ "line ends", "\nFinal-Recipient: rfc822; b??Action: x??\n",
		    { "b\r\nAction: x\n\n", NULL, REPORT_FAILED, "", "none", "",
			0 } },
		{ "ORCPT", "\nOriginal-Recipient: rfc822; B+?@x.org\n",
		    { "b@x.org", "rfc822;B+2B+0A@x.org", REPORT_FAILED, "",
			"none", "", 0 } },
		{ "blanks", "\nDiagnostic-Code: X-Qscheduler; a b\n",
		    { "b@x.org", NULL, REPORT_FAILED, "", "none",
			"  a                                            "
			"                                               b  ",
			0 } },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct report_facts r = usual;
		struct buf out = { 0 };

		build(&r, &rows[i].to, &out);
		cr_expect_neq(strstr(out.data, rows[i].want), NULL, "%s: %s",
		    rows[i].name, out.data);
		cr_expect_eq(
		    count(out.data, "\nAction: "), 1, "%s", rows[i].name);
		buf_done(&out);
	}
}

/* mutation: common/report/report.c: as_written() leaves the address. */
Test(report_parts, the_address_that_was_written_is_named)
{
	static const struct {
		const char *address, *orcpt, *said, *final;
	} rows[] = {
		{ "|secret -x", "rfc822;te+2Bam@x.org", "<te+am@x.org>",
		    "te+am@x.org" },
		{ ":include:/l:|secret", "RFC822;team@x.org", "<team@x.org>",
		    "team@x.org" },
		{ "b@x.org", "rfc822;team@x.org",
		    "<b@x.org> (sent to <team@x.org>)", "b@x.org" },
		{ "b@x.org", "rfc822;B@X.org", "<b@x.org>", "b@x.org" },
		{ "b@x.org", "rfc822;a+0A+1B[0m",
		    "<b@x.org> (sent to <a??[0m>)", "b@x.org" },
		{ "b@x.org", "x400;team", "<b@x.org>", "b@x.org" },
		{ "|secret", NULL, "<|secret>", "|secret" },
		{ "|secret", "x400;team", "<|secret>", "|secret" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct report_rcpt to = { rows[i].address, rows[i].orcpt,
			REPORT_FAILED, "5.3.0", "none", "no", 0 };
		struct report_facts r = usual;
		struct buf out = { 0 }, want = { 0 };

		build(&r, &to, &out);
		cr_assert_eq(buf_printf(&want, "%s: no", rows[i].said), 0);
		cr_expect_not_null(
		    strstr(buf_str(&out), buf_str(&want)), "%s", buf_str(&out));
		buf_reset(&want);
		cr_assert_eq(buf_printf(&want, "Final-Recipient: rfc822; %s\n",
				 rows[i].final),
		    0);
		cr_expect(strstr(buf_str(&out), buf_str(&want)) != NULL ||
			rows[i].final[0] == '|',
		    "%s", buf_str(&out));
		cr_expect_eq(strstr(buf_str(&out), "secret") == NULL,
		    rows[i].final[0] != '|');
		buf_done(&want);
		buf_done(&out);
	}
}

Test(report_parts, C5_a_boundary_in_the_message_is_not_ours)
{
	static const char content[] = "X: t=_0\n\n--t=_1\n\n--t=_0--\n";
	const struct report_rcpt to = { .address = "--t=_2--\n--t=_2",
		.dsn = "5.1.1",
		.relay = "\n--t=_2",
		.text = "a\n--t=_2--\n" };
	struct report_facts r = usual;
	struct buf out = { 0 };

	r.content = content;
	r.content_len = sizeof(content) - 1;
	r.whole = true;
	build(&r, &to, &out);
	cr_expect_str_eq(r.boundary, "t=_2");
	cr_expect_eq(count(out.data, "\n--t=_2\n"), 3);
	cr_expect_eq(count(out.data, "\n--t=_2--\n"), 1);
	cr_expect_neq(strstr(out.data, content), NULL, "%s", out.data);
	buf_done(&out);
}

Test(report_parts, C5_how_the_message_is_returned)
{
	static const struct {
		const char *name, *content;
		size_t len; /* 0: as a string */
		bool whole;
		const char *want;
	} rows[] = {
		{ "header", "A: b\n\nc\n", 0, false,
		    "text/rfc822-headers\nContent-Transfer-Encoding: 7bit\n\n"
		    "A: b\n\n--" },
		{ "whole", "A: b\n\nc\n", 0, true,
		    "message/rfc822\nContent-Transfer-Encoding: 7bit\n\n"
		    "A: b\n\nc\n\n--" },
		{ "CRLF", "A: b\r\n\r\nc\r\n", 0, true, "\n\nA: b\n\nc\n\n--" },
		{ "8 bit", "A: b\n\n\xff\n", 0, true,
		    "message/rfc822\nContent-Transfer-Encoding: 8bit" },
		{ "UTF-8", "A: \xc3\xa4\n\nc\n", 0, true, "message/global\n" },
		{ "latin 1", "A: \xe4\n\nc\n", 0, true,
		    "text/rfc822-headers; charset=unknown-8bit\n"
		    "Content-Transfer-Encoding: quoted-printable\n\nA: =E4\n" },
		{ "NUL", "A: b\n\na\0c\n", 10, true, "\n\nA: b\n\n--" },
		{ "CR", "A: b\n\na\rc\n", 0, true, "\n\nA: b\n\n--" },
		{ "cut off", "A: b\nB: c", 0, false, "\n\nA: b\n\n--" },
		{ "no header", "body\n", 0, false, "7bit\n\n\n--" },
	};
	const struct report_rcpt to = { .address = "b@x.org",
		.dsn = "5.1.1",
		.relay = "none",
		.text = "no" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct report_facts r = usual;
		struct buf out = { 0 };

		r.content = rows[i].content;
		r.content_len =
		    rows[i].len > 0 ? rows[i].len : strlen(rows[i].content);
		r.whole = rows[i].whole;
		build(&r, &to, &out);
		cr_expect_neq(strstr(out.data, rows[i].want), NULL, "%s: %s",
		    rows[i].name, out.data);
		buf_done(&out);
	}
}

Test(report_parts, words_name_at_most_so_many_recipients)
{
	const struct report_rcpt to = { .address = "b@x.org",
		.dsn = "5.1.1",
		.relay = "none",
		.text = "no" };
	struct report_facts r = usual;
	struct buf out = { 0 };
	uint32_t i;

	cr_assert_eq(report_begin(&r, &out), 0);
	for (i = 0; i < REPORT_SAID_MAX + 7; i++)
		cr_assert_eq(report_say(&r, &to, &out), 0);
	cr_assert_eq(report_middle(&r, &out), 0);
	cr_expect_eq(count(out.data, "<b@x.org>: no"), REPORT_SAID_MAX);
	cr_expect_neq(strstr(out.data, "not named here: 7."), NULL);
	buf_done(&out);
}
