/* deliver-smtp/session.h - one delivery on its way: look up the next hop,
 * connect to its addresses in turn, hold the dialogue, report.
 *
 *	session.c   the delivery
 *	peers.c     servers with which pipelining went wrong
 *	settings.c  the part of the configuration that sessions need
 *
 * A session owns its delivery and ends with agent_done(); then, as its last
 * act, it is freed and calls ended() of its context, which outlives it.
 * Failures are reported, not returned.
 */
#ifndef DELIVER_SMTP_SESSION_H
#define DELIVER_SMTP_SESSION_H

#include <sys/queue.h>

#include "config/conf.h"
#include "deliver-smtp/net.h"

/* ---- peers ----
 *
 * A server with which pipelining went wrong is spoken to in lock-step for an
 * hour, from the start. The list is short; a new entry pushes out the oldest,
 * which costs one connection at most. */

#define PEERS_MAX  64
#define PEERS_KEEP (3600 * USEC_PER_SEC)

struct peers {
	uint64_t names[PEERS_MAX]; /* hashes; a false hit only costs speed */
	usec_t until[PEERS_MAX];
	size_t next;
};

void peers_add(struct peers *p, const char *relay, usec_t now);
bool peers_has(const struct peers *p, const char *relay, usec_t now);

/* ---- settings ---- */

#define SETTINGS_HELO_MAX 256

struct settings {
	char helo[SETTINGS_HELO_MAX];
	usec_t connect_limit;
	usec_t limits[DIALOG_NSTATES]; /* RFC 5321 section 4.5.3.2 */
};

/* The name for EHLO is smtp_helo_name, else myhostname, else the host's own,
 * with mydomain, else "localdomain", behind it where it has no dot. */
void settings_load(const struct conf *conf, struct settings *ret_settings);

/* ---- sessions ---- */

struct session;
TAILQ_HEAD(session_list, session);

struct session_context {
	struct event_base *base;
	struct resolver *resolver;
	/* A session has its own copy: a reload is for sessions that begin after
	 * it. */
	struct settings settings;
	struct peers peers;
	struct session_list running;
	void *owner;
	void (*ended)(struct session_context *context);
};

/* Takes the delivery; it may be done when this returns. */
void
session_start(struct session_context *context, struct agent_delivery *delivery);
/* End all that run, now: recipients without a report are deferred. */
void session_abandon_all(
    struct session_context *context, const char *dsn, const char *text);

#endif
