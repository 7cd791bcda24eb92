/* queue-send/finish.h - a message leaves the active queue: removed, to
 * deferred/, hold/ or corrupt/ (docs/QUEUE.md has the table). */
#ifndef QUEUE_SEND_FINISH_H
#define QUEUE_SEND_FINISH_H

#include "queue-send/send.h"

usec_t finish_work(struct send *s);
/* Writing to the spool failed while doing `what` with the message: counted,
 * logged at most once a second, and told to health. */
void finish_write_failed(
    struct send *s, const struct message *m, const char *what, int error);

#endif
