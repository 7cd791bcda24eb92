/* deliver-smtp/reach/lookup.h - the hosts of a next hop and their addresses, by
 * /etc/hosts and DNS (docs/DELIVERY.md, "Next hop").
 *
 *	lookup.c  the steps
 *	ours.c    is an address one of this host's?
 *
 * Soft: -errno. Callbacks come from the loop, never from inside the call that
 * begins the work, and not after the work was cancelled.
 */
#ifndef DELIVER_SMTP_REACH_LOOKUP_H
#define DELIVER_SMTP_REACH_LOOKUP_H

#include "deliver-smtp/reach/mx.h"
#include "deliver-smtp/reach/resolve.h"

/* Sessions of a program share it. */
struct lookups {
	struct resolver *resolver;
	struct mx_memory *memory;
	/* Names of this host, ended by NULL; MX records with one of them lead
	 * back here. */
	const char *own[3];
	bool (*is_ours)(const struct sockaddr *address);
	uint64_t seed;
};

/* The names of this host are the caller's. -ENOMEM, -EIO: the system's
 * configuration cannot be read. */
int lookups_open(struct lookups *l, struct event_base *base);
/* Read the system's configuration again, and forget what was learned. On
 * failure the old one stays. */
int lookups_reload(struct lookups *l);
/* No lookup is under way. */
void lookups_close(struct lookups *l);

struct lookup_answer {
	/* 0; -EAGAIN: the servers did not say; -ENOMEM. */
	int error;
	const char *text; /* the error, or why there is no name; for people */
	const struct mx_set *set;
};
typedef void lookup_fn(void *arg, const struct lookup_answer *answer);

struct lookup;

/* The hosts of a next hop, if they are known already. mx: the name is a domain,
 * whose hosts are asked for, unless it has no dot or stands in /etc/hosts. */
bool lookup_known(struct lookups *l, const struct nexthop *hop, bool mx,
    struct mx_set *ret_set);
/* -ENOMEM. The lookup is gone when done() has returned, and the set with it. */
int lookup_start(struct lookups *l, const struct nexthop *hop, bool mx,
    lookup_fn *done, void *arg, struct lookup **ret_lookup);
void lookup_cancel(struct lookup **lookup);
/* No address of it was of use: ask again the next time. */
void lookup_forget(struct lookups *l, const struct nexthop *hop, bool mx);

/* ---- ours.c ----
 *
 * The kernel is asked by which address it would send there: for one of this
 * host's it is the same. No packet is sent. */
bool address_is_ours(const struct sockaddr *address);

#endif
