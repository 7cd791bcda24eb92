#include "deliver-smtp/smtp.h"

#include <string.h>

#include "base/clock.h"
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
trace_dialogues(
    void *arg, uint64_t trace, const char *destination, uint32_t seconds)
{
	struct smtp *smtp = arg;

	traces_set(
	    &smtp->context.traces, trace, destination, seconds, clock_mono());
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
	session_abandon_all(&smtp->context, AGENT_CANCELLED_DSN, AGENT_STOPPED);
}

/* A session that is ended makes no server take a message that it would not
 * have taken, so none is waited for when queue-send is gone. */
static const struct daemon_agent_ops agent_ops = {
	.link = { .deliver = on_deliver,
	    .orphaned = end_all,
	    .close = close_connection,
	    .cancel = session_cancel,
	    .trace = trace_dialogues },
	.is_idle = is_idle,
	.stop = stop_keeping,
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

/* The names by which MX records would lead back to this host. */
static void
name_host(struct smtp *smtp, const struct conf *conf)
{
	struct lookups *lookups = &smtp->context.lookups;

	conf_host(conf, smtp->host);
	lookups->own[0] = smtp->host;
	lookups->own[1] = smtp->context.settings.helo;
}

/* -errno, after logging it. */
static int
take_policies(struct smtp *smtp, const struct conf *conf)
{
	struct policies *fresh = NULL;
	struct buf why = { 0 };
	int r = policies_new(conf, &fresh, &why);

	if (r < 0 || why.len > 0)
		log_error(
		    "TLS: %s", why.len > 0 ? buf_str(&why) : strerror(-r));
	buf_done(&why);
	if (r < 0)
		return r;
	policies_unref(&smtp->context.policies);
	smtp->context.policies = fresh;
	return 0;
}

/* -errno, after logging it. */
static int
take_rewrites(struct smtp *smtp, const struct conf *conf)
{
	struct sender_map *fresh = NULL;
	struct buf why = { 0 };
	int r = 0;

	if (conf->sender_rewrite[0] != '\0')
		r = sender_map_load(
		    conf->sender_rewrite, &sender_rewrite_kind, &fresh, &why);
	if (r < 0)
		log_error("sender_rewrite: %s",
		    why.len > 0 ? buf_str(&why) : strerror(-r));
	buf_done(&why);
	if (r < 0)
		return r;
	sender_map_free(&smtp->context.rewrites);
	smtp->context.rewrites = fresh;
	return 0;
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
	smtp->context.conf = d->conf;
	name_host(smtp, d->conf);
	r = take_policies(smtp, d->conf);
	if (r == 0)
		r = take_rewrites(smtp, d->conf);
	if (r < 0)
		return r;
	r = daemon_agent_init(d, &agent_ops);
	if (r == 0)
		r = lookups_open(&smtp->context.lookups, d->base);
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
	int r = lookups_reload(&smtp->context.lookups);

	if (r < 0)
		log_warning("resolver: %s: names are looked up as before",
		    strerror(-r));
	settings_load(fresh, &smtp->context.settings);
	smtp->context.conf = fresh;
	name_host(smtp, fresh);
	if (take_policies(smtp, fresh) < 0)
		log_warning("reload: the old policies of TLS stay in force");
	if (take_rewrites(smtp, fresh) < 0)
		log_warning("reload: the old sender_rewrite stays in force");
}

static void
smtp_done(struct daemon *d)
{
	struct smtp *smtp = d->state;

	end_all(smtp);
	daemon_agent_done(&smtp->link);
	lookups_close(&smtp->context.lookups);
	policies_unref(&smtp->context.policies);
	sender_map_free(&smtp->context.rewrites);
}

const struct daemon_ops smtp_ops = {
	.name = "deliver-smtp",
	.many = true,
	.user = DAEMON_AS_QMAILR,
	.lockdown = smtp_lockdown,
	.start = smtp_start,
	.linked = daemon_agent_linked,
	.reload = smtp_reload,
	.stop = daemon_agent_stop,
	.done = smtp_done,
};
