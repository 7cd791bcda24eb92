/* deliver-smtp/session.h - one delivery on its way: look up the next hop,
 * connect to its addresses in turn, hold the dialogue, report.
 *
 * A session owns its delivery and ends with agent_done(); then, as its last
 * act, it is freed and calls ended() of its context, which outlives it.
 * Failures are reported, not returned.
 */
#ifndef DELIVER_SMTP_SESSION_H
#define DELIVER_SMTP_SESSION_H

#include <sys/queue.h>

#include "agent/agent.h"
#include "deliver-smtp/peers.h"
#include "deliver-smtp/resolve.h"
#include "deliver-smtp/settings.h"

struct session;
TAILQ_HEAD(session_list, session);

struct session_context {
	struct event_base *base;
	struct resolver *resolver;
	struct settings settings; /* for new sessions */
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
