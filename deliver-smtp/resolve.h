/* deliver-smtp/resolve.h - addresses of host names, in the event loop
 * (c-ares): /etc/hosts (or the file that CARES_HOSTS in the environment
 * names) and DNS as the system is configured, IPv6 and IPv4 in the order of
 * RFC 6724.
 *
 * The resolver outlives its requests. done() is never called before
 * resolve_start() has returned, and not after resolve_cancel().
 */
#ifndef DELIVER_SMTP_RESOLVE_H
#define DELIVER_SMTP_RESOLVE_H

#include "base/base.h"

#include <sys/socket.h>

/* More of a host are not tried. */
#define RESOLVE_MAX 8

struct event_base;
struct resolver;
struct resolve_request;

struct resolve_result {
	/* 0; -ENOENT: no such name, or no address; -EAGAIN: the servers did
	 * not say; -ENOMEM. */
	int error;
	const char *text; /* the error, for people */
	size_t count;
	struct sockaddr_storage addresses[RESOLVE_MAX]; /* with the port */
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
int resolve_start(struct resolver *resolver, const char *name, uint16_t port,
    resolve_fn *done, void *arg, struct resolve_request **ret_request);
void resolve_cancel(struct resolve_request **request);

#endif
