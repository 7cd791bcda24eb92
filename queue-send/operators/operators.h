/* queue-send/operators/operators.h - acts of an operator on messages
 * (docs/QCTL.md).
 *
 *	operators.c   connections, their frames and log (own.h)
 *	operators_acts.c  frames that act (own.h)
 *	acts.c        one act on one message, wherever it is
 *	spread.c      a message that waits goes to another queue
 */
#ifndef QUEUE_SEND_OPERATORS_OPERATORS_H
#define QUEUE_SEND_OPERATORS_OPERATORS_H

#include "queue-send/state/send.h"
#include "queue-send/disk/act_task.h"
#include "spool/act.h"
#include "spool/hold_note.h"

#define OPERATORS_SOCKET "operate" /* in lock/ */
#define OPERATORS_MAX    16        /* at a time, and one more for root */
#define ASKERS_MAX       8         /* of them, who may not act */
/* A silent connection gives its place to the next one. */
#define OPERATORS_IDLE   (10 * USEC_PER_SEC)

/* Without a socket the queue goes on, and operators act when it is stopped:
 * that is logged, and tried again every error_interval. */
void operators_init(struct send *s);
/* A socket that could not be opened is tried now. */
void operators_try_again(struct send *s);
void operators_done(struct send *s);
/* Requests, as many as their part of the loop's time allows (struct quota); the
 * time of the next one. */
usec_t operators_work(struct send *s);

#define SPREAD_OPEN 4 /* queues of one operator, eleven descriptors each */

/* Where the messages of one operator go. */
struct spread {
	struct other_queue *to[SPREAD_OPEN]; /* the last ones; NULL: none */
	unsigned next;                       /* of these is replaced */
	uint64_t moved; /* and the supervisor was not told */
};
/* Acts go on whose queue is open now; those that wait end with the connection
 * of their operator. */
usec_t spread_work(struct send *s);
/* The other queues are told by the supervisor, and nothing stays open. */
void spread_end(struct send *s, struct spread *spread);

/* An act on one message, done by a thread where it waits for the disk. The
 * asker has one answer, within this call or later: 0; -ENOENT: no such message
 * here; -EINVAL: not where it lies; -EAGAIN: it is being prepared, or about to
 * leave, another act on it is under way, or too many are; -EBUSY: a stop, or
 * the mail of this queue goes to other queues; -EROFS; -ERANGE: due later than
 * maximal_backoff_time; -ENOMEM; of the disk; of ACT_SPREAD also -EINVAL: it is
 * in the active queue, or this is no other queue, and as spool_hand_over(). */
void acts_do(struct send *s, const struct act_order *order);

/* ---- acts.c and spread.c ---- */

int spread_message(struct send *s, const struct act_order *order);
/* The file has gone to another queue: memory forgets the message. */
void spread_left(struct send *s, const struct act_task *t);
/* Of a message that is offered: its answer has come, and its file lies where it
 * lay. */
void act_drop_offer(struct send *s, struct message *m);

/* ---- operators_trace.c ---- */

/* Another deliver-smtp is linked: it is told of the traces under way. */
void operators_trace_again(struct send *s);
/* A line for an operator, who may be gone. -EBADMSG: no line that deliver-smtp
 * may send. */
int operators_traced(struct send *s, const struct msg_TRACE_LINE *line);

#endif
