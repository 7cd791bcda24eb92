/* route/sender_relay.h - sender_dependent_relayhost: the relay of mail by its
 * sender, in place of relayhost. A file, one row a line, `#` comments:
 *
 *	user@domain	nexthop
 *	@domain		nexthop
 *
 * The address comes first, then the address without its +extension, then its
 * domain. Of a VERP sender it is the address in front of the suffix
 * (base/verp.h). Neither part has case, and domains compare as base/domain.h
 * spells them. A next hop is one as relayhost takes it; the word DUNNO leaves the
 * sender with relayhost. The null sender has no row. The same key twice is an
 * error.
 *
 * A table does not change once loaded. Soft: -errno, with the text in
 * *ret_error as route.h says. Never logs. One owner.
 */
#ifndef ROUTE_SENDER_RELAY_H
#define ROUTE_SENDER_RELAY_H

#include "base/buf.h"

struct sender_relays;

struct sender_relay {
	const char *nexthop; /* in A-labels; NULL: relayhost decides */
	uint32_t line;
};

/* -ENOENT for no file, -EINVAL for the first wrong line. */
int sender_relays_load(
    const char *path, struct sender_relays **ret_relays, struct buf *ret_error);
/* Each wrong line, as base/wrong_lines.h tells them. 0: the load succeeds. */
int sender_relays_judge(const char *path, struct buf *ret_errors);
void sender_relays_free(struct sender_relays **relays);

/* 1: a row fits the sender; 0: none does; -ENOMEM. relays may be NULL. */
int sender_relays_find(const struct sender_relays *relays, const char *sender,
    struct sender_relay *ret_relay);

#endif
