/* deliver-smtp/peers.h - servers with which pipelining went wrong (N9): for an
 * hour they are spoken to in lock-step from the start. A short list; what does
 * not fit pushes out the oldest, which costs one connection at most. */
#ifndef DELIVER_SMTP_PEERS_H
#define DELIVER_SMTP_PEERS_H

#include "base/base.h"

#define PEERS_MAX  64
#define PEERS_KEEP (3600 * USEC_PER_SEC)

struct peers {
	uint64_t names[PEERS_MAX]; /* hashes; a false hit only costs speed */
	usec_t until[PEERS_MAX];
	size_t next;
};

void peers_add(struct peers *p, const char *relay, usec_t now);
bool peers_has(const struct peers *p, const char *relay, usec_t now);

#endif
