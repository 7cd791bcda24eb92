#include "queue-send/message/path.h"

#include "queue-send/backlog/backlog.h"

void
settle_message(struct send *s, struct message *m)
{
	bool idle = sched_message_running(m->sched) == 0 && m->nunrecorded == 0;

	if (idle)
		messages_rest(&s->messages, m, s->now);
	/* The end of the batch settles it. */
	if (m->state == STATE_READING || m->state == STATE_FETCHING)
		return;
	if (m->fate == FATE_OPEN && !m->sole &&
	    claims_settle(s, m, idle && (m->named || !message_has_unread(m))))
		message_decide(m, FATE_EVICTED);
	if (m->fate != FATE_OPEN)
		sched_message_cancel(m->sched);
	if (!idle || sched_message_waiting(m->sched) > 0)
		return;
	if (!message_has_unread(m))
		messages_put(&s->messages, m, STATE_FINISHED);
	send_wake(s);
}

void
settle_aside(struct send *s, struct message *m)
{
	if (m->sched == NULL || move_is_under_way(m) ||
	    (m->state != STATE_READING && m->state != STATE_FETCHING &&
		!message_has_unread(m) && sched_message_waiting(m->sched) == 0))
		return;
	message_decide(m, FATE_ASIDE);
	settle_message(s, m);
}
