/* queue-send/recover.h - at start: what was in the active queue when the last
 * queue-send ended goes back to incoming/, but for messages whose marks say
 * that nothing is pending: those leave right then. Idempotent (D24). What could
 * not be moved then (a full or read-only file system) is tried again by the
 * walks of deferred.h.
 *
 * At start nobody knows which marks the last queue-send has synced, so the file
 * system is synced once before the first marked message moves. And a mark that
 * says "failed" without a reason in bounce/ is what a power cut left: that
 * recipient is pending again.
 */
#ifndef QUEUE_SEND_RECOVER_H
#define QUEUE_SEND_RECOVER_H

#include "spool/spool.h"

struct recovered {
	uint64_t returned; /* to incoming/ */
	uint64_t removed, held;
	uint64_t errors;
	uint64_t unmarked; /* recipients whose reason was lost */
	bool synced;
};

/* With the queue's lock held. Logs what it cannot move. */
void recover_active(const struct spool *sp, struct recovered *ret_done);

/* One file of active/ that is no message of the running queue-send. Counts in
 * *done; -errno, -ENOENT when it is not there. Nothing is synced here. */
int
recover_message(const struct spool *sp, uint64_t inode, struct recovered *done);

#endif
