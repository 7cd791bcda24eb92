/* queue-send/recover.h - at start: what was in the active queue when the last
 * queue-send ended goes back to incoming/, but for messages whose marks say
 * that nothing is pending: those leave right then. Idempotent (D24). */
#ifndef QUEUE_SEND_RECOVER_H
#define QUEUE_SEND_RECOVER_H

#include "spool/spool.h"

struct recovered {
	uint64_t returned; /* to incoming/ */
	uint64_t removed, held;
	uint64_t errors;
};

/* With the queue's lock held. Logs what it cannot move. */
void recover_active(const struct spool *sp, struct recovered *ret_done);

#endif
