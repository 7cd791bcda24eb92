#include "daemon/turn.h"

#include <errno.h>
#include <event2/event.h>

#include "base/clock.h"
#include "log/log.h"

static void
on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct turn *t = arg;
	struct timeval tv;
	usec_t wait;

	t->kicked = false;
	t->runs = true;
	wait = t->work(t->arg);
	t->runs = false;
	/* Work of the last priority may keep the loop from sleeping. */
	log_flush();
	if (t->kicked)
		wait = 0;
	if (wait == USEC_NEVER)
		return;
	tv = clock_timeval(wait);
	(void)evtimer_add(t->timer, &tv);
}

int
turn_init(struct turn *t, struct event_base *base, turn_fn *work, void *arg)
{
	*t = (struct turn){ .work = work, .arg = arg };
	t->timer = evtimer_new(base, on_timer, t);
	return t->timer == NULL ? -ENOMEM : 0;
}

void
turn_done(struct turn *t)
{
	if (t->timer != NULL)
		event_free(t->timer);
	t->timer = NULL;
}

void
turn_kick(struct turn *t)
{
	/* Once, and behind the events that are active now: a program that kicks
	 * in each of their callbacks gets one turn for all. */
	if (t->kicked)
		return;
	t->kicked = true; /* a turn that runs sets the timer itself */
	if (t->timer != NULL && !t->runs)
		event_active(t->timer, EV_TIMEOUT, 0);
}
