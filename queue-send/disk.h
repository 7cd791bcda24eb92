/* queue-send/disk.h - errors of writing to the spool, and the reasons of a
 * message in defer/ and bounce/, the files of messages. */
#ifndef QUEUE_SEND_DISK_H
#define QUEUE_SEND_DISK_H

#include "queue-send/results.h"

/* Open the message's file for reading and for marks, if it is not: one open
 * for its whole way, unless it has to wait. It rests until disk_use().
 * 0 or -errno. */
int disk_open(struct send *s, struct message *m);
/* The same, to read only: also where the file system is read-only. A
 * descriptor, to be closed unless it is m->fd, or -errno. */
int disk_open_to_read(struct send *s, struct message *m);
/* The same for a delivery, which needs it until messages_rest(). */
int disk_use(struct send *s, struct message *m);
/* Close files that have rested. */
usec_t disk_work(struct send *s);

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
