#include "qscheduler/supervisor/supervisor.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>

#include "base/clock.h"
#include "ipc/msg.h"
#include "log/log.h"

/* ---- HUP ---- */

static void
on_reload(struct super *s)
{
	s->reload_wanted = true;
	super_reload_if_wanted(s, clock_mono());
}

/* ---- the others ---- */

static void
on_flush(struct super *s)
{
	const struct msg msg = { .type = MSG_FLUSH };
	uint32_t i;

	if (s->stopping)
		return;
	log_info("flush: everything is tried again now");
	for (i = 0; i < s->queues.nqueues; i++) {
		struct child *c =
		    &s->queues.queues[i]->group.child[ROLE_QUEUE_SEND];

		if (child_is_joinable(c))
			(void)child_send(c, &msg, -1);
	}
}

static void
on_dump(struct super *s)
{
	uint32_t i;

	log_info("dump: %s; %" PRIu64 " bad requests, %" PRIu64
		 " log lines dropped",
	    s->status, s->requests.bad, log_dropped());
	for (i = 0; i < s->queues.nqueues; i++)
		queue_dump(s->queues.queues[i]);
	group_dump(&s->services.group);
}

static void
on_child(struct super *s)
{
	children_reap(&s->children);
}

static const struct {
	int signal;
	void (*handle)(struct super *s);
} signals[SUPER_NSIGNALS] = {
	{ SIGTERM, super_stop },
	{ SIGINT, super_stop },
	{ SIGHUP, on_reload },
	{ SIGALRM, on_flush },
	{ SIGUSR1, on_dump },
	{ SIGCHLD, on_child },
};

static void
on_signal(evutil_socket_t sig, short what UNUSED, void *arg)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(signals); i++)
		if (signals[i].signal == sig)
			signals[i].handle(arg);
}

static void
mask(int how, bool stops)
{
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	for (i = 0; i < ARRAY_LEN(signals); i++)
		if (stops || signals[i].handle != super_stop)
			sigaddset(&set, signals[i].signal);
	(void)sigprocmask(how, &set, NULL);
}

/* TERM may end it: nothing has been made yet. */
void
super_signals_hold(void)
{
	mask(SIG_BLOCK, false);
}

int
super_signals_open(struct super *s)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(signals); i++) {
		s->signals[i] = evsignal_new(
		    s->instance.loop, signals[i].signal, on_signal, s);
		if (s->signals[i] == NULL ||
		    evsignal_add(s->signals[i], NULL) < 0)
			return -ENOMEM;
	}
	mask(SIG_UNBLOCK, true);
	return 0;
}

void
super_signals_close(struct super *s)
{
	size_t i;

	/* Another TERM would make a clean stop look like a death. */
	mask(SIG_BLOCK, true);
	for (i = 0; i < ARRAY_LEN(signals); i++) {
		if (s->signals[i] != NULL)
			event_free(s->signals[i]);
		s->signals[i] = NULL;
	}
}
