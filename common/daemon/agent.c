#include "daemon/agent.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "log/log.h"

#define BAD_EVERY (60 * USEC_PER_SEC)

/* ---- the end ---- */

void
daemon_agent_idle(struct daemon_agent *a)
{
	if (a->stopping && a->ops->is_idle(a) &&
	    (a->agent == NULL || agent_queued(a->agent) == 0))
		daemon_exit(a->daemon, 0);
}

static void
on_deadline(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct daemon_agent *a = arg;

	if (!a->ops->is_idle(a))
		log_warning("deliveries that did not end in time were ended");
	a->ops->end_all(a);
	daemon_agent_idle(a);
}

static void
begin_stop(struct daemon_agent *a, usec_t limit)
{
	const struct timeval tv = clock_timeval(limit);

	a->stopping = true;
	(void)evtimer_add(a->deadline, &tv);
}

void
daemon_agent_stop(struct daemon *d, usec_t limit)
{
	struct daemon_agent *a = d->state;

	if (a->stopping)
		return;
	begin_stop(a, limit);
	if (a->ops->stop != NULL)
		a->ops->stop(a, limit);
	daemon_agent_idle(a);
}

/* ---- the link ---- */

static void
on_deliver(void *arg, struct agent_delivery *delivery)
{
	struct daemon_agent *a = arg;

	if (a->stopping)
		agent_defer(delivery, AGENT_CANCELLED_DSN, AGENT_STOPPED);
	else
		a->ops->link.deliver(a, delivery);
}

static void
on_orphaned(void *arg)
{
	struct daemon_agent *a = arg;

	if (!a->stopping) {
		log_info("queue-send has ended: stopping");
		begin_stop(a, a->daemon->conf->stop_time_limit);
	}
	a->ops->link.orphaned(a);
	daemon_agent_idle(a);
}

static void
on_bad(void *arg, const char *what)
{
	struct daemon_agent *a = arg;

	if (log_due(clock_mono(), BAD_EVERY, &a->bad_said))
		log_warning("from queue-send: %s: dropped", what);
}

static void
on_drained(void *arg)
{
	daemon_agent_idle(arg);
}

/* Deliveries of an earlier link cannot be answered. */
static void
drop_link(struct daemon_agent *a)
{
	if (a->agent != NULL)
		a->ops->end_all(a);
	agent_free(&a->agent);
}

void
daemon_agent_linked(struct daemon *d, const char *name, int fd)
{
	struct daemon_agent *a = d->state;
	int r;

	if (strcmp(name, "queue-send") != 0) {
		log_warning("link to %s: of no use here, closed", name);
		close(fd);
		return;
	}
	if (!a->ops->relinks && (a->agent != NULL || a->stopping)) {
		close(fd);
		on_orphaned(a);
		return;
	}
	drop_link(a);
	r = agent_new(d->base, fd, &a->link, a, &a->agent);
	if (r < 0) {
		close(fd);
		log_error("link to queue-send: %s", strerror(-r));
		daemon_exit(d, EXIT_TEMPORARY);
		return;
	}
	agent_introduce(a->agent);
}

/* ---- the beginning ---- */

int
daemon_agent_init(struct daemon *d, const struct daemon_agent_ops *ops)
{
	struct daemon_agent *a = d->state;

	*a =
	    (struct daemon_agent){ .daemon = d, .ops = ops, .link = ops->link };
	a->link.deliver = on_deliver;
	a->link.orphaned = on_orphaned;
	a->link.bad = on_bad;
	a->link.drained = on_drained;
	a->deadline = evtimer_new(d->base, on_deadline, a);
	return a->deadline == NULL ? -ENOMEM : 0;
}

void
daemon_agent_done(struct daemon_agent *a)
{
	agent_free(&a->agent);
	if (a->deadline != NULL)
		event_free(a->deadline);
	a->deadline = NULL;
}
