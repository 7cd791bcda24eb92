#include "qscheduler/queues/queues.h"

#include <inttypes.h>

#include "log/log.h"

void
quarantine_tick(struct queue *q, usec_t now)
{
	const struct child *c = q->faulty ? NULL : quarantine_of(q, now);

	if (c != NULL && c->proc.failures != q->quarantine_told) {
		child_describe_failures(c, q->reason, sizeof(q->reason));
		if (q->quarantine_told == 0)
			log_error("ALERT: queue %" PRIu32 " is quarantined: "
				  "%s; tried again with growing delay",
			    q->number, q->reason);
		q->quarantine_told = c->proc.failures;
	} else if (c == NULL && q->quarantine_told > 0) {
		q->quarantine_told = 0;
		if (q->faulty)
			return; /* the reason of the fault was told */
		q->reason[0] = '\0';
		log_info("queue %" PRIu32 " is out of quarantine", q->number);
	}
}

bool
quarantine_release(struct queue *q)
{
	return !queue_is_leaving(q) && group_release(&q->group);
}
