/* queue-send/operators/operators.h - acts of an operator on messages
 * (docs/QCTL.md).
 *
 *	operators.c   connections, their frames and log (operators_door.h)
 *	acts.c        one act on one message, wherever it is
 *	spread.c      a message that waits goes to another queue
 */
#ifndef QUEUE_SEND_OPERATORS_OPERATORS_H
#define QUEUE_SEND_OPERATORS_OPERATORS_H

#include "queue-send/send.h"
#include "spool/act.h"
#include "spool/hold_note.h"

#define OPERATORS_SOCKET "operate" /* in lock/ */
#define OPERATORS_MAX    16        /* at a time, and one more for root */
#define ASKERS_MAX       8         /* of them, who may not act */
/* A silent connection gives its place to the next one. */
#define OPERATORS_IDLE   (10 * USEC_PER_SEC)

/* Without a socket the queue goes on, and operators act when it is stopped:
 * that is logged. */
void operators_init(struct send *s);
void operators_done(struct send *s);
/* Requests, as many as their part of the loop's time allows (struct quota); the
 * time of the next one. */
usec_t operators_work(struct send *s);
/* An act on one message; *ret_running: 0 when it is done, else the message is
 * in the active queue, and the act follows when its deliveries have ended: 1
 * and their number. -ENOENT: no such message here; -EINVAL:
 * not where it lies; -EAGAIN: it is being prepared, or about to leave; -EBUSY:
 * the mail of this queue goes to other queues; -EROFS.
 * due_wall: of ACT_RELEASE and ACT_RETRY the time when it is due, 0: at once;
 * -ERANGE: later than maximal_backoff_time. */
int acts_do(struct send *s, enum spool_act act, const struct queue_id *id,
    usec_t due_wall, uint32_t *ret_running);
/* ACT_HOLD with a note of by whom, why and until when, which is on disk before
 * the move. */
int acts_hold(struct send *s, const struct queue_id *id,
    const struct hold_note *note, uint32_t *ret_running);

/* Where the messages of one operator go. */
struct spread {
	struct spool to;
	bool open;      /* `to' is a spool */
	uint64_t moved; /* and the supervisor was not told */
};
/* ACT_SPREAD to queue `to`, which stays open for the next one. -ENOENT: no such
 * message here; -EINVAL: it is in the active queue, or does not wait, or this
 * is no other queue; -EAGAIN, -EBUSY, -EROFS as acts_do(); of the other queue
 * as spool_hand_over(). */
int spread_message(struct send *s, struct spread *spread,
    const struct queue_id *id, uint32_t to);
/* The other queues are told by the supervisor, and nothing stays open. */
void spread_end(struct send *s, struct spread *spread);
/* Everything that is deferred is due, and all destinations are open. */
void acts_flush(struct send *s);

#endif
