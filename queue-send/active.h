/* queue-send/active.h - a message comes into the active queue: moved to
 * active/, looked at, its recipients ready to be read (docs/QUEUE.md). */
#ifndef QUEUE_SEND_ACTIVE_H
#define QUEUE_SEND_ACTIVE_H

#include "queue-send/send.h"

/* Fill the active queue from the two lists of offered messages, in turn. */
usec_t active_work(struct send *s);
/* Nothing may be done with this message any more: take it out of the active
 * queue and out of memory. The file is not touched. */
void active_forget(struct send *s, struct message *m);

#endif
