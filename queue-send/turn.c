#include "queue-send/turn.h"

#include <errno.h>
#include <event2/event.h>

#include "base/clock.h"
#include "queue-send/active.h"
#include "queue-send/control.h"
#include "queue-send/deferred.h"
#include "queue-send/dispatch.h"
#include "queue-send/finish.h"
#include "queue-send/offers.h"
#include "queue-send/publish.h"
#include "queue-send/recipients.h"
#include "queue-send/results.h"

/* Each kind of work does a bounded part of it and says when it wants to go on:
 * a past time for at once, USEC_NEVER when nothing is left. The order matters:
 * what leaves makes room for what comes, and what came is dispatched. */
static usec_t (*const works[])(struct send *s) = {
	results_work,
	finish_work,
	active_work,
	recipients_work,
	dispatch_work,
	offers_work,
	deferred_work,
	publish_work,
	control_work,
};

static void
arm(struct send *s, usec_t at)
{
	usec_t wait = at - s->now;
	struct timeval tv;

	if (at == USEC_NEVER)
		return;
	wait = at <= s->now ? 0 : wait;
	tv = (struct timeval){ wait / USEC_PER_SEC, wait % USEC_PER_SEC };
	evtimer_add(s->timer, &tv);
}

static void
on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct send *s = arg;
	usec_t next = USEC_NEVER, at;
	size_t i;

	send_tick(s);
	s->kicked = false;
	for (i = 0; i < ARRAY_LEN(works); i++) {
		at = works[i](s);
		next = at < next ? at : next;
	}
	arm(s, s->kicked ? s->now : next);
}

int
turn_init(struct send *s)
{
	s->timer = evtimer_new(s->base, on_timer, s);
	return s->timer == NULL ? -ENOMEM : 0;
}

void
turn_done(struct send *s)
{
	if (s->timer != NULL)
		event_free(s->timer);
	s->timer = NULL;
}

void
send_tick(struct send *s)
{
	s->now = clock_mono();
	s->now_wall = clock_wall();
}

void
send_kick(struct send *s)
{
	const struct timeval soon = { 0 };

	s->kicked = true; /* also when a turn runs, which sets the timer */
	if (s->timer != NULL)
		evtimer_add(s->timer, &soon);
}
