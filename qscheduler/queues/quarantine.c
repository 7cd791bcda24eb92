#include "qscheduler/supervisor/super.h"

#include <inttypes.h>
#include <stdio.h>

#include "log/log.h"

const struct child *
quarantine_of(const struct queue *q, usec_t now)
{
	int role;

	for (role = 0; role < NROLES; role++)
		if (proc_is_looping(&q->children[role].proc, now))
			return &q->children[role];
	return NULL;
}

static void
describe(struct queue *q, const struct child *c)
{
	char what[CHILD_END_SIZE] = "not started";

	if (!c->not_started)
		child_describe_end(c->last_status, what, sizeof(what));
	snprintf(q->reason, sizeof(q->reason),
	    "%s failed %" PRIu32 " times in a row, %s%s%s", role_names[c->role],
	    c->proc.failures, what, c->last_text[0] == '\0' ? "" : ": ",
	    c->last_text);
}

void
quarantine_tick(struct queue *q, usec_t now)
{
	const struct child *c = q->disabled ? NULL : quarantine_of(q, now);

	if (c != NULL && c->proc.failures != q->quarantine_told) {
		describe(q, c);
		if (q->quarantine_told == 0)
			log_error("ALERT: queue %" PRIu32 " is quarantined: "
				  "%s; tried again with growing delay",
			    q->number, q->reason);
		q->quarantine_told = c->proc.failures;
	} else if (c == NULL && q->quarantine_told > 0) {
		q->quarantine_told = 0;
		if (q->disabled)
			return; /* for a reason of its own, which was told */
		q->reason[0] = '\0';
		log_info("queue %" PRIu32 " is out of quarantine", q->number);
	}
}

usec_t
quarantine_until(const struct queue *q, usec_t now)
{
	const struct child *c = quarantine_of(q, now);

	return c != NULL && child_is_failing(c) ? c->proc.deadline : 0;
}

bool
quarantine_release(struct queue *q)
{
	bool any = false;
	int role;

	if (queue_is_leaving(q))
		return false;
	for (role = 0; role < NROLES; role++) {
		struct child *c = &q->children[role];

		any |= child_is_failing(c) || c->proc.failures >= PROC_LOOPING;
		child_event(c, PROC_EV_RELEASE);
	}
	return any;
}
