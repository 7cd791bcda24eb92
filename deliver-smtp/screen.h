/* deliver-smtp/screen.h - what a server cannot be asked, known from what it
 * offers before a word about the message is said (N13). Pure. */
#ifndef DELIVER_SMTP_SCREEN_H
#define DELIVER_SMTP_SCREEN_H

#include "smtp/smtp.h"
#include "deliver-smtp/verdict.h"

/* Each: true when it is refused, with the reason in *v. */
bool screen_message(const char *sender, uint64_t size, const char *peer,
    const struct smtp_ehlo *offered, struct verdict *v);
bool screen_recipient(const char *address, const char *peer,
    const struct smtp_ehlo *offered, struct verdict *v);

#endif
