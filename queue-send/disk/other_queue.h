/* queue-send/disk/other_queue.h - other queues, open while messages of this one
 * go there: by an operator (operators/spread.c), or since this queue ends
 * (evacuation/evacuate.c).
 *
 * One table by number: all who need a queue share it, and it is closed with
 * the last of them. The opening waits for the disk of the other queue, so a
 * task of its own does it, in threads that do nothing else: one thread at most
 * hangs with a queue, no file, no act and no other opening waits there, and a
 * stop waits for none of it. The loop alone counts those who have a queue.
 */
#ifndef QUEUE_SEND_DISK_OTHER_QUEUE_H
#define QUEUE_SEND_DISK_OTHER_QUEUE_H

#include "spool/spool.h"

struct other_queue;
struct send;

/* The caller's to free; it is being opened if nobody had it. NULL: no memory.
 */
struct other_queue *other_queue_get(struct send *s, uint32_t queue);
/* For one more, who frees it, too. */
struct other_queue *other_queue_share(struct other_queue *other);
/* NULL is fine, and left behind. */
void other_queue_free(struct other_queue **other);
uint32_t other_queue_number(const struct other_queue *other);
/* 0: it is open; -EAGAIN: it is being opened, and the end of that wakes the
 * loop; else as spool_open(), or -ESTALE: it is not there. The next one who
 * gets it has it opened again then. */
int other_queue_state(const struct other_queue *other);
/* A task has ended with that error. After -ESTALE its directory is another one,
 * or none: the next one who gets the queue has it opened again. */
void other_queue_used(struct other_queue *other, int error);
/* Directories of one that is open. */
const struct spool *other_queue_spool(const struct other_queue *other);

#endif
