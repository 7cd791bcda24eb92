/* queue-send/disk/files.h - files of messages, reasons, errors of writing. */
#ifndef QUEUE_SEND_DISK_FILES_H
#define QUEUE_SEND_DISK_FILES_H

#include "queue-send/state/send.h"

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
/* The second kind, of a file that failed before: not told to health. */
void disk_write_failed_again(
    struct send *s, const struct message *m, const char *what, int error);
/* The same of a file that cannot be removed, and of the note of a rule, without
 * which a message is deferred; a shortage is not told to health. */
void disk_removal_failed(struct send *s, const struct queue_id *id, int error);
void disk_note_failed(struct send *s, const struct message *m, int error);
/* The part of these that is not about a message. */
void disk_count_error(struct send *s, enum health_write kind, int error);
/* Is it a shortage of descriptors, memory or threads, and not of the disk? */
bool disk_is_shortage(int error);

/* In its first attempt a message has the reasons that were written in it. */
bool reasons_may_exist(const struct message *m, enum spool_dir dir);

#endif
