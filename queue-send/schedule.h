/* queue-send/schedule.h - the scheduler of this queue: its life, and its
 * parameters from the configuration (limits/limits.h). */
#ifndef QUEUE_SEND_SCHEDULE_H
#define QUEUE_SEND_SCHEDULE_H

#include "queue-send/send.h"

/* 0 or -ENOMEM; schedule_done() is right after either. */
int schedule_init(struct send *s);
/* With no message left. */
void schedule_done(struct send *s);
/* All parameters are those of s->conf from now on. */
void schedule_configure(struct send *s);
/* An agent came, went, is full or not any more: transports without one that
 * can take deliveries have a process limit of 0. */
void schedule_limits(struct send *s);
/* Nothing is to start for now, whatever agents there are; or again. A queue
 * that may not start anything must not keep its turn at destinations. */
void schedule_pause(struct send *s, bool pause);

#endif
