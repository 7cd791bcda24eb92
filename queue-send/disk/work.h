/* queue-send/disk/work.h - the kinds of work that wait for the disk
 * (daemon/executor.h; docs/QUEUE.md, "Threads").
 *
 * The order of what is done with one message: it is read, and its results are
 * recorded; then its marks are synced, its failures are reported, and its file
 * is moved or removed. The table of steps (state/steps.h) and messages_put()
 * see to that.
 *
 * A task's ended() gets the struct send. */
#ifndef QUEUE_SEND_DISK_WORK_H
#define QUEUE_SEND_DISK_WORK_H

#include "queue-send/state/send.h"
#include "spool/sync_pool.h"

/* Sets s->disk.kinds, for a queue on a disk or in memory. */
void disk_set_kinds(struct send *s);
/* Starts the threads. -errno. */
int disk_start(struct send *s);
/* True, unless a thread that hangs was left behind. */
bool disk_end(struct send *s);
/* The task is a thread's, and ended() is called later; where the kind has no
 * threads the loop has done the task, and ended() it, when this returns. */
void disk_do(struct send *s, enum disk_kind kind, struct sync_task *task);
/* Do threads do this kind of work? */
bool disk_has_threads(const struct send *s, enum disk_kind kind);
/* Ends what is done. The end of a turn: executor_look(). */
usec_t disk_look(struct send *s);

/* Was a thread held up by the disk in the last seconds, or the loop? Then the
 * loop leaves to threads what else costs less than a thread. */
bool disk_is_slow(struct send *s);
/* The kind of work that a mark is. One byte in a page that is in memory costs a
 * thread ten times as much as the loop, while the disk answers. */
enum disk_kind
disk_kind_of_mark(struct send *s, const struct message *m, bool has_reason);
/* The loop began something on the disk then, and has done it. */
void disk_waited(struct send *s, usec_t began);
/* When the oldest call began that has lasted for that long, and its kind as
 * enum disk_work; 0: there is none. */
usec_t disk_oldest(const struct send *s, usec_t least, uint32_t *ret_work);

#endif
