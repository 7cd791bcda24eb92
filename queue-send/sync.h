/* queue-send/sync.h - marks are on disk before the move that makes them matter
 * (docs/SPOOL.md, "Power cuts").
 *
 * A move to deferred/, hold/ or incoming/ is in the journal of the file system
 * within moments, the marks that were written before it within half a minute:
 * a power cut between the two delivers everything again. So a message that
 * leaves with marks of its own waits for a sync of its file, and of its reasons
 * before it; a pool of threads does that.
 *
 * For what stays long, and for what was removed, the whole file system of the
 * queue is synced mark_sync_interval after the first change. Marks carry the
 * epoch in which they were written: a sync of the whole begins a new epoch, and
 * when it succeeds all marks of epochs before are on disk.
 *
 * A file whose sync fails is never synced again as proof: its message is
 * deferred, the error counts in health.
 */
#ifndef QUEUE_SEND_SYNC_H
#define QUEUE_SEND_SYNC_H

#include "queue-send/send.h"

#define SYNC_THREADS 4

int sync_init(struct send *s);
void sync_done(struct send *s);
/* A mark of the message was written. */
void sync_marked(struct send *s, struct message *m);
/* Something was done that a power cut may undo for long. */
void sync_changed(struct send *s);
/* Has the message marks that may not be on disk? */
bool sync_is_wanting(const struct send *s, const struct message *m);
usec_t sync_work(struct send *s);

#endif
