/* deliver-smtp/reach/resolve.h - addresses of host names, and MX records, in
 * the event loop.
 *
 *	resolve.c       requests
 *	question.h      one question to the name servers
 *	name_servers.h  which server is asked
 *
 * The resolver outlives its requests.
 *
 * Soft: -errno. Callbacks come from the loop, never from inside the call that
 * begins the work, and not after the work was cancelled.
 */
#ifndef DELIVER_SMTP_REACH_RESOLVE_H
#define DELIVER_SMTP_REACH_RESOLVE_H

#include <stddef.h>

#include "deliver-smtp/reach/mx.h"

struct event_base;

enum resolve_by {
	RESOLVE_DNS,          /* DNS, this very name */
	RESOLVE_NATIVE,       /* /etc/hosts, then DNS with the search list */
	RESOLVE_NATIVE_EXACT, /* /etc/hosts, then DNS, this very name */
	RESOLVE_MX,           /* the MX records of this very name, by DNS */
	RESOLVE_NWAYS,
};

/* More addresses of a host are not looked at. */
#define RESOLVE_FAMILY_MAX 32
#define RESOLVE_MAX        (2 * RESOLVE_FAMILY_MAX)

struct resolver;
struct resolve_request;

struct resolve_result {
	/* 0; -ENOENT: no such name; -ENODATA: the name has no such record;
	 * -EAGAIN: the servers did not say; -ENOMEM. */
	int error;
	const char *text; /* the error, for people; static */
	int ttl;          /* seconds, the least of the addresses */
	/* Without a port; the family that RFC 6724 puts first comes first. */
	size_t count;
	union mx_address addresses[RESOLVE_MAX];
	/* Of MX records: the message of DNS. It goes with the request. */
	const unsigned char *answer;
	size_t answer_len;
};
typedef void resolve_fn(void *arg, const struct resolve_result *result);

/* -ENOMEM, -EIO: the system's configuration cannot be read. */
int resolver_new(struct event_base *base, struct resolver **ret_resolver);
/* Every request was answered or cancelled. */
void resolver_free(struct resolver **resolver);
/* Read the system's configuration again, for requests from now on. On failure
 * the old one stays. */
int resolver_reload(struct resolver *resolver);

/* -ENOMEM, -EIO. The request is gone when done() has returned. */
int
resolve_start(struct resolver *resolver, enum resolve_by by, const char *name,
    resolve_fn *done, void *arg, struct resolve_request **ret_request);
void resolve_cancel(struct resolve_request **request);

#endif
