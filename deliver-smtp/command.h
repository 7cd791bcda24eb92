/* deliver-smtp/command.h - the commands, as octets. -ENOMEM; -EINVAL for an
 * address that no command can carry (path.h). */
#ifndef DELIVER_SMTP_COMMAND_H
#define DELIVER_SMTP_COMMAND_H

#include "smtp/smtp.h"

struct command_mail {
	const char *sender;
	bool eight_bit, utf8; /* what the message needs */
	uint64_t size;
};

int command_hello(struct buf *out, const char *verb, const char *helo);
/* With the parameters that the server offers and the message needs. */
int command_mail(struct buf *out, const struct command_mail *mail,
    const struct smtp_ehlo *offered);
int command_rcpt(struct buf *out, const char *address);
/* DATA, QUIT, the dot alone. */
int command_plain(struct buf *out, const char *line);

#endif
