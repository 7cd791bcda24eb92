#include "deliver-smtp/dialog/steps.h"

#include <criterion/criterion.h>
#include <stdio.h>

Test(command, mail_takes_what_is_offered_and_needed)
{
	struct smtp_ehlo all = {
		.size = true, .eight_bit = true, .utf8 = true
	};
	struct smtp_ehlo none = { 0 };
	const struct dsn_mail dsn = { 0 };
	struct command_mail mail = { .sender = "a@b", .size = 12, .dsn = &dsn };
	struct buf out = { 0 };

	command_mail(&out, &mail, &all);
	command_mail(&out, &mail, &none);
	mail.eight_bit = true;
	command_mail(&out, &mail, &all);
	command_mail(&out, &mail, &none);
	mail.utf8 = true;
	command_mail(&out, &mail, &all);
	command_mail(&out, &mail, &none);
	cr_expect_str_eq(buf_str(&out),
	    "MAIL FROM:<a@b> SIZE=12\r\nMAIL FROM:<a@b>\r\n"
	    "MAIL FROM:<a@b> SIZE=12 BODY=8BITMIME\r\nMAIL FROM:<a@b>\r\n"
	    "MAIL FROM:<a@b> SIZE=12 BODY=8BITMIME SMTPUTF8\r\n"
	    "MAIL FROM:<a@b>\r\n");
	buf_done(&out);
}

Test(command, wishes_go_to_servers_that_offer_dsn)
{
	static const struct {
		struct dsn_mail mail;
		uint8_t notify;
		const char *orcpt, *want;
	} rows[] = {
		{ { 0 }, 0, NULL, "MAIL FROM:<>\r\nRCPT TO:<a@b>\r\n" },
		{ { DSN_RET_FULL, "QQ+2B1" }, DSN_NEVER, NULL,
		    "MAIL FROM:<> RET=FULL ENVID=QQ+2B1\r\n"
		    "RCPT TO:<a@b> NOTIFY=never\r\n" },
		{ { DSN_RET_HDRS, "" }, DSN_SUCCESS | DSN_FAILURE | DSN_DELAY,
		    "rfc822;x+40y",
		    "MAIL FROM:<> RET=HDRS\r\nRCPT TO:<a@b> "
		    "NOTIFY=success,failure,delay ORCPT=rfc822;x+40y\r\n" },
	};
	const struct smtp_ehlo offered = { .dsn = true }, none = { 0 };
	struct buf out = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		char address[] = "a@b", orcpt[32] = "";
		const struct command_mail mail = { .sender = "",
			.dsn = &rows[i].mail };
		struct agent_rcpt rcpt = { .address = address,
			.notify = rows[i].notify };

		if (rows[i].orcpt != NULL) {
			snprintf(orcpt, sizeof(orcpt), "%s", rows[i].orcpt);
			rcpt.orcpt = orcpt;
		}
		command_mail(&out, &mail, &offered);
		command_rcpt(&out, &rcpt, &offered);
		cr_expect_str_eq(buf_str(&out), rows[i].want, "%zu", i);
		buf_reset(&out);
		command_mail(&out, &mail, &none);
		command_rcpt(&out, &rcpt, &none);
		cr_expect_str_eq(buf_str(&out), rows[0].want, "%zu", i);
		buf_reset(&out);
	}
	buf_done(&out);
}
