/* deliver-smtp/protection/auth.h - SMTP AUTH (RFC 4954): the words of a
 * mechanism. PLAIN (RFC 4616) or, where that is not offered, LOGIN for a
 * password; XOAUTH2 for a token.
 *
 * Pure. -ENOMEM.
 */
#ifndef DELIVER_SMTP_PROTECTION_AUTH_H
#define DELIVER_SMTP_PROTECTION_AUTH_H

#include "base/buf.h"
#include "route/credentials.h"
#include "smtp/smtp.h"

/* One of enum smtp_auth; 0: none that is offered is for these credentials. */
unsigned auth_choose(unsigned offered, const struct credential *c);
/* "AUTH PLAIN", … with the first words behind it where a line has the room.
 * *ret_said: how many words of the mechanism were said. */
int auth_begin(struct buf *out, unsigned mechanism, const struct credential *c,
    unsigned *ret_said);
/* The next words, when `said` were said. -EPROTO: the mechanism has no more, so
 * that no server can ask for ever. */
int auth_answer(struct buf *out, unsigned mechanism, const struct credential *c,
    unsigned said);
/* Words of a server are shown to people: if the secret is among them, as it is
 * or encoded as it was sent, all of the text is taken away. */
void auth_hide(struct buf *text, const struct credential *c);

#endif
