#include "qscheduler/queues/queues.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "log/log.h"

static struct override *
override_of(const struct queue *q)
{
	return &q->all->overrides[q->number];
}

static void
tell_changed(const struct queues *all)
{
	all->events->overrides_changed(all->ctx);
}

void
override_set_load(struct queue *q, uint32_t load_pct, usec_t until)
{
	override_of(q)->until[OVERRIDE_LOAD] = until;
	override_of(q)->value[OVERRIDE_LOAD] = load_pct;
	tell_changed(q->all);
}

void
override_disable(struct queue *q, usec_t until, const char *reason, size_t len)
{
	struct override *o = override_of(q);

	if (o->until[OVERRIDE_DISABLED] == 0 || len > 0)
		snprintf(
		    o->reason, sizeof(o->reason), "%.*s", (int)len, reason);
	o->until[OVERRIDE_DISABLED] = until;
	tell_changed(q->all);
}

bool
override_clear(struct queues *all, uint32_t number, enum override_kind kind)
{
	usec_t *until = &all->overrides[number].until[kind];

	if (*until == 0)
		return false;
	*until = 0;
	tell_changed(all);
	return true;
}

void
override_tick(struct queues *all, usec_t now)
{
	static const char *const what[] = {
		[OVERRIDE_DISABLED] = "no longer disabled by hand",
		[OVERRIDE_LOAD] = "load by hand",
	};
	enum override_kind kind;
	uint32_t n;

	for (n = 1; n <= QUEUE_NUM_MAX; n++)
		for (kind = 0; kind < ARRAY_LEN(what); kind++)
			if (!override_holds(all, n, kind, now) &&
			    override_clear(all, n, kind))
				log_info("queue %" PRIu32
					 ": %s: its time is over",
				    n, what[kind]);
}

void
override_came(const struct queue *q)
{
	const usec_t *until = override_of(q)->until;

	if (until[OVERRIDE_DISABLED] != 0 || until[OVERRIDE_LOAD] != 0)
		log_info("queue %" PRIu32 ": %s by hand, as was set before it "
			 "ran",
		    q->number,
		    until[OVERRIDE_DISABLED] == 0 ? "has a load"
			: until[OVERRIDE_LOAD] == 0
			? "disabled"
			: "disabled, and has a load");
}

void
override_gone(struct queue *q)
{
	const bool had = override_clear(q->all, q->number, OVERRIDE_LOAD);

	if (override_clear(q->all, q->number, OVERRIDE_DISABLED) || had)
		log_info("queue %" PRIu32
			 " is gone, and what was set for it by hand",
		    q->number);
}

void
override_show(const struct queue *q, usec_t now, struct sched_row *row)
{
	const struct override *o = override_of(q);
	const usec_t disabled_until = o->until[OVERRIDE_DISABLED];

	if (now < o->until[OVERRIDE_LOAD]) {
		row->flags |= SCHED_ROW_MANUAL;
		row->load_pct = o->value[OVERRIDE_LOAD];
		row->manual_until_mono = o->until[OVERRIDE_LOAD];
	}
	if (now >= disabled_until)
		return;
	row->flags |=
	    queue_is_faulty(q) ? SCHED_ROW_ALSO_HAND : SCHED_ROW_OVERRIDE;
	if (row->state != QUEUE_STATE_DISABLED)
		return;
	if (queue_is_faulty(q))
		return;
	row->until_mono = disabled_until == USEC_NEVER ? 0 : disabled_until;
	memcpy(row->reason, o->reason, sizeof(row->reason));
}
