#include "queue-send/state/agent.h"

void
delivery_cancel_one(struct delivery *d, uint8_t stage)
{
	const struct msg msg = { .type = MSG_CANCEL,
		.u.CANCEL = { d->id, stage } };

	if (d->closing || d->agent->wire == NULL)
		return;
	/* The next start is not to wait for a back-off. */
	d->message->agent_died |= stage == AGENT_NOT_BEGUN;
	(void)wire_send(d->agent->wire, &msg, -1);
}
