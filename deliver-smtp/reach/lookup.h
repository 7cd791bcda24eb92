/* deliver-smtp/reach/lookup.h - the hosts of a next hop and their addresses
 * (docs/DELIVERY.md, "Next hop").
 *
 *	lookup.c  the steps
 *	ours.c    the address that the kernel would send from
 *
 * Soft: -errno. Callbacks come from the loop, never from inside the call that
 * begins the work, and not after the work was cancelled.
 */
#ifndef DELIVER_SMTP_REACH_LOOKUP_H
#define DELIVER_SMTP_REACH_LOOKUP_H

#include "deliver-smtp/reach/mx.h"
#include "deliver-smtp/reach/resolve.h"

struct lookup;
LIST_HEAD(lookup_list, lookup);

#define LOOKUPS_LEFT_MAX 16

/* Sessions of a program share it. */
struct lookups {
	struct resolver *resolver;
	struct mx_memory *memory;
	/* Lookups that nobody waits for, one of a name, LOOKUPS_LEFT_MAX at
	 * most: what they find is remembered. */
	struct lookup_list left;
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
/* Each lookup has ended, or was cancelled. */
void lookups_close(struct lookups *l);

/* How the addresses of hosts are found: each way where those before it found
 * none. */
struct lookup_ways {
	size_t count;
	enum resolve_by by[2];
};

struct lookup_wanted {
	const char *name;
	/* The name is a domain, whose hosts are asked for. DNS alone says which
	 * these are, and what the addresses of a domain without MX records
	 * are. */
	bool mx;
	struct lookup_ways ways;
};

struct lookup_answer {
	/* 0; -EAGAIN: the servers did not say; -ENOMEM. */
	int error;
	const char *text; /* the error, or why there is no name; for people */
	const struct mx_set *set;
	/* No answer follows. Else the addresses of the best hosts are in the
	 * set, those of worse ones follow with the second answer. */
	bool complete;
};
/* Called twice at most. It may cancel the lookup. */
typedef void lookup_fn(void *arg, const struct lookup_answer *answer);

/* The hosts of a next hop, if they are known already. */
bool lookup_known(struct lookups *l, const struct lookup_wanted *wanted,
    struct mx_set *ret_set);
/* -ENOMEM, -EIO. The lookup is gone when done() has returned from a complete
 * answer, and the set of each answer with it. */
int lookup_start(struct lookups *l, const struct lookup_wanted *wanted,
    lookup_fn *done, void *arg, struct lookup **ret_lookup);
void lookup_cancel(struct lookup **lookup);
/* No address of it was of use: ask again the next time. */
void lookup_forget(struct lookups *l, const struct lookup_wanted *wanted);

/* ---- ours.c ----
 *
 * The kernel is asked by which address it would send there: for one of this
 * host's it is the same. No packet is sent. */
bool address_is_ours(const struct sockaddr *address);
/* Would RFC 6724 put this address in front of those of IPv4? */
bool address_six_first(const struct sockaddr_in6 *address);

#endif
