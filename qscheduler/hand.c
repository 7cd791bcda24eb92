#include "qscheduler/super.h"

bool
hand_has_load(const struct queue *q, usec_t now)
{
	return now < q->hand.load_until;
}

bool
hand_is_disabled(const struct queue *q, usec_t now)
{
	return now < q->hand.disabled_until;
}

void
hand_tick(struct queue *q, usec_t now)
{
	if (!hand_has_load(q, now)) {
		q->hand.load_pct = 0;
		q->hand.load_until = 0;
	}
	if (!hand_is_disabled(q, now))
		q->hand.disabled_until = 0;
}
