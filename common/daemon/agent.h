/* daemon/agent.h - the common part of delivery agents: the link to queue-send
 * (agent/agent.h), the stop, the end. The state of the daemon begins with its
 * struct daemon_agent, and is the arg of every function.
 *
 * A delivery goes to deliver(); the program calls daemon_agent_idle() when the
 * last one has ended. While the agent stops, a new delivery is deferred here.
 *
 * The process ends when a stop was asked for, nothing runs, and queue-send has
 * every answer: a result that is lost is a delivery done twice. end_all() ends
 * deliveries that still run when the time of the stop is over. Without
 * queue-send no result can be recorded any more: that is a stop, too.
 *
 * All functions log failures. The owner calls daemon_agent_done().
 */
#ifndef DAEMON_AGENT_H
#define DAEMON_AGENT_H

#include "agent/agent.h"
#include "daemon/daemon.h"

struct event;

struct daemon_agent_ops {
	/* For agent_new(), but for bad and drained. When orphaned() is called a
	 * stop may have begun before. */
	struct agent_ops link;
	bool (*is_idle)(const void *arg); /* nothing runs */
	/* Optional: a stop begins; deliveries that run have so long. */
	void (*stop)(void *arg, usec_t limit);
	void (*end_all)(void *arg); /* end every delivery, now */
	/* A second link takes the place of the first, whose deliveries are
	 * ended. Else it shows that the end of the first was not seen yet: the
	 * agent ends, and is started anew. */
	bool relinks;
};

struct daemon_agent {
	struct daemon *daemon;
	struct agent *agent; /* NULL: no link yet */
	const struct daemon_agent_ops *ops;
	bool stopping; /* nothing new begins */
	/* private */
	struct agent_ops link;
	struct event *deadline; /* of the stop */
	usec_t bad_said;        /* for log_due() */
};

/* -ENOMEM. */
int daemon_agent_init(struct daemon *d, const struct daemon_agent_ops *ops);
void daemon_agent_done(struct daemon_agent *a);
/* linked() and stop() of struct daemon_ops. */
void daemon_agent_linked(struct daemon *d, const char *name, int fd);
void daemon_agent_stop(struct daemon *d, usec_t limit);
/* The last delivery has ended: ends the process if it is to end. */
void daemon_agent_idle(struct daemon_agent *a);

#endif
