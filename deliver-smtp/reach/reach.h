/* deliver-smtp/reach/reach.h - from a next hop to a connection.
 *
 *	reach.c    the way of one delivery: lookup, addresses, the next of them
 *	connect.c  several addresses, the first that answers wins
 *	reason.c   the words for what DNS says
 *
 * Soft: -errno.
 */
#ifndef DELIVER_SMTP_REACH_REACH_H
#define DELIVER_SMTP_REACH_REACH_H

#include "deliver-smtp/dialog/dialog.h"
#include "deliver-smtp/reach/lookup.h"

/* ---- connect.c ----
 *
 * The next address is tried when one has failed, or after the head start while
 * the earlier ones go on (RFC 8305, section 5); one that is less preferred only
 * when all better ones have failed. At most CONNECT_AT_ONCE sockets connect at
 * a time. When one is connected the others are closed before it is told.
 *
 * connect.c calls connect_plan.goes_on for each address that fails while
 * another address is left. The failure of the last address is the result.
 * reach.c puts the failure into words and calls reach_ops.goes_on; the session
 * then logs next-host. */

#define CONNECT_AT_ONCE 4

/* Addresses to connect from; sa_family 0: the kernel chooses. */
struct connect_source {
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct connect_result {
	int result;    /* a connected non-blocking socket, or -errno */
	size_t target; /* the target that is connected, or failed last */
	bool ours; /* no descriptor, no memory: says nothing about the site */
	bool bind; /* bind() to the source address failed; ours is set, too */
};

typedef void connect_fn(void *arg, const struct connect_result *result);

struct connect_plan {
	struct event_base *base;
	const struct mx_targets *targets;
	/* Of each target: it is not tried, or has failed. The caller's, who
	 * keeps both until the end. */
	bool *over;
	usec_t limit, limit_all; /* of one address; of all of them */
	usec_t head_start;       /* 0: one after the other */
	const struct connect_source *source;
	/* Called when an address fails and another address is left, maybe
	 * before connect_start() returns. Must not end the race. */
	connect_fn *goes_on;
};

struct connect_race;

/* Connect to the targets of the plan. The event loop calls done() once; the
 * race is freed before that call, and the socket belongs to the callee. -errno
 * with *ret_failed: every address failed at once, and done() is not called. */
int connect_start(const struct connect_plan *plan, connect_fn *done, void *arg,
    struct connect_result *ret_failed, struct connect_race **ret_race);
void connect_cancel(struct connect_race **race);

/* ---- reach.c ---- */

struct reach_failure {
	struct verdict why; /* deferred */
	/* The code for recipients of the domain that is the next hop: DNS says
	 * that it takes no mail, ever. NULL: it does not. */
	const char *permanent;
	bool ours;    /* our own trouble: says nothing of the site */
	bool unknown; /* DNS names no address: nothing was connected to */
	bool no_more; /* there is no address after all behind the last
		       * one: why is empty, the failure there stands */
};

/* reason.c: put the verdict of DNS on a next hop into failure->why, and the
 * permanent code of that verdict, if it has one, into failure->permanent. set:
 * the hosts of the next hop. text: the words of the resolver for MX_NO_NAME, or
 * NULL. */
void reason_set(const struct nexthop *hop, const struct mx_set *set,
    enum mx_verdict verdict, const char *text, struct reach_failure *failure);

struct reach_ops {
	/* Optional: the hosts of a domain are known, and none was connected to
	 * yet. loops: as mx_judge() had it. False: the callee goes another way,
	 * and maybe the reach is gone. */
	bool (*found)(void *arg, const struct mx_set *set, bool loops);
	/* The current address (peer, relay) has failed, and another address is
	 * left. Must not end the reach. */
	void (*goes_on)(void *arg, const struct verdict *why);
	/* The socket is the callee's. */
	void (*connected)(void *arg, int sock);
	/* Nothing is left to be tried. The text is the callee's. */
	void (*failed)(void *arg, struct reach_failure *failure);
	/* limit_before is over. The reach goes on if the callee does nothing.
	 */
	void (*late)(void *arg);
};

struct reach {
	/* Set by the owner. */
	struct event_base *base;
	struct lookups *lookups;
	const struct reach_ops *ops;
	void *arg;
	struct nexthop hop;
	bool mx; /* look for MX records of a domain */
	struct lookup_ways ways;
	usec_t limit, limit_all, head_start;
	/* Time for all that comes before MAIL, from the start of each next hop.
	 * If the time ends while a host is past MAIL, the time begins anew with
	 * the next host. */
	usec_t limit_before;
	const char *fallback; /* next hops between blanks or commas; "" */
	uint16_t default_port;
	struct mx_plan plan; /* which addresses, and in what order; the owner
			      * sets randomize, balance and limit */
	struct connect_source source;
	/* The address that was connected to, or tried last. */
	char host[NEXTHOP_HOST_MAX];
	char peer[NEXTHOP_PEER_MAX], relay[NEXTHOP_PEER_MAX];
	/* Private. */
	struct lookup *lookup;
	bool taken;   /* hosts were found; the lookup may look for more */
	bool waiting; /* all that are known have failed */
	struct connect_result held; /* of waiting: the last failure, or 0 */
	struct connect_race *race;
	struct event *late; /* the timer of limit_before; NULL: never started */
	bool mine;          /* this host is one of the hosts of the domain */
	/* hop is one of the fallback, and no longer the next hop of the
	 * delivery; its text. */
	bool fell_back;
	char fallback_hop[NEXTHOP_HOST_MAX];
	struct mx_targets targets;
	bool over[MX_TARGETS_MAX];
	size_t current;
	usec_t began_at, used; /* time spent in connecting */
};

/* Each calls one of these as its last act, maybe before it returns. */
void reach_start(struct reach *r);
/* Connect to the current address once more. If there is no current address, or
 * DNS has named a host of a better rank since, connect to the best target. */
void reach_again(struct reach *r);
/* Would reach_next() have one? */
bool reach_has_next(const struct reach *r);
/* The next address, maybe of a host that is still looked up; the current one is
 * of no use. False: there is none, or no time; nothing was called. */
bool reach_next(struct reach *r);
/* Would reach_fall_back() have one? */
bool reach_has_fallback(const struct reach *r);
/* The next hop of the fallback, in the place of the one that failed: hop is
 * changed. False: there is none; nothing was called. The last host of a domain
 * for which this host takes mail itself falls back to nothing, since its
 * fallback could send the mail here again. */
bool reach_fall_back(struct reach *r);
/* End the look-up and all attempts to connect. Afterwards only
 * reach_fall_back() and reach_cancel() may be called. */
void reach_stop(struct reach *r);
void reach_cancel(struct reach *r);

#endif
