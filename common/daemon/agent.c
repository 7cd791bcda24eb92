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
	if (a->stopping && a->ops->is_idle(a->arg) &&
	    (a->agent == NULL || agent_queued(a->agent) == 0))
		daemon_exit(a->daemon, 0);
}

static void
on_deadline(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct daemon_agent *a = arg;

	if (!a->ops->is_idle(a->arg))
		log_warning("deliveries that did not end in time were ended");
	a->ops->end_all(a->arg);
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
daemon_agent_stop(struct daemon_agent *a, usec_t limit)
{
	if (a->stopping)
		return;
	begin_stop(a, limit);
	if (a->ops->stop != NULL)
		a->ops->stop(a->arg, limit);
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
		a->ops->deliver(a->arg, delivery);
}

static void
on_orphaned(void *arg)
{
	struct daemon_agent *a = arg;

	if (!a->stopping) {
		log_info("queue-send has ended: stopping");
		begin_stop(a, a->daemon->conf->stop_time_limit);
	}
	a->ops->orphaned(a->arg);
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
on_close(void *arg, uint64_t connection)
{
	struct daemon_agent *a = arg;

	if (a->ops->close != NULL)
		a->ops->close(a->arg, connection);
}

static void
on_cancel(void *arg, struct agent_delivery *delivery, enum agent_stage stage)
{
	struct daemon_agent *a = arg;

	if (a->ops->cancel != NULL)
		a->ops->cancel(a->arg, delivery, stage);
}

static void
on_trace(void *arg, uint64_t trace, const char *destination, uint32_t seconds)
{
	struct daemon_agent *a = arg;

	if (a->ops->trace != NULL)
		a->ops->trace(a->arg, trace, destination, seconds);
}

static void
on_drained(void *arg)
{
	daemon_agent_idle(arg);
}

static const struct agent_ops agent_ops = {
	.deliver = on_deliver,
	.orphaned = on_orphaned,
	.bad = on_bad,
	.close = on_close,
	.cancel = on_cancel,
	.trace = on_trace,
	.drained = on_drained,
};

/* Deliveries of an earlier link cannot be answered. */
static void
drop_link(struct daemon_agent *a)
{
	if (a->agent != NULL)
		a->ops->end_all(a->arg);
	agent_free(&a->agent);
}

void
daemon_agent_linked(struct daemon_agent *a, const char *name, int fd)
{
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
	r = agent_new(a->daemon->base, fd, &agent_ops, a, &a->agent);
	if (r < 0) {
		close(fd);
		log_error("link to queue-send: %s", strerror(-r));
		daemon_exit(a->daemon, EXIT_TEMPORARY);
		return;
	}
	agent_introduce(a->agent);
}

/* ---- the beginning ---- */

int
daemon_agent_init(struct daemon_agent *a, struct daemon *d,
    const struct daemon_agent_ops *ops, void *arg)
{
	*a = (struct daemon_agent){ .daemon = d, .ops = ops, .arg = arg };
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
