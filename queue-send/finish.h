/* queue-send/finish.h - a message leaves the active queue: removed, to
 * deferred/, hold/ or corrupt/ (docs/QUEUE.md has the table). */
#ifndef QUEUE_SEND_FINISH_H
#define QUEUE_SEND_FINISH_H

#include "queue-send/send.h"

usec_t finish_work(struct send *s);
/* Writing to the spool failed while doing `what` with the message: counted,
 * logged at most once a second, and told to health. The first for marks, the
 * second for everything else. */
void finish_mark_failed(
    struct send *s, const struct message *m, const char *what, int error);
void finish_write_failed(
    struct send *s, const struct message *m, const char *what, int error);
/* The part of these that is not about a message. */
void finish_count_error(struct send *s, enum health_write kind, int error);
/* The file is gone from where it was: so are its reasons, lest they meet the
 * next file of that inode (D22), unless it lies elsewhere in the queue. */
void finish_clear_reasons(struct send *s, uint64_t inode);

#endif
