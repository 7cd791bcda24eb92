/* deliver-smtp/reach/resolve.h - addresses of host names, and MX records, by
 * c-ares in the event loop.
 *
 * /etc/hosts (or the file that CARES_HOSTS in the environment names) and DNS as
 * the system is configured, IPv6 and IPv4 in the order of RFC 6724. The
 * resolver outlives its requests.
 *
 * Soft: -errno. Callbacks come from the loop, never from inside the call that
 * begins the work, and not after the work was cancelled.
 */
#ifndef DELIVER_SMTP_REACH_RESOLVE_H
#define DELIVER_SMTP_REACH_RESOLVE_H

#include <stddef.h>
#include <sys/socket.h>

struct event_base;

enum resolve_scope {
	RESOLVE_SYSTEM,     /* with the search list of the system */
	RESOLVE_EXACT,      /* this name alone */
	RESOLVE_HOSTS_FILE, /* this name, and only /etc/hosts */
	RESOLVE_NSCOPES,
};

/* More addresses of a host are not looked at. */
#define RESOLVE_MAX 8

struct resolver;
struct resolve_request;

struct resolve_result {
	/* 0; -ENOENT: no such name; -ENODATA: the name has no such record;
	 * -EAGAIN: the servers did not say; -ENOMEM. */
	int error;
	const char *text; /* the error, for people */
	int ttl;          /* seconds, the least of the addresses */
	size_t count;
	struct sockaddr_storage addresses[RESOLVE_MAX]; /* without a port */
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

/* -ENOMEM. The request is gone when done() has returned. */
int resolve_start(struct resolver *resolver, enum resolve_scope scope,
    const char *name, resolve_fn *done, void *arg,
    struct resolve_request **ret_request);
/* The MX records of exactly this name. */
int resolve_mx_start(struct resolver *resolver, const char *name,
    resolve_fn *done, void *arg, struct resolve_request **ret_request);
void resolve_cancel(struct resolve_request **request);

#endif
