/* queue-send/operators/explain.h - what a message waits for, told to a peer of
 * lock/operate (docs/QCTL.md, "Why a message waits").
 *
 * The answer is made of what is in memory: no file is read, and nothing
 * changes. The work is bounded for a message of any size, in a queue of any
 * length. */
#ifndef QUEUE_SEND_OPERATORS_EXPLAIN_H
#define QUEUE_SEND_OPERATORS_EXPLAIN_H

#include "ipc/wire.h"
#include "queue-send/state/send.h"

#define EXPLAIN_GROUPS 32   /* EXPLAINED about recipients, at most */
#define EXPLAIN_STEPS  5000 /* of lists that are counted */

/* The answers to EXPLAIN and EXPLAIN_TO. A peer that does not take them gets
 * none. */
void
explain_message(struct send *s, struct wire *peer, const struct msg_EXPLAIN *f);
void explain_address(
    struct send *s, struct wire *peer, const struct msg_EXPLAIN_TO *f);

#endif
