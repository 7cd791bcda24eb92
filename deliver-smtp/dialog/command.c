#include "deliver-smtp/dialog/steps.h"

#include <inttypes.h>

#include "smtp/smtp.h"

/* RET and ENVID. ENVID and ORCPT are xtext since they were accepted: nothing in
 * them ends a parameter. */
static int
add_wishes(struct buf *out, const struct dsn_mail *dsn)
{
	int r = 0;

	if (dsn->ret != DSN_RET_NONE)
		r = buf_add_str(
		    out, dsn->ret == DSN_RET_FULL ? " RET=FULL" : " RET=HDRS");
	if (r == 0 && dsn->envid[0] != '\0')
		r = buf_printf(out, " ENVID=%s", dsn->envid);
	return r;
}

static int
add_rcpt_wishes(struct buf *out, const struct agent_rcpt *rcpt)
{
	char notify[DSN_NOTIFY_MAX];
	int r = 0;

	dsn_notify_format(rcpt->notify, notify);
	if (notify[0] != '\0')
		r = buf_printf(out, " NOTIFY=%s", notify);
	if (r == 0 && rcpt->orcpt != NULL)
		r = buf_printf(out, " ORCPT=%s", rcpt->orcpt);
	return r;
}

/* A server without SMTPUTF8 gets a domain in A-labels. */
static int
add_path(struct buf *out, const char *address, const struct smtp_ehlo *offered)
{
	char ascii[ADDRESS_FOLDED_MAX + 1];
	const char *why;
	int r = 0;

	if (!offered->utf8 && smtp_path_is_utf8(address)) {
		r = smtp_path_to_ascii(address, ascii, &why);
		address = ascii;
	}
	return r < 0 ? r : smtp_path_add(out, address);
}

int
command_mail(struct buf *out, const struct command_mail *mail,
    const struct smtp_ehlo *offered)
{
	int r = buf_add_str(out, "MAIL FROM:");

	if (r == 0)
		r = add_path(out, mail->sender, offered);
	if (r == 0 && offered->size && !mail->unsized)
		r = buf_printf(out, " SIZE=%" PRIu64, mail->size);
	if (r == 0 && offered->eight_bit && (mail->eight_bit || mail->utf8))
		r = buf_add_str(out, " BODY=8BITMIME");
	if (r == 0 && offered->utf8 && mail->utf8)
		r = buf_add_str(out, " SMTPUTF8");
	if (r == 0 && offered->dsn)
		r = add_wishes(out, mail->dsn);
	return r < 0 ? r : buf_add_str(out, "\r\n");
}

int
command_rcpt(struct buf *out, const struct agent_rcpt *rcpt,
    const struct smtp_ehlo *offered)
{
	int r = buf_add_str(out, "RCPT TO:");

	if (r == 0)
		r = add_path(out, rcpt->address, offered);
	if (r == 0 && offered->dsn)
		r = add_rcpt_wishes(out, rcpt);
	return r < 0 ? r : buf_add_str(out, "\r\n");
}
