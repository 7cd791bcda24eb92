/* qctl/act/act.h - acts: messages are collected by the processes that read the
 * queues, then acted on by a process for each queue, through its queue-send
 * where that runs, else under the lock of the queue.
 *
 *	targets  which messages; seek: those that have moved meanwhile
 *	acting   the command: the count, the question, the result
 *	act      the process of one queue; rounds: over its messages
 *	requeue  --failed; pace: --rate
 *	spread   which messages go to which queue
 */
#ifndef QCTL_ACT_ACT_H
#define QCTL_ACT_ACT_H

#include "qctl/task/task.h"

/* Acts on the targets, after the count, or a question on a terminal: an exit
 * code. */
int act_on_targets(struct task *t);

/* ---- targets.c ---- */

/* Tells the parent of a message to act on. A message that does not go where it
 * lies is told when it was named, and passed over when a filter met it. */
int
act_collect(struct worker *w, const struct message *m, const struct view *v);
/* A row of act_collect(); others are passed over. -ENOMEM. */
int targets_take(struct task *t, const void *data, size_t len);
/* A message that moved while its queue was read, and was found in two
 * directories, is one target: where it was found last. -ENOMEM. */
int task_unite_targets(struct task *t);

/* ---- seek.c: messages that were gone when they were to be acted on ---- */

/* The worker_job.take_row of an act: its tally, and messages that are gone. */
void seek_take_row(uint32_t queue, const void *data, size_t len, void *arg);
/* Looks for them by their ids in all queues. The targets of the task are those
 * that were found; the others are counted as gone, and named where an id was
 * given. *totals: what could not be looked at, or is missed. -errno. */
int seek_targets(struct task *t, struct worker_totals *totals);

/* ---- act.c: the worker_job.run ---- */

int task_act(struct worker *w, void *task);
/* Only asks whether this user may act on messages of the queue: a frame
 * WORKER_DENIED, or none. */
int task_ask_right(struct worker *w, void *task);

/* ---- pace.c: --rate ----
 *
 * Each message has a due time of its own, evenly from now on, which is on disk
 * before the command ends: nothing has to go on for it. */

/* "20/s", "100/m", "5/h", "20". -EINVAL. */
int pace_parse(const char *text, uint32_t *ret_count, usec_t *ret_unit);
/* The time that so many messages take. */
usec_t pace_span(const struct options *o, size_t count);
/* When the index-th of `own` messages of a queue is due, of `all`; 0: at once.
 */
usec_t pace_due(const struct task *t, size_t index, size_t own);

#endif
