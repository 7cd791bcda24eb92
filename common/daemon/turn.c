#include "daemon/turn.h"

#include <errno.h>
#include <event2/event.h>

#include "base/clock.h"

static void
on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct turn *t = arg;
	struct timeval tv;
	usec_t wait;

	t->kicked = false;
	wait = t->work(t->arg);
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
	const struct timeval soon = { 0 };

	/* Setting a timer that is due postpones it: a program that kicks in
	 * each round of the loop would never get a turn. */
	if (t->kicked)
		return;
	t->kicked = true;
	if (t->timer != NULL)
		(void)evtimer_add(t->timer, &soon);
}
