#include "deliver-smtp/smtp.h"

#include <string.h>

#include "log/log.h"

/* ---- deliveries ---- */

static void
on_deliver(void *arg, struct agent_delivery *delivery)
{
	struct smtp *smtp = arg;

	session_start(&smtp->context, delivery);
}

static bool
is_idle(const void *arg)
{
	const struct smtp *smtp = arg;

	return TAILQ_EMPTY(&smtp->context.running);
}

static void
close_connection(void *arg, uint64_t connection)
{
	struct smtp *smtp = arg;

	kept_close(&smtp->context, connection);
}

static void
stop_keeping(void *arg, usec_t limit UNUSED)
{
	struct smtp *smtp = arg;

	smtp->context.stopping = true;
	kept_close_all(&smtp->context);
}

static void
end_all(void *arg)
{
	struct smtp *smtp = arg;

	kept_close_all(&smtp->context);
	session_abandon_all(&smtp->context, "4.3.2",
	    "the delivery was ended by a stop of the mail system");
}

/* A session that is ended makes no server take a message that it would not
 * have taken, so none is waited for when queue-send is gone. */
static const struct daemon_agent_ops agent_ops = {
	.deliver = on_deliver,
	.is_idle = is_idle,
	.stop = stop_keeping,
	.close = close_connection,
	.orphaned = end_all,
	.end_all = end_all,
	.relinks = true,
};

static void
on_session_ended(struct session_context *context)
{
	struct smtp *smtp = context->owner;

	daemon_agent_idle(&smtp->link);
}

/* ---- the daemon ---- */

/* Mail goes also without the filter. */
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

	smtp->context.base = d->base;
	smtp->context.owner = smtp;
	smtp->context.ended = on_session_ended;
	TAILQ_INIT(&smtp->context.running);
	TAILQ_INIT(&smtp->context.kept);
	settings_load(d->conf, &smtp->context.settings);
	r = daemon_agent_init(&smtp->link, d, &agent_ops, smtp);
	if (r == 0)
		r = resolver_new(d->base, &smtp->context.resolver);
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
smtp_linked(struct daemon *d, const char *name, int fd)
{
	struct smtp *smtp = d->state;

	daemon_agent_linked(&smtp->link, name, fd);
}

static void
smtp_stop(struct daemon *d, usec_t limit)
{
	struct smtp *smtp = d->state;

	daemon_agent_stop(&smtp->link, limit);
}

static void
smtp_done(struct daemon *d)
{
	struct smtp *smtp = d->state;

	end_all(smtp);
	daemon_agent_done(&smtp->link);
	resolver_free(&smtp->context.resolver);
}

const struct daemon_ops smtp_ops = {
	.name = "deliver-smtp",
	.many = true,
	.user = DAEMON_AS_QMAILR,
	.lockdown = smtp_lockdown,
	.start = smtp_start,
	.linked = smtp_linked,
	.reload = smtp_reload,
	.stop = smtp_stop,
	.done = smtp_done,
};
