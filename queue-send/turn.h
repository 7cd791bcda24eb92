/* queue-send/turn.h - one turn of the loop: a bounded amount of each kind of
 * work, then the one timer of the process is set to what comes next. Every
 * callback that leaves something to do calls send_kick(). */
#ifndef QUEUE_SEND_TURN_H
#define QUEUE_SEND_TURN_H

#include "queue-send/send.h"

/* -ENOMEM. */
int turn_init(struct send *s);
void turn_done(struct send *s);

#endif
