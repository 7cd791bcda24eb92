#include "queue-send/operators/operators_door.h"

#include <event2/event.h>

#include "queue-send/backlog/backlog.h"

void operators_join_line(struct operator* o)
{
	if (o->waits)
		return;
	o->waits = true;
	TAILQ_INSERT_TAIL(&o->send->operators->line, o, in_line);
}

void operators_leave_line(struct operator* o)
{
	if (o->waits)
		TAILQ_REMOVE(&o->send->operators->line, o, in_line);
	o->waits = false;
}

void operators_call(struct operator* o)
{
	operators_join_line(o);
	event_active(o->send->operators->idle, EV_TIMEOUT, 0);
	send_wake(o->send);
}

bool
operators_is_busy(const struct operator* o)
{
	return o->nreplies >= ACTS_AT_ONCE;
}

void operators_hold_up(struct operator* o)
{
	if (!operators_is_busy(o))
		return;
	o->held_up = true;
	wire_pause(o->wire, true);
}

/* An act that ends within its frame has held up nothing yet. */
void operators_go_on(struct operator* o)
{
	if (!o->held_up || operators_is_busy(o))
		return;
	o->held_up = false;
	operators_call(o);
}

static struct
operator* find_in(const struct operator_list *list, uint64_t number)
{
	struct operator* o;

	TAILQ_FOREACH (o, list, link)
		if (o->number == number)
			break;
	return o;
}

struct operator* operators_find(struct send *s, uint64_t number)
{
	return s->operators == NULL ? NULL
				    : find_in(&s->operators->list, number);
}

struct operator* operators_find_gone(struct send *s, uint64_t number)
{
	return s->operators == NULL ? NULL
				    : find_in(&s->operators->gone, number);
}
