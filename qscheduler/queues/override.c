#include "qscheduler/queues/queues.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "log/log.h"

/* ---- setting ---- */

static void
tell_changed(const struct queues *all)
{
	all->events->overrides_changed(all->ctx);
}

void
override_set_load(struct queue *q, uint32_t load_pct, usec_t until)
{
	q->override.load_pct = load_pct;
	q->override.load_until = until;
	tell_changed(q->all);
}

void
override_clear_load(struct queue *q)
{
	if (q->override.load_until != 0)
		override_set_load(q, 0, 0);
}

void
override_disable(struct queue *q, usec_t until, const char *reason, size_t len)
{
	const bool again = until != 0 && q->override.disabled_until != 0;

	q->override.disabled_until = until;
	if (!again || len > 0)
		snprintf(q->override.reason, sizeof(q->override.reason), "%.*s",
		    (int)len, reason);
	tell_changed(q->all);
}

void
override_enable(struct queue *q)
{
	override_disable(q, 0, "", 0);
}

void
override_tick(struct queue *q, usec_t now)
{
	if (q->override.load_until != 0 && !override_has_load(q, now)) {
		log_info("queue %" PRIu32 ": load by hand: its time is over",
		    q->number);
		override_clear_load(q);
	}
	if (q->override.disabled_until != 0 && !override_is_disabled(q, now)) {
		log_info("queue %" PRIu32 ": no longer disabled by hand: its "
			 "time is over",
		    q->number);
		override_enable(q);
	}
}

static bool
is_set(const struct override *o)
{
	return o->load_until != 0 || o->disabled_until != 0;
}

void
override_gone(struct queue *q)
{
	if (!is_set(&q->override))
		return;
	if (!q->all->stopping)
		log_info("queue %" PRIu32
			 " is gone, and what was set for it by hand",
		    q->number);
	tell_changed(q->all);
}

void
override_show(const struct queue *q, usec_t now, struct sched_row *row)
{
	if (override_has_load(q, now)) {
		row->flags |= SCHED_ROW_MANUAL;
		row->load_pct = q->override.load_pct;
		row->manual_until_mono = q->override.load_until;
	}
	if (!override_is_disabled(q, now))
		return;
	row->flags |=
	    queue_is_faulty(q) ? SCHED_ROW_ALSO_HAND : SCHED_ROW_OVERRIDE;
	if (row->state != QUEUE_STATE_DISABLED)
		return;
	if (queue_is_faulty(q))
		return;
	row->until_mono = q->override.disabled_until == USEC_NEVER
	    ? 0
	    : q->override.disabled_until;
	memcpy(row->reason, q->override.reason, sizeof(row->reason));
}

/* ---- of queues that are not run ---- */

void
override_tick_waiting(struct queues *all, usec_t now)
{
	uint32_t n;

	for (n = 1; all->waiting != NULL && n <= QUEUE_NUM_MAX; n++) {
		struct override *o = &all->waiting[n];

		if (o->load_until != 0 && now >= o->load_until)
			(void)override_drop_waiting_load(all, n);
		if (o->disabled_until != 0 && now >= o->disabled_until)
			(void)override_drop_waiting_disabled(all, n);
	}
}

void
override_take_waiting(struct queue *q)
{
	struct queues *all = q->all;

	if (all->waiting == NULL || !is_set(&all->waiting[q->number]))
		return;
	q->override = all->waiting[q->number];
	all->waiting[q->number] = (struct override){ 0 };
	log_info("queue %" PRIu32 ": %s by hand, as was set before it ran",
	    q->number,
	    q->override.disabled_until == 0   ? "has a load"
		: q->override.load_until == 0 ? "disabled"
					      : "disabled, and has a load");
}

bool
override_waits_with_load(const struct queues *all, uint32_t number)
{
	return all->waiting != NULL && number <= QUEUE_NUM_MAX &&
	    all->waiting[number].load_until != 0;
}

bool
override_waits_disabled(const struct queues *all, uint32_t number)
{
	return all->waiting != NULL && number <= QUEUE_NUM_MAX &&
	    all->waiting[number].disabled_until != 0;
}

bool
override_drop_waiting_load(struct queues *all, uint32_t number)
{
	if (!override_waits_with_load(all, number))
		return false;
	all->waiting[number].load_pct = 0;
	all->waiting[number].load_until = 0;
	tell_changed(all);
	return true;
}

bool
override_drop_waiting_disabled(struct queues *all, uint32_t number)
{
	if (!override_waits_disabled(all, number))
		return false;
	all->waiting[number].disabled_until = 0;
	all->waiting[number].reason[0] = '\0';
	tell_changed(all);
	return true;
}

uint32_t
override_drop_waiting_loads(struct queues *all)
{
	uint32_t n, dropped = 0;

	for (n = 1; n <= QUEUE_NUM_MAX; n++)
		dropped += override_drop_waiting_load(all, n);
	return dropped;
}

bool
override_is_any(const struct queues *all)
{
	uint32_t i;

	for (i = 0; i < all->nqueues; i++)
		if (is_set(&all->queues[i]->override))
			return true;
	for (i = 1; all->waiting != NULL && i <= QUEUE_NUM_MAX; i++)
		if (is_set(&all->waiting[i]))
			return true;
	return false;
}
