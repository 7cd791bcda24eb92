/* queue-send/disk.h - errors of writing to the spool, and the reasons of a
 * message in defer/ and bounce/. */
#ifndef QUEUE_SEND_DISK_H
#define QUEUE_SEND_DISK_H

#include "queue-send/results.h"

/* Writing to the spool failed while doing `what` with the message: counted,
 * logged at most once a second, and told to health. The first for marks, the
 * second for everything else. */
void disk_mark_failed(
    struct send *s, const struct message *m, const char *what, int error);
void disk_write_failed(
    struct send *s, const struct message *m, const char *what, int error);
/* The part of these that is not about a message. */
void disk_count_error(struct send *s, enum health_write kind, int error);

/* Append the reason of one recipient; defer/ is begun anew with the first of
 * an attempt. 0 or -errno. */
int reasons_add(struct send *s, struct message *m, enum spool_dir dir,
    const struct report *report);
/* The file is gone from where it was. Its reasons go too, lest they meet the
 * next file of that inode, unless the file lies elsewhere in the queue. */
void reasons_clear(struct send *s, uint64_t inode);

#endif
