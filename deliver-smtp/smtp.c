#include "deliver-smtp/smtp.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "deliver-smtp/lockdown.h"
#include "log/log.h"

#define STOPPED_DSN  "4.3.2"
#define STOPPED_TEXT "the delivery was ended by a stop of the mail system"

/* ---- the link ---- */

static void
on_deliver(void *arg, struct agent_delivery *delivery)
{
	struct smtp *smtp = arg;
	static const struct agent_report report = {
		.outcome = AGENT_DEFERRED,
		.dsn = STOPPED_DSN,
		.relay = "none",
		.text = STOPPED_TEXT,
	};

	if (!smtp->stopping) {
		session_start(&smtp->context, delivery);
		return;
	}
	agent_result_rest(delivery, &report);
	agent_done(delivery, false, report.dsn, report.text);
}

/* Stopped, nothing runs, and every answer has gone. */
static void
end_if_idle(struct smtp *smtp)
{
	if (smtp->stopping && TAILQ_EMPTY(&smtp->context.running) &&
	    (smtp->agent == NULL || agent_queued(smtp->agent) == 0))
		daemon_exit(smtp->daemon, 0);
}

static void
on_drained(void *arg)
{
	end_if_idle(arg);
}

static void
on_orphaned(void *arg)
{
	struct smtp *smtp = arg;

	if (!smtp->stopping)
		log_info("queue-send is gone: stopping");
	smtp->stopping = true;
	session_abandon_all(&smtp->context, STOPPED_DSN, STOPPED_TEXT);
	end_if_idle(smtp);
}

static void
on_bad(void *arg UNUSED, const char *what)
{
	log_warning("from queue-send: %s: dropped", what);
}

static const struct agent_ops agent_ops = {
	.deliver = on_deliver,
	.orphaned = on_orphaned,
	.bad = on_bad,
	.drained = on_drained,
};

static void
smtp_linked(struct daemon *d, const char *name, int fd)
{
	struct smtp *smtp = d->state;
	int r;

	if (strcmp(name, "queue-send") != 0) {
		log_warning("link to %s: of no use here, closed", name);
		close(fd);
		return;
	}
	/* Deliveries of an earlier link cannot be answered. */
	session_abandon_all(&smtp->context, STOPPED_DSN, STOPPED_TEXT);
	agent_free(&smtp->agent);
	r = agent_new(d->base, fd, &agent_ops, smtp, &smtp->agent);
	if (r < 0) {
		close(fd);
		log_error("link to queue-send: %s", strerror(-r));
		daemon_exit(d, EXIT_TEMPORARY);
	}
}

/* ---- the daemon ---- */

static void
on_session_ended(struct session_context *context)
{
	struct smtp *smtp = context->owner;

	end_if_idle(smtp);
}

static void
on_stop_timer(evutil_socket_t sock UNUSED, short what UNUSED, void *arg)
{
	struct smtp *smtp = arg;

	session_abandon_all(&smtp->context, STOPPED_DSN, STOPPED_TEXT);
}

/* Without it mail goes all the same. */
static void
smtp_lockdown(const struct daemon *d UNUSED)
{
	int r = lockdown_install();

	if (r < 0)
		log_warning(
		    "filter of system calls: %s: not installed", strerror(-r));
}

static int
smtp_start(struct daemon *d)
{
	struct smtp *smtp = d->state;
	int r;

	smtp->daemon = d;
	smtp->context.base = d->base;
	smtp->context.owner = smtp;
	smtp->context.ended = on_session_ended;
	TAILQ_INIT(&smtp->context.running);
	settings_load(d->conf, &smtp->context.settings);
	smtp->stop_timer = evtimer_new(d->base, on_stop_timer, smtp);
	r = smtp->stop_timer == NULL
	    ? -ENOMEM
	    : resolver_new(d->base, &smtp->context.resolver);
	if (r < 0) {
		log_error("resolver: %s", strerror(-r));
		return r;
	}
	daemon_ready(d);
	return 0;
}

static void
smtp_reload(struct daemon *d, const struct conf *fresh)
{
	struct smtp *smtp = d->state;
	int r = resolver_reload(smtp->context.resolver);

	if (r < 0)
		log_warning("resolver: %s: names are looked up as before",
		    strerror(-r));
	settings_load(fresh, &smtp->context.settings);
}

static void
smtp_stop(struct daemon *d, usec_t limit)
{
	struct smtp *smtp = d->state;
	const struct timeval tv = clock_timeval(limit);

	smtp->stopping = true;
	(void)evtimer_add(smtp->stop_timer, &tv);
	end_if_idle(smtp);
}

static void
smtp_done(struct daemon *d)
{
	struct smtp *smtp = d->state;

	session_abandon_all(&smtp->context, STOPPED_DSN, STOPPED_TEXT);
	agent_free(&smtp->agent);
	resolver_free(&smtp->context.resolver);
	event_free(smtp->stop_timer);
}

const struct daemon_ops smtp_ops = {
	.name = "deliver-smtp",
	.user = DAEMON_AS_QMAILR,
	.lockdown = smtp_lockdown,
	.start = smtp_start,
	.linked = smtp_linked,
	.reload = smtp_reload,
	.stop = smtp_stop,
	.done = smtp_done,
};
