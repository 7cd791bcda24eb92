/* todo-proc/hand.h - the link with queue-send (docs/QUEUE.md): messages are
 * handed over against CREDIT, in order of arrival, those of deferred/ when
 * PREPARE asks for them; one and one in turn. The end of the link ends the
 * process: the supervisor starts it again with queue-send. */
#ifndef TODO_PROC_HAND_H
#define TODO_PROC_HAND_H

#include "todo-proc/todo.h"

/* -errno: the descriptor is still the caller's. */
int hand_linked(void *todo, int fd);
void hand_done(struct todo *t);
/* A frame of queue-send; -EBADMSG for what it may not say. */
int hand_frame(struct todo *t, const struct msg *msg);
usec_t hand_work(struct todo *t);
/* COUNTS, at most once a second when they have changed. */
usec_t hand_counts_work(struct todo *t);

#endif
