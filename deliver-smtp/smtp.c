#include "deliver-smtp/smtp.h"

#include <string.h>

#include "base/clock.h"
#include "log/log.h"

/* ---- deliveries ---- */

static bool
is_idle(const void *arg)
{
	const struct session_context *context = arg;

	return TAILQ_EMPTY(&context->running);
}

static void
trace_dialogues(
    void *arg, uint64_t trace, const char *destination, uint32_t seconds)
{
	struct session_context *context = arg;

	traces_set(&context->traces, trace, destination, seconds, clock_mono());
}

static void
stop_keeping(void *arg, usec_t limit UNUSED)
{
	struct session_context *context = arg;

	context->stopping = true;
	kept_close_all(context);
}

static void
end_all(void *arg)
{
	struct session_context *context = arg;

	kept_close_all(context);
	session_abandon_all(context, AGENT_CANCELLED_DSN, AGENT_STOPPED);
}

/* A session that is ended makes no server take a message that it would not
 * have taken, so none is waited for when queue-send is gone. */
static const struct daemon_agent_ops agent_ops = {
	.link = { .deliver = session_start,
	    .orphaned = end_all,
	    .close = kept_close,
	    .cancel = session_cancel,
	    .trace = trace_dialogues },
	.is_idle = is_idle,
	.stop = stop_keeping,
	.end_all = end_all,
	.relinks = true,
};

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
name_host(struct session_context *context, const struct conf *conf)
{
	struct lookups *lookups = &context->lookups;

	conf_host(conf, context->host);
	lookups->own[0] = context->host;
	lookups->own[1] = context->settings.helo;
}

/* r, after logging why it is -errno, and also a why of a success. */
static int
log_why(const char *what, int r, struct buf *why)
{
	if (r < 0 || why->len > 0)
		log_error(
		    "%s: %s", what, why->len > 0 ? buf_str(why) : strerror(-r));
	buf_done(why);
	return r;
}

/* -errno, after logging it. */
static int
take_policies(struct session_context *context, const struct conf *conf)
{
	struct policies *fresh = NULL;
	struct buf why = { 0 };
	int r = log_why("TLS", policies_new(conf, &fresh, &why), &why);

	if (r < 0)
		return r;
	policies_unref(&context->policies);
	context->policies = fresh;
	return 0;
}

/* -errno, after logging it. */
static int
take_rewrites(struct session_context *context, const struct conf *conf)
{
	struct sender_map *fresh = NULL;
	struct buf why = { 0 };
	int r = 0;

	if (conf->sender_rewrite[0] != '\0')
		r = sender_map_load(
		    conf->sender_rewrite, &sender_rewrite_kind, &fresh, &why);
	if (log_why("sender_rewrite", r, &why) < 0)
		return r;
	sender_map_free(&context->rewrites);
	context->rewrites = fresh;
	return 0;
}

static int
smtp_start(struct daemon *d)
{
	struct session_context *context = d->state;
	int r;

	context->base = d->base;
	TAILQ_INIT(&context->running);
	TAILQ_INIT(&context->kept);
	settings_load(d->conf, &context->settings);
	context->conf = d->conf;
	name_host(context, d->conf);
	r = take_policies(context, d->conf);
	if (r == 0)
		r = take_rewrites(context, d->conf);
	if (r < 0)
		return r;
	r = daemon_agent_init(d, &agent_ops);
	if (r == 0)
		r = lookups_open(&context->lookups, d->base);
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
	struct session_context *context = d->state;
	int r = lookups_reload(&context->lookups);

	if (r < 0)
		log_warning("resolver: %s: names are looked up as before",
		    strerror(-r));
	settings_load(fresh, &context->settings);
	context->conf = fresh;
	name_host(context, fresh);
	if (take_policies(context, fresh) < 0)
		log_warning("reload: the old policies of TLS stay in force");
	if (take_rewrites(context, fresh) < 0)
		log_warning("reload: the old sender_rewrite stays in force");
}

static void
smtp_done(struct daemon *d)
{
	struct session_context *context = d->state;

	end_all(context);
	daemon_agent_done(&context->link);
	lookups_close(&context->lookups);
	policies_unref(&context->policies);
	sender_map_free(&context->rewrites);
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
