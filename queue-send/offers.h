/* queue-send/offers.h - what todo-proc offers (docs/QUEUE.md, link PREP).
 *
 * A MESSAGE is only told and remembered here; its file stays where it is until
 * it is its turn. One that we have already is passed over: arrival time and
 * nonce say whether it is the same one. */
#ifndef QUEUE_SEND_OFFERS_H
#define QUEUE_SEND_OFFERS_H

#include "queue-send/send.h"

/* 0, or -EBADMSG for values that todo-proc may not send. */
int offers_on_message(struct send *s, const struct msg_MESSAGE *frame);
int offers_on_gone(struct send *s, const struct msg_GONE *frame);
int offers_on_counts(struct send *s, const struct msg_COUNTS *frame);
/* Send CREDIT, PREPARE and SCAN. */
usec_t offers_work(struct send *s);
/* The peer is another one: what was asked of the last one is forgotten, what
 * it offered lies where it lay. */
void offers_reset(struct send *s);
/* What was asked for is not to be had now: due again at. */
void offers_unask(struct send *s, struct due *d, usec_t at);
/* The same peer; its credit stands. */
void offers_drop(struct send *s);

#endif
