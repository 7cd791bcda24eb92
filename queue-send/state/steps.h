/* queue-send/state/steps.h - the steps of a message from one state to another
 * (docs/QUEUE.md, "Steps"). */
#ifndef QUEUE_SEND_STATE_STEPS_H
#define QUEUE_SEND_STATE_STEPS_H

#include "queue-send/state/message.h"

struct message_step {
	enum message_state from, to;
	const char *event;
};

extern const struct message_step message_steps[];
extern const size_t message_nsteps;
extern const char *const message_state_names[NSTATES];

/* Is that step in the table? A message may stay in its state, too. */
bool message_may_step(enum message_state from, enum message_state to);

#endif
