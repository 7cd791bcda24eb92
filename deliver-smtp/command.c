#include "deliver-smtp/steps.h"

#include <inttypes.h>

#include "smtp/smtp.h"

int
command_hello(struct buf *out, const char *verb, const char *helo)
{
	return buf_printf(out, "%s %s\r\n", verb, helo);
}

int
command_mail(struct buf *out, const struct command_mail *mail,
    const struct smtp_ehlo *offered)
{
	int r = buf_add_str(out, "MAIL FROM:");

	if (r == 0)
		r = smtp_path_add(out, mail->sender);
	if (r == 0 && offered->size)
		r = buf_printf(out, " SIZE=%" PRIu64, mail->size);
	if (r == 0 && offered->eight_bit && (mail->eight_bit || mail->utf8))
		r = buf_add_str(out, " BODY=8BITMIME");
	if (r == 0 && offered->utf8 && mail->utf8)
		r = buf_add_str(out, " SMTPUTF8");
	return r < 0 ? r : buf_add_str(out, "\r\n");
}

int
command_rcpt(struct buf *out, const char *address)
{
	int r = buf_add_str(out, "RCPT TO:");

	if (r == 0)
		r = smtp_path_add(out, address);
	return r < 0 ? r : buf_add_str(out, "\r\n");
}

int
command_plain(struct buf *out, const char *line)
{
	return buf_printf(out, "%s\r\n", line);
}
