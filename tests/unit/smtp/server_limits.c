#include "server_owner.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* ---- parameters ---- */

struct param_case {
	const char *line, *want; /* of the log */
};

#define XT10 "+41+41+41aaa"
#define X60  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X600 X60 X60 X60 X60 X60 X60 X60 X60 X60 X60

static const struct param_case params[] = {
	{ "MAIL FROM:<a@b> SIZE=10", "{mail a@b 10  }" OK },
	{ "MAIL FROM:<a@b> size=1000", "{mail a@b 1000  }" OK },
	{ "MAIL FROM:<a@b> SIZE=1001",
	    "552 5.3.4 the message is larger than 1000 octets\r\n" },
	{ "MAIL FROM:<a@b> SIZE=99999999999999999999",
	    "501 5.5.4 wrong value of parameter SIZE\r\n" },
	{ "MAIL FROM:<a@b> SIZE=-1",
	    "501 5.5.4 wrong value of parameter SIZE\r\n" },
	{ "MAIL FROM:<a@b> SIZE=",
	    "501 5.5.4 wrong value of parameter SIZE\r\n" },
	{ "MAIL FROM:<a@b> SIZE",
	    "501 5.5.4 wrong value of parameter SIZE\r\n" },
	{ "MAIL FROM:<a@b> SIZE=1 SIZE=1",
	    "501 5.5.4 parameter SIZE is given twice\r\n" },
	{ "MAIL FROM:<a@b> RET=FULL ret=HDRS",
	    "501 5.5.4 parameter ret is given twice\r\n" },
	{ "MAIL FROM:<" X600 "@b>",
	    "501 5.1.7 the sender is longer than 512 octets\r\n" },
	{ "RCPT TO:<a@" X600 ">",
	    "501 5.1.3 the recipient is longer than 512 octets\r\n" },
	{ "MAIL FROM:<a@b> BODY=8bitmime", "{mail a@b 0  }" OK },
	{ "MAIL FROM:<a@b> BODY=7BIT", "{mail a@b 0  }" OK },
	{ "MAIL FROM:<a@b> BODY=BINARYMIME",
	    "501 5.5.4 wrong value of parameter BODY\r\n" },
	{ "MAIL FROM:<a@b> SMTPUTF8", "{mail a@b 0 utf8  }" OK },
	{ "MAIL FROM:<a@b> SMTPUTF8=1",
	    "501 5.5.4 wrong value of parameter SMTPUTF8\r\n" },
	{ "MAIL FROM:<a@b> RET=HDRS ENVID=" XT10,
	    "{mail a@b 0 hdrs " XT10 "}" OK },
	{ "MAIL FROM:<a@b> RET=NONE",
	    "501 5.5.4 wrong value of parameter RET\r\n" },
	{ "MAIL FROM:<a@b> ENVID=a+b",
	    "501 5.5.4 wrong value of parameter ENVID\r\n" },
	{ "MAIL FROM:<a@b> AUTH=<>",
	    "555 5.5.4 parameter AUTH is not known\r\n" },
	{ "MAIL FROM:<a@b> NOTIFY=NEVER",
	    "555 5.5.4 parameter NOTIFY is not known\r\n" },
	{ "MAIL FROM:<a@b>SIZE=1",
	    "501 5.1.7 the sender is no address; MAIL FROM:<address> is "
	    "right\r\n" },
	{ "MAIL FROM:<a@b> > SIZE=1",
	    "555 5.5.4 parameter > is not known\r\n" },
	{ "RCPT TO:<c@d> NOTIFY=SUCCESS,DELAY ORCPT=rfc822;x@y",
	    "{rcpt c@d success,delay rfc822;x@y}" OK },
	{ "RCPT TO:<c@d> NOTIFY=NEVER", "{rcpt c@d never }" OK },
	{ "RCPT TO:<c@d> NOTIFY=NEVER,DELAY",
	    "501 5.5.4 wrong value of parameter NOTIFY\r\n" },
	{ "RCPT TO:<c@d> ORCPT=x@y",
	    "501 5.5.4 wrong value of parameter ORCPT\r\n" },
	{ "RCPT TO:<c@d> SIZE=1", "555 5.5.4 parameter SIZE is not known\r\n" },
};

Test(server_limits, S14_parameters)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(params); i++) {
		const bool rcpt = params[i].line[0] == 'R';
		struct buf input = { 0 }, log = { 0 };
		const char *got;

		buf_printf(&input, "%s%s\r\n",
		    rcpt ? "MAIL FROM:<a@b>\r\n" : "", params[i].line);
		owner_converse(
		    &owner_local, input.data, input.len, SIZE_MAX, &log);
		got = buf_str(&log) + (rcpt ? strlen(MAIL_AB) : 0);
		cr_expect_str_eq(
		    got, params[i].want, "%s: %s", params[i].line, got);
		buf_done(&input);
		buf_done(&log);
	}
}

/* Nothing of an extension that is not offered. */
Test(server_limits, S14_no_extension)
{
	static const char input[] = "EHLO me\r\nMAIL FROM:<a@b> SIZE=1\r\n"
				    "MAIL FROM:<a@b> SMTPUTF8\r\nNOOP\r\n";
	static const struct smtp_server_rules bare = { .host = "mx.example" };
	struct buf log = { 0 };

	owner_converse(&bare, input, sizeof(input) - 1, SIZE_MAX, &log);
	cr_expect_str_eq(buf_str(&log),
	    "250 mx.example\r\n555 parameter SIZE is not known\r\n"
	    "555 parameter SMTPUTF8 is not known\r\n250 Ok\r\n");
	buf_done(&log);
}

/* ---- bounds ---- */

static void
check_line(size_t len, const char *want)
{
	struct buf input = { 0 }, log = { 0 };

	buf_add_str(&input, "NOOP ");
	while (input.len < len - 2)
		buf_add_char(&input, 'x');
	buf_add_str(&input, "\r\nNOOP\r\n");
	owner_converse(&owner_strict, input.data, input.len, 100, &log);
	cr_expect_str_eq(buf_str(&log), want, "%zu: %s", len, buf_str(&log));
	/* Its LF alone is the last slice. */
	owner_converse(&owner_strict, input.data, input.len, 1, &log);
	cr_expect_str_eq(buf_str(&log), want, "%zu: %s", len, buf_str(&log));
	buf_done(&input);
	buf_done(&log);
}

Test(server_limits, S14_long_lines)
{
	static const char too_long[] =
	    "500 5.5.2 the command is longer than 2048 octets\r\n"
	    "250 2.0.0 Ok\r\n";

	check_line(SMTP_SERVER_LINE_MAX, "250 2.0.0 Ok\r\n250 2.0.0 Ok\r\n");
	check_line(SMTP_SERVER_LINE_MAX + 1, too_long);
	check_line(100 * SMTP_SERVER_LINE_MAX, too_long);
}

/* As many commands as a slice has: replies never outgrow their memory. */
Test(server_limits, S14_replies_are_bounded)
{
	struct smtp_server *s = malloc(sizeof(*s));
	struct buf input = { 0 }, log = { 0 };
	size_t i, at, used, writes = 0;
	enum smtp_server_event event;

	for (i = 0; i < 1000; i++)
		buf_add_str(&input, "EHLO me\r\n");
	smtp_server_init(s, &owner_strict);
	for (at = 0;; at += used) {
		event =
		    smtp_server_feed(s, input.data + at, input.len - at, &used);
		if (event == SMTP_SERVER_WANT)
			break;
		cr_assert_eq(event, SMTP_SERVER_WRITE);
		cr_assert_leq(s->out_len, sizeof(s->out));
		writes++;
		owner_write(s, &log);
	}
	owner_write(s, &log);
	cr_expect_gt(writes, 10);
	cr_expect_eq(at + used, input.len);
	cr_expect_eq(log.len,
	    strlen("220 mx.example ESMTP qscheduler\r\n") +
		1000 * strlen(EHLO_REPLY));
	buf_done(&input);
	buf_done(&log);
	free(s);
}

Test(server_limits, S14_too_many_errors_end_the_session)
{
	struct smtp_server_rules rules = owner_strict;
	static const char input[] =
	    "EHLO me\r\nX\r\nX\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n"
	    ".\r\nX\r\nX\r\nX\r\nNOOP\r\n";
	static const char unknown[] = "500 5.5.2 the command is not known\r\n";
	struct buf log = { 0 }, want = { 0 };

	rules.error_max = 2;
	owner_converse(&rules, input, sizeof(input) - 1, SIZE_MAX, &log);
	buf_printf(&want, "%s%s%s%s%s%s%s%s%s", EHLO_REPLY, unknown, unknown,
	    MAIL_AB RCPT_CD DATA_OK, END_OK, unknown, unknown, unknown,
	    "421 4.7.0 too many errors\r\n{close}");
	cr_expect_str_eq(buf_str(&log), buf_str(&want), "%s", buf_str(&log));
	buf_done(&log);
	buf_done(&want);
}

/* The owner's words: whatever is in these, a reply is one line. */
Test(server_limits, S14_words_of_the_owner)
{
	struct smtp_server *s = malloc(sizeof(*s));
	char text[2000];
	size_t used;

	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "a\r\nb\x80\x7f\0", 6);
	text[sizeof(text) - 1] = '\0';
	smtp_server_init(s, &owner_local);
	smtp_server_written(s, s->out_len);
	cr_assert_eq(smtp_server_feed(s, BYTES("MAIL FROM:<>\r\n"), &used),
	    SMTP_SERVER_MAIL);
	smtp_server_answer(s, 550, "5.0.0", "%s", text);
	cr_expect_leq(s->out_len, 512);
	cr_expect_eq(memcmp(s->out, "550 5.0.0 a??b??xxx", 19), 0);
	cr_expect_eq(
	    (char *)memchr(s->out, '\n', s->out_len), s->out + s->out_len - 1);
	smtp_server_shut(s, "4.3.2", "the end");
	smtp_server_shut(s, "4.3.2", "once");
	cr_expect_eq(smtp_server_feed(s, "x", 1, &used), SMTP_SERVER_CLOSE);
	cr_expect_not_null(strstr(s->out, "\r\n421 4.3.2 the end\r\n"));
	cr_expect_null(memmem(s->out, s->out_len, "once", 4));
	free(s);
}

/* An output that takes little at a time gets each octet once. */
Test(server_limits, S14_replies_are_written_in_parts)
{
	static const char want[] = "220 mx.example ESMTP qscheduler\r\n"
				   "250 2.0.0 Ok\r\n421 4.3.2 the end\r\n";
	struct smtp_server *s = malloc(sizeof(*s));
	struct buf got = { 0 };
	size_t used;

	smtp_server_init(s, &owner_local);
	buf_add(&got, s->out, 5);
	smtp_server_written(s, 5);
	cr_assert_eq(
	    smtp_server_feed(s, BYTES("NOOP\r\n"), &used), SMTP_SERVER_WANT);
	buf_add(&got, s->out, 30);
	smtp_server_written(s, 30);
	smtp_server_shut(s, "4.3.2", "the end");
	owner_write(s, &got);
	cr_expect_str_eq(buf_str(&got), want, "%s", buf_str(&got));
	buf_done(&got);
	free(s);
}
