#include "deliver-local/local.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "daemon/daemon.h"
#include "deliver-local/privileges.h"
#include "deliver-local/verdict.h"
#include "log/log.h"

#define BAD_EVERY   (60 * USEC_PER_SEC)
/* Of the time that a stop has, so much is left for programs to be ended. */
#define ASK_BEFORE  (5 * USEC_PER_SEC)
#define LEAVE_AGAIN (50 * USEC_PER_MSEC)

static void
set_timer(struct event *ev, usec_t in)
{
	const struct timeval tv = clock_timeval(in);

	(void)event_add(ev, &tv);
}

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
	agent_done(delivery, false, "", "");
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
	agent_done(
	    delivery, false, "4.3.5", "deliver-local has no such transport");
}

static void (*const kinds[AGENT_NKINDS])(
    struct local *l, struct agent_delivery *delivery) = {
	[AGENT_SMTP] = not_ours,
	[AGENT_LMTP] = not_ours,
	[AGENT_LOCAL] = task_begin,
	[AGENT_PIPE] = task_begin,
	[AGENT_DISCARD] = discard,
	[AGENT_ERROR] = refuse,
};

static void
on_deliver(void *arg, struct agent_delivery *delivery)
{
	struct local *l = arg;

	if (l->ending)
		agent_done(delivery, false, "4.3.2", "the mail system stops");
	else
		kinds[delivery->kind](l, delivery);
}

/* ---- the end ---- */

/* Answers that still wait for queue-send would be deliveries done twice; the
 * firm end is near if it does not take them. */
static void
leave(struct local *l)
{
	if (l->agent != NULL && agent_queued(l->agent) > 0)
		set_timer(l->leave, LEAVE_AGAIN);
	else
		daemon_exit(l->daemon, 0);
}

static void
on_leave(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	leave(arg);
}

static void
on_idle(struct local *l)
{
	if (l->ending)
		leave(l);
}

static void
on_ask(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	task_ask_all(arg);
}

static void
on_firm(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct local *l = arg;

	log_warning("deliveries that did not end in time were ended");
	task_end_all(l);
	daemon_exit(l->daemon, 0);
}

/* Begin nothing; ask programs to end after `ask`, end all after `limit`. */
static void
begin_end(struct local *l, usec_t ask, usec_t limit)
{
	l->ending = true;
	set_timer(l->ask, ask);
	set_timer(l->firm, limit);
	task_end_waiting(l);
	if (LIST_EMPTY(&l->tasks))
		leave(l);
}

static void
on_orphaned(void *arg)
{
	struct local *l = arg;

	if (l->ending)
		return;
	log_info("queue-send is gone: stopping");
	begin_end(l, 0, l->conf->stop_time_limit);
}

static void
on_bad(void *arg, const char *what)
{
	struct local *l = arg;

	if (log_due(clock_mono(), BAD_EVERY, &l->bad_said))
		log_warning("a delivery from queue-send was refused: %s", what);
}

static const struct agent_ops agent_ops = {
	.deliver = on_deliver,
	.orphaned = on_orphaned,
	.bad = on_bad,
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
	struct daemon_users users;
	struct buf error = { 0 };
	int r = daemon_users(l->conf, &users, &error);

	if (r < 0) {
		log_error("users: %s", buf_str(&error));
	} else {
		l->system_uids[0] = users.qmailq;
		l->system_uids[1] = users.qmails;
		l->system_uids[2] = users.qmailr;
	}
	buf_done(&error);
	return r;
}

static void
done(struct daemon *d)
{
	struct local *l = d->state;
	struct event **timers[] = { &l->ask, &l->firm, &l->leave };
	size_t i;

	task_end_all(l);
	strays_done(&l->strays);
	agent_free(&l->agent);
	programs_free(&l->programs);
	for (i = 0; i < ARRAY_LEN(timers); i++)
		if (*timers[i] != NULL)
			event_free(*timers[i]);
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
		log_warning("without %s", missing);
}

static int
start(struct daemon *d)
{
	struct local *l = d->state;
	int r;

	l->daemon = d;
	l->base = d->base;
	l->private = d->private;
	l->idle = on_idle;
	l->child = child_main;
	l->kill = kill;
	LIST_INIT(&l->tasks);
	set_conf(l, d->conf);
	r = find_users(l);
	if (r == 0)
		r = load_programs(d->conf, &l->programs);
	if (r < 0)
		return r;
	l->ask = evtimer_new(l->base, on_ask, l);
	l->firm = evtimer_new(l->base, on_firm, l);
	l->leave = evtimer_new(l->base, on_leave, l);
	r = strays_init(&l->strays, l->base);
	if (r < 0 || l->ask == NULL || l->firm == NULL || l->leave == NULL) {
		log_error("out of memory");
		done(d);
		return -ENOMEM;
	}
	daemon_ready(d);
	return 0;
}

/* queue-send makes a new link only after the old one has gone; a second one
 * means that we have not heard of that yet, and are to begin anew. */
static void
linked(struct daemon *d, const char *name, int fd)
{
	struct local *l = d->state;
	int r;

	if (strcmp(name, "queue-send") != 0 || l->agent != NULL || l->ending) {
		close(fd);
		if (strcmp(name, "queue-send") == 0)
			on_orphaned(l);
		else
			log_warning("a link to %s is of no use here", name);
		return;
	}
	r = agent_new(d->base, fd, &agent_ops, l, &l->agent);
	if (r < 0) {
		close(fd);
		log_error("link to queue-send: %s", strerror(-r));
		daemon_exit(d, EXIT_TEMPORARY);
	}
}

static void
reload(struct daemon *d, const struct conf *fresh)
{
	struct local *l = d->state;
	struct programs *programs;

	set_conf(l, fresh);
	if (load_programs(fresh, &programs) < 0) {
		log_warning("programs: what was in force stays");
		return;
	}
	programs_free(&l->programs);
	l->programs = programs;
}

static void
stop(struct daemon *d, usec_t limit)
{
	struct local *l = d->state;

	if (!l->ending)
		begin_end(l,
		    limit > 2 * ASK_BEFORE ? limit - ASK_BEFORE : limit / 2,
		    limit);
}

static const struct daemon_ops ops = {
	.name = "deliver-local",
	.user = DAEMON_AS_ROOT,
	.lockdown = lockdown,
	.start = start,
	.linked = linked,
	.reload = reload,
	.stop = stop,
	.done = done,
};

int
local_main(int argc, char **argv)
{
	struct local l = { 0 };

	return daemon_main(argc, argv, &ops, &l);
}
