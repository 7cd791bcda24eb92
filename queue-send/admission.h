/* queue-send/admission.h - what comes into the active queue next: one message
 * from incoming, one from deferred, in turn, also when it has been full, so
 * that neither starves the other. Pure.
 *
 * Behind each side is a short list of messages that todo-proc has prepared.
 * CREDIT and PREPARE keep both lists filled up to a window, whatever the other
 * side does; only the step from the lists into the active queue takes turns.
 */
#ifndef QUEUE_SEND_ADMISSION_H
#define QUEUE_SEND_ADMISSION_H

#include "base/base.h"

enum admission_side {
	ADMISSION_INCOMING,
	ADMISSION_DEFERRED,
	ADMISSION_NSIDES,
};

struct admission {
	enum admission_side turn;
};

/* The side that gives the next message and loses its turn; -1: none waits. */
int admission_choose(
    struct admission *in, const uint32_t waiting[ADMISSION_NSIDES]);
/* Messages of one side that may have been let come and not be in the active
 * queue: MSG_PREP_WINDOW, or what the active queue holds if that is less. */
uint32_t admission_window(uint32_t active_limit);
/* How many more may be let come, with so many on their way (granted) and
 * waiting. Small rests wait until a quarter of the window is free, to save
 * messages, unless nothing at all would come. */
uint32_t admission_grant(uint32_t window, uint32_t granted, uint32_t waiting);

#endif
