/* queue-send/turn.h - the work of one turn of the loop (daemon/turn.h): a
 * bounded part of each kind. Every callback that leaves something to do calls
 * send_wake(). */
#ifndef QUEUE_SEND_TURN_H
#define QUEUE_SEND_TURN_H

#include "queue-send/send.h"

/* The turn_fn of a struct send. */
usec_t send_turn(void *arg);

#endif
