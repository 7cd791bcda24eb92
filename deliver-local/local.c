#include "deliver-local/local.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "log/log.h"
#include "route/route.h"

/* Of the time that a stop has, so much is left for programs to be ended. */
#define ASK_BEFORE (5 * USEC_PER_SEC)

/* ---- deliveries ---- */

static void
answer_all(
    struct agent_delivery *delivery, const struct verdict *v, const char *relay)
{
	agent_result_rest(delivery,
	    &(struct agent_report){ .outcome = (enum agent_outcome)v->outcome,
		.dsn = v->dsn,
		.relay = relay,
		.text = v->text });
	agent_done(delivery, AGENT_SITE_TALKED, "", "");
}

static void
discard(struct local *l UNUSED, struct agent_delivery *delivery)
{
	struct verdict v;

	verdict_set(&v, AGENT_SENT, "2.0.0", "discarded");
	answer_all(delivery, &v, "discard");
}

static void
refuse(struct local *l UNUSED, struct agent_delivery *delivery)
{
	struct verdict v;

	verdict_refuse(&v, delivery->nexthop);
	answer_all(delivery, &v, "none");
}

static void
not_ours(struct local *l UNUSED, struct agent_delivery *delivery)
{
	agent_done(delivery, AGENT_SITE_TALKED, "4.3.5",
	    "deliver-local has no such transport");
}

static void (*const kinds[AGENT_NKINDS])(
    struct local *l, struct agent_delivery *delivery) = {
	[AGENT_SMTP] = not_ours,
	[AGENT_LMTP] = not_ours,
	[AGENT_LOCAL] = task_begin,
	[AGENT_PIPE] = task_begin,
	[AGENT_DISCARD] = discard,
	[AGENT_ERROR] = refuse,
	[AGENT_ALIAS] = task_begin,
};

static void
on_deliver(void *arg, struct agent_delivery *delivery)
{
	kinds[delivery->kind](arg, delivery);
}

/* ---- the end ---- */

static void
on_idle(struct local *l)
{
	daemon_agent_idle(&l->link);
}

static bool
is_idle(const void *arg)
{
	const struct local *l = arg;

	return LIST_EMPTY(&l->tasks);
}

/* Programs are asked to end before all that runs is ended. */
static void
begin_end(struct local *l, usec_t ask)
{
	const struct timeval tv = clock_timeval(ask);

	l->ending = true;
	residents_renew(l->residents, 0);
	(void)event_add(l->ask, &tv);
	task_end_waiting(l);
}

static void
on_stop(void *arg, usec_t limit)
{
	struct local *l = arg;
	const usec_t most =
	    limit > 2 * ASK_BEFORE ? limit - ASK_BEFORE : limit / 2;
	const usec_t ask = l->conf->program_stop_time;

	if (!l->ending)
		begin_end(l, ask < most ? ask : most);
}

static void
on_orphaned(void *arg)
{
	struct local *l = arg;

	/* Programs that were not asked to end yet are asked now. */
	if (!l->ending || event_pending(l->ask, EV_TIMEOUT, NULL))
		begin_end(l, 0);
}

static const struct daemon_agent_ops agent_ops = {
	.link = { .deliver = on_deliver,
	    .orphaned = on_orphaned,
	    .cancel = task_cancel },
	.is_idle = is_idle,
	.stop = on_stop,
	.end_all = task_end_all,
};

/* ---- the daemon ---- */

static int
load_programs(const struct conf *conf, struct programs **ret_programs)
{
	struct buf error = { 0 };
	int r = programs_load(conf->programs_file, ret_programs, &error);

	if (r < 0)
		log_error("programs: %s",
		    error.len > 0 ? buf_str(&error) : strerror(-r));
	buf_done(&error);
	return r;
}

static void
set_conf(struct local *l, const struct conf *conf)
{
	l->conf = conf;
	snprintf(l->host, sizeof(l->host), "%s", conf->myhostname);
	if (l->host[0] == '\0' && gethostname(l->host, sizeof(l->host) - 1) < 0)
		snprintf(l->host, sizeof(l->host), "localhost");
}

static int
find_users(struct local *l)
{
	struct buf error = { 0 };
	int r = daemon_users(l->conf, &l->users, &error);

	if (r < 0)
		log_error("users: %s", buf_str(&error));
	buf_done(&error);
	return r;
}

static void
done(struct daemon *d)
{
	struct local *l = d->state;

	task_end_all(l);
	residents_free(&l->residents);
	strays_done(&l->strays);
	daemon_agent_done(&l->link);
	programs_free(&l->programs);
	route_free(&l->routes);
	if (l->ask != NULL)
		event_free(l->ask);
}

/* With fewer rights than it needs the agent goes on: discard and error need
 * none, and all else is deferred with its reason. */
static void
lockdown(const struct daemon *d)
{
	const char *missing = "";
	int r = d->private ? 0 : privileges_drop(&missing);

	if (r < 0)
		log_warning("capabilities: %s: kept", strerror(-r));
	else if (missing[0] != '\0')
		log_warning(
		    "%s; give the container or unit this capability", missing);
}

static int
start(struct daemon *d)
{
	struct local *l = d->state;
	int r;

	l->base = d->base;
	l->private = d->private;
	l->queue = d->queue;
	l->idle = on_idle;
	l->child = child_main;
	l->kill = kill;
	LIST_INIT(&l->tasks);
	account_load_sources();
	set_conf(l, d->conf);
	r = find_users(l);
	if (r == 0)
		r = load_programs(d->conf, &l->programs);
	if (r == 0)
		r = daemon_routes(d->conf, &l->routes);
	if (r < 0)
		return r;
	l->ask = evtimer_new(l->base, task_ask_all, l);
	r = daemon_agent_init(d, &agent_ops);
	if (r == 0)
		r = strays_init(&l->strays, l->base);
	if (r == 0)
		r = residents_new(l->base, &l->strays, l->kill, &l->residents);
	if (r < 0 || l->ask == NULL) {
		log_error("out of memory");
		done(d);
		return -ENOMEM;
	}
	residents_renew(l->residents, d->conf->maildir_process_idle_time);
	daemon_ready(d);
	return 0;
}

static void
reload(struct daemon *d, const struct conf *fresh)
{
	struct local *l = d->state;
	struct programs *programs;

	set_conf(l, fresh);
	residents_renew(
	    l->residents, l->ending ? 0 : fresh->maildir_process_idle_time);
	(void)daemon_reroute(fresh, &l->routes);
	if (load_programs(fresh, &programs) < 0) {
		log_warning("programs: what was in force stays");
		return;
	}
	programs_free(&l->programs);
	l->programs = programs;
}

static void
ending(struct daemon *d, usec_t limit)
{
	on_stop(d->state, limit);
}

static const struct daemon_ops ops = {
	.name = "deliver-local",
	.user = DAEMON_AS_ROOT,
	.lockdown = lockdown,
	.start = start,
	.linked = daemon_agent_linked,
	.reload = reload,
	.stop = daemon_agent_stop,
	.ending = ending,
	.done = done,
};

int
local_main(int argc, char **argv)
{
	struct local l = { 0 };

	return daemon_main(argc, argv, &ops, &l);
}
