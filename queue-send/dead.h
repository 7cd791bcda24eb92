/* queue-send/dead.h - what waits for a dead destination is deferred without
 * an attempt, with the reason that killed the destination. */
#ifndef QUEUE_SEND_DEAD_H
#define QUEUE_SEND_DEAD_H

#include "queue-send/send.h"

usec_t dead_work(struct send *s);

#endif
