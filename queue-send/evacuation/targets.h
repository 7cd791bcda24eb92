/* queue-send/evacuation/targets.h - the queues that get the mail of one that
 * ends, in turn. A queue that refuses a file gets no other file for
 * error_interval. */
#ifndef QUEUE_SEND_EVACUATION_TARGETS_H
#define QUEUE_SEND_EVACUATION_TARGETS_H

#include "ipc/msg.h"
#include "queue-send/disk/other_queue.h"
#include "queue-send/state/send.h"

struct target {
	uint32_t queue;
	struct other_queue *other; /* one of EVACUATE_OPEN; NULL: not now */
	bool foreign;              /* on another file system */
	usec_t not_before;
};

/* All zero: none. */
struct targets {
	struct target list[PAGE_QUEUES_MAX];
	uint32_t count, nopen, turn;
	usec_t said; /* log_due() */
};

/* The list of HAND_OVER, in place of the one before. Queues that are in both
 * stay open. */
void
targets_set(const struct send *s, struct targets *ts, const msg_blob *queues);
void targets_close(struct targets *ts);
/* 0, and the next one that may take a file: it is open. -EBUSY: none does now;
 * -EAGAIN: the same, while one is being opened, and the end of that wakes the
 * loop. */
int targets_next(
    struct send *s, struct targets *ts, struct other_queue **ret_other);
/* -errno of a file that went there; the list may be another one since. */
void targets_refused(struct send *s, struct targets *ts,
    const struct other_queue *other, int error);
/* The pauses of all targets end. */
void targets_try_again(struct targets *ts);
bool targets_are_foreign(const struct targets *ts);
/* Of those that are not; USEC_NEVER: all are. */
usec_t targets_first_pause(const struct targets *ts);

#endif
