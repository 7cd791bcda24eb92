#include "queue-send/turn.h"

#include "base/clock.h"
#include "base/num.h"
#include "log/log.h"
#include "queue-send/active.h"
#include "queue-send/control.h"
#include "queue-send/dead.h"
#include "queue-send/deferred.h"
#include "queue-send/dispatch.h"
#include "queue-send/finish.h"
#include "queue-send/handover.h"
#include "queue-send/links.h"
#include "queue-send/offers.h"
#include "queue-send/publish.h"
#include "queue-send/recipients.h"
#include "queue-send/results.h"
#include "queue-send/sync.h"
#include "queue-send/watch.h"
#include "queue-send/places.h"

/* Each kind of work does a bounded part of it and says when it wants to go on:
 * a past time for at once, USEC_NEVER when nothing is left. The order matters:
 * what leaves makes room for what comes, and what came is dispatched. */
static usec_t (*const works[])(struct send *s) = {
	links_work,
	results_work,
	finish_work,
	sync_work,
	active_work,
	recipients_work,
	places_work,
	dead_work,
	dispatch_work,
	handover_work,
	offers_work,
	deferred_work,
	watch_work,
	publish_work,
	control_work,
};

usec_t
send_turn(void *arg)
{
	struct send *s = arg;
	usec_t next = USEC_NEVER, at;
	size_t i;

	send_tick(s);
	for (i = 0; i < ARRAY_LEN(works); i++) {
		at = works[i](s);
		next = at < next ? at : next;
	}
	return next == USEC_NEVER ? USEC_NEVER : next - s->now;
}

static void
look_for_jump(struct send *s, usec_t boot)
{
	const usec_t jump = jumps_look(&s->jumps, s->now_wall, boot);
	struct buf text = { 0 };

	if (jump == 0)
		return;
	(void)num_add_span(&text, jump < 0 ? -jump : jump);
	log_warning("ALERT: the clock was set %s by %s: messages do not age "
		    "by it",
	    jump < 0 ? "back" : "forward", buf_str(&text));
	buf_done(&text);
}

void
send_tick(struct send *s)
{
	const usec_t boot = clock_boot();

	s->now = clock_mono();
	s->now_wall = clock_wall();
	/* A process that was stopped between two readings proves nothing. */
	if (clock_boot() - boot < JUMPS_LEAST / 4)
		look_for_jump(s, boot);
}

void
send_kick(struct send *s)
{
	turn_kick(&s->turn);
}
