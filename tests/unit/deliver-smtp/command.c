#include "deliver-smtp/steps.h"

#include <criterion/criterion.h>

Test(command, mail_takes_what_is_offered_and_needed)
{
	struct smtp_ehlo all = {
		.size = true, .eight_bit = true, .utf8 = true
	};
	struct smtp_ehlo none = { 0 };
	struct command_mail mail = { .sender = "a@b", .size = 12 };
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
