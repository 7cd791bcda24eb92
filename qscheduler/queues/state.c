#include "qscheduler/queues/queues.h"

bool
queue_is_faulty(const struct queue *q)
{
	return q->faulty || q->unanswered;
}

const char *
queue_reason(const struct queue *q)
{
	return q->unanswered ? "its disk does not answer" : q->reason;
}

bool
queue_is_leaving(const struct queue *q)
{
	return q->stopping || q->faulty;
}

bool
override_holds(const struct queues *all, uint64_t number,
    enum override_kind kind, usec_t now)
{
	return number <= QUEUE_NUM_MAX &&
	    now < all->overrides[number].until[kind];
}

const struct child *
quarantine_of(const struct queue *q, usec_t now)
{
	return group_looping(&q->group, now);
}

usec_t
quarantine_until(const struct queue *q, usec_t now)
{
	const struct child *c = quarantine_of(q, now);

	return c != NULL && child_is_failing(c) ? c->proc.deadline : 0;
}

usec_t
retirement_evacuates_at(const struct queue *q)
{
	usec_t at;

	if (q->retirement.step == RETIRE_NO ||
	    __builtin_add_overflow(q->retirement.since,
		q->all->instance->conf->queue_drain_time, &at))
		return USEC_NEVER;
	return at;
}

enum queue_state
queue_state(const struct queue *q, usec_t now)
{
	if (queue_is_faulty(q))
		return QUEUE_STATE_DISABLED;
	/* Injectors do not choose it, whatever else is set. */
	if (q->want == QUEUE_STATE_CLOSING)
		return QUEUE_STATE_CLOSING;
	if (override_holds(q->all, q->number, OVERRIDE_DISABLED, now))
		return QUEUE_STATE_DISABLED;
	return quarantine_of(q, now) != NULL ? QUEUE_STATE_QUARANTINED
					     : q->want;
}

bool
queue_is_ready(const struct queue *q)
{
	const struct child *send = &q->group.child[ROLE_QUEUE_SEND];
	const struct child *todo = &q->group.child[ROLE_TODO_PROC];

	if (q->first_check != FIRST_DONE && !q->unanswered)
		return false;
	if (queue_is_faulty(q) || child_is_failing(send) ||
	    child_is_failing(todo))
		return true;
	return send->proc.state == PROC_UP && todo->proc.state == PROC_UP;
}

bool
queue_is_usable(const struct queue *q, usec_t now)
{
	return q->retirement.step == RETIRE_NO &&
	    queue_state(q, now) == QUEUE_STATE_OPEN;
}

bool
queue_hears(const struct queue *q)
{
	const struct child *send = &q->group.child[ROLE_QUEUE_SEND];

	return send->proc.state == PROC_UP && child_is_joinable(send);
}

bool
queues_are_ready(const struct queues *all)
{
	uint32_t i;

	for (i = 0; i < all->nqueues; i++)
		if (!queue_is_ready(all->queues[i]))
			return false;
	return true;
}

bool
queues_are_down(const struct queues *all)
{
	uint32_t i;

	for (i = 0; i < all->nqueues; i++)
		if (!group_is_down(&all->queues[i]->group))
			return false;
	return true;
}
