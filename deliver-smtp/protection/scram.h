/* deliver-smtp/protection/scram.h - the client's side of SCRAM-SHA-256 (RFC
 * 5802, RFC 7677), by libgsasl. The password does not leave this host, and the
 * server proves at the end that it knows the password too.
 *
 * There is no channel binding (SCRAM-SHA-256-PLUS).
 *
 * No I/O and no files; the nonce is the operating system's (getrandom). The
 * password and the key made of it are wiped. Soft: -errno. Never logs.
 */
#ifndef DELIVER_SMTP_PROTECTION_SCRAM_H
#define DELIVER_SMTP_PROTECTION_SCRAM_H

#include "base/buf.h"
#include "route/credentials.h"

/* Rounds of the key derivation that a server may ask for. This many take less
 * than a second, for which the process does nothing else. */
#define SCRAM_ROUNDS_MAX 600000

struct scram;

/* The credential outlives *ret_scram. -ENOMEM. */
int scram_new(const struct credential *c, struct scram **ret_scram);
void scram_free(struct scram **scram);
/* Appends the answer to a challenge in base64; the first challenge is "". The
 * answer is not encoded. -EPROTO: SASLprep refuses the user, or the challenge
 * is malformed or was not expected; -E2BIG: the server asks for more than
 * SCRAM_ROUNDS_MAX; -EKEYREJECTED: the server does not know the password;
 * -ENOMEM. */
int scram_step(struct scram *s, const char *challenge, struct buf *out);
/* The server has proved that it knows the password. */
bool scram_is_proven(const struct scram *s);
/* The latest answer that was not empty; "" before the first. At last it ends
 * with ",p=PROOF". */
const struct buf *scram_answer(const struct scram *s);

#endif
