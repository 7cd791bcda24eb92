/* deliver-smtp/protection/auth.h - SMTP AUTH (RFC 4954): the words of a
 * mechanism. SCRAM-SHA-256, PLAIN (RFC 4616) and LOGIN for a password;
 * OAUTHBEARER (RFC 7628) and XOAUTH2 for a token.
 *
 * Pure but for the nonce of SCRAM. -ENOMEM.
 */
#ifndef DELIVER_SMTP_PROTECTION_AUTH_H
#define DELIVER_SMTP_PROTECTION_AUTH_H

#include "base/buf.h"
#include "deliver-smtp/protection/scram.h"
#include "smtp/smtp.h"

/* One exchange, from AUTH to its reply; zeroed at first. The credential
 * outlives it. */
struct auth {
	const struct credential *credential;
	const struct mechanism *mechanism; /* NULL: none was begun */
	unsigned said;                     /* words of the mechanism */
	struct buf held;     /* first words that did not fit into the command */
	struct scram *scram; /* or NULL: another mechanism */
};

/* The best one of enum smtp_auth; 0: none that is offered is for these
 * credentials. */
unsigned auth_choose(unsigned offered, const struct credential *c);
/* "AUTH PLAIN", … with the first words behind it where a line has the room. An
 * exchange that was begun before is forgotten. -EPROTO: the mechanism has no
 * form of this user name, and *out is unchanged. */
int auth_begin(struct auth *a, struct buf *out, unsigned mechanism,
    const struct credential *c);
/* The answer to the challenge of a reply. -EPROTO: the mechanism has no more to
 * say, so that no server can ask for ever, or the challenge is malformed;
 * -E2BIG, -EKEYREJECTED: as scram_step(). */
int
auth_answer(struct auth *a, struct buf *out, const struct smtp_reply *reply);
/* The server said yes. Has it also proved itself, where the mechanism has a
 * proof? */
bool auth_is_proven(const struct auth *a);
/* Name of the mechanism; "": none was begun. */
const char *auth_name(const struct auth *a);
/* Words of a server are shown to people: if the secret, or a proof that it is
 * known, is among them, as it is or encoded as it was sent, all of the text is
 * taken away. */
void
auth_hide(const struct auth *a, const struct credential *c, struct buf *text);
void auth_done(struct auth *a);

#endif
