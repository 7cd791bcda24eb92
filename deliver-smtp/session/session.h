/* deliver-smtp/session/session.h - one delivery on its way: look up the next
 * hop, connect to its addresses in turn, or use a connection that was kept,
 * hold the dialogue, report.
 *
 *	session.c   the delivery
 *	next.c      the end of a dialogue: results, the next host
 *	held.h      results that the next host may change
 *	reach.h     its connection
 *	domain.c    a domain that takes no mail
 *	place.c     is it at the destination of its MX hosts?
 *	kept.c      connections that wait for the next delivery
 *	peers.c     memory of servers
 *	log.h       lines of the log
 *	trace.h     dialogues that operators follow
 *	settings.c  the part of the configuration that sessions need
 *
 * A session owns its delivery and ends with agent_done(); then, as its last
 * act, it is freed and calls daemon_agent_idle() of its context, which outlives
 * it.
 * Failures are reported, not returned.
 */
#ifndef DELIVER_SMTP_SESSION_SESSION_H
#define DELIVER_SMTP_SESSION_SESSION_H

#include <sys/queue.h>

#include "config/conf.h"
#include "daemon/agent.h"
#include "deliver-smtp/connection/connection.h"
#include "deliver-smtp/protection/policy.h"
#include "deliver-smtp/reach/reach.h"
#include "deliver-smtp/session/trace.h"

/* ---- peers ----
 *
 * What is known of servers for an hour: those with which pipelining went wrong
 * are spoken to in lock-step; of those that take only so many recipients in a
 * transaction, how many. A list is short; a new entry pushes out the oldest,
 * which costs one connection or transaction at most. */

#define PEERS_MAX  64
#define PEERS_KEEP (3600 * USEC_PER_SEC)

struct peers {
	uint64_t names[PEERS_MAX]; /* hashes; a false hit only costs speed */
	uint32_t values[PEERS_MAX];
	usec_t until[PEERS_MAX];
	size_t next;
};

/* value: not 0. */
void peers_add(struct peers *p, const char *relay, uint32_t value, usec_t now);
/* 0: nothing is known. */
uint32_t peers_find(const struct peers *p, const char *relay, usec_t now);

/* ---- settings ---- */

#define SETTINGS_HELO_MAX 256

struct settings {
	char helo[SETTINGS_HELO_MAX];
	usec_t connect_limit, connect_limit_all, head_start;
	usec_t before_limit;     /* of all that comes before MAIL; 0: none */
	struct mx_plan plan;     /* order and number of addresses */
	bool mx;                 /* look for MX records */
	struct lookup_ways ways; /* to the addresses of hosts */
	char fallback[CONF_FALLBACK_SIZE]; /* next hops */
	struct connect_source source;
	enum conf_eight eight; /* where 8BITMIME is not offered */
	bool chunking;         /* BDAT where it is offered */
	uint32_t ignored;      /* keywords of EHLO: smtp_keyword_find() */
	/* Connections of a delivery that get past the handshake, at most; 0: no
	 * limit. A kept one is not counted. */
	uint32_t session_limit;
	/* Of kept connections: without mail; in all; how many deliveries, 0:
	 * any number. */
	usec_t idle_limit, reuse_limit;
	uint32_t reuse_count;
	usec_t limits[DIALOG_NSTATES]; /* RFC 5321 section 4.5.3.2 */
};

/* The name for EHLO is smtp_helo_name, else myhostname, else the host's own,
 * with mydomain, else "localdomain", behind it where it has no dot. */
void settings_load(const struct conf *conf, struct settings *ret_settings);

/* How the next hop of a delivery is reached; what is the owner's otherwise
 * stays. The settings outlive it. */
void settings_reach(
    const struct settings *settings, enum agent_kind kind, struct reach *reach);

/* Put what a transport has of its own into settings; one that the configuration
 * does not have has nothing. */
void settings_apply(
    const struct conf *conf, const char *transport, struct settings *settings);

/* ---- connections ---- */

struct connection {
	struct talk *talk; /* NULL: none */
	char peer[NEXTHOP_PEER_MAX], relay[NEXTHOP_PEER_MAX];
	usec_t opened_at;
	uint32_t messages; /* deliveries that it was opened or used for */
	struct policies *policies; /* a reference, of those it was opened by */
};

/* Closes it. */
void connection_done(struct connection *c);

/* ---- sessions ---- */

struct kept;
TAILQ_HEAD(kept_list, kept);
struct session;
TAILQ_HEAD(session_list, session);

struct session_context {
	struct daemon_agent link; /* first */
	struct event_base *base;
	struct lookups lookups;
	/* A session has its own copy: a reload is for sessions that begin after
	 * it. */
	struct settings settings;
	const struct conf *conf;     /* in force */
	struct policies *policies;   /* the same holds for these */
	struct sender_map *rewrites; /* and these: sender_rewrite */
	struct peers lockstep;       /* 1 */
	struct peers batches;        /* recipients of a transaction, at most */
	struct traces traces;
	struct session_list running;
	struct kept_list kept;
	bool stopping;             /* no connection is kept any more */
	char host[CONF_HOST_SIZE]; /* the name of this host */
};

/* Takes the delivery; it may be done when this returns. */
void session_start(void *arg, struct agent_delivery *delivery);
/* End all that run, now: recipients without a report are deferred. */
void session_abandon_all(
    struct session_context *context, const char *dsn, const char *text);

/* End the session of this delivery, if it has come no further than that. */
void session_cancel(
    void *arg, struct agent_delivery *delivery, enum agent_stage stage);

/* ---- place.c (docs/SITES.md, "Domains of the same MX hosts") ---- */

/* Is the delivery at the destination that its hosts make, or is that of no
 * matter? Else *out is where it belongs, "" for that of its next hop. */
bool place_is_right(const struct agent_delivery *delivery,
    const struct policy *policy, const struct mx_set *set, bool loops,
    char out[MX_SITE_MAX + 1]);
/* Is a delivery whose hosts are not known at a shared destination, of which
 * that would say something wrong? */
bool place_is_shared(const struct agent_delivery *delivery);

/* ---- domain.c ----
 *
 * Recipients of the domain that is the next hop fail for good. False: there are
 * others. What an operator wrote may be a slip, which must not return
 * everybody's mail. */
bool domain_failed(struct agent_delivery *d, const char *dsn, const char *text);

/* ---- kept.c ----
 *
 * A connection that is kept has the number of the delivery that left it open,
 * and belongs to queue-send's place at the destination: its end is told by
 * agent_connection_closed(), until a delivery takes or drops it. A delivery
 * uses it only for the same transport and next hop, and under the same
 * policies: then it is as secure as a new one would be. So it is for another
 * next hop of the same shared destination, none of which has a policy of its
 * own; that one is looked up first, and the connection is used if its host is
 * one of those that were found. If the connection ends during that lookup,
 * agent_connection_closed() is called as well; queue-send has given the number
 * to the delivery, and ignores the call. At any moment the server may close the
 * connection or speak, and the time of the connection may end. All connections
 * are closed before the link to queue-send is. */

/* Is the connection to stay open behind this delivery? */
bool
kept_may(const struct session_context *context, const struct settings *settings,
    const struct agent_delivery *delivery, const struct connection *c);
/* Takes c->talk; false, without memory: the caller keeps it. */
bool kept_add(struct session_context *context, const struct settings *settings,
    const struct agent_delivery *delivery, struct connection *c);
/* The one that the delivery names, if it is still open and leads to its next
 * hop. False: that one is closed, and a new one may be opened in its place. */
bool kept_take(struct session_context *context,
    const struct agent_delivery *delivery, struct connection *ret_connection);
/* Is it open, and was it left by another next hop of the shared destination?
 * Then one of the two below follows. */
bool kept_is_shared(
    struct session_context *context, const struct agent_delivery *delivery);
/* Does it lead to one of these hosts? Then *c, which has policies alone, is
 * that one. */
bool kept_take_shared(struct session_context *context,
    const struct agent_delivery *delivery, const struct mx_set *set, bool loops,
    struct connection *c);
/* Close it; a delivery has brought its number. */
void kept_drop(struct session_context *context, uint64_t number);
void kept_close(void *arg, uint64_t number);
void kept_close_all(struct session_context *context);

#endif
