/* queue-send/deferred.h - deferred messages on disk and in the due queue, and
 * the walks that count hold/ and corrupt/, and find in active/ what is no
 * message of ours.
 *
 * The walk of deferred/ reads due times (mtime) a bounded number of files a
 * turn; nothing waits for its end (D23). All directories are walked at start,
 * at a flush, and every hour, for what came there behind our back. */
#ifndef QUEUE_SEND_DEFERRED_H
#define QUEUE_SEND_DEFERRED_H

#include "queue-send/send.h"

void deferred_walk(struct send *s);
/* Files came to deferred/, hold/ and incoming/ from another queue; not at once
 * while the last walk was long. */
void deferred_rescan(struct send *s);
usec_t deferred_work(struct send *s);
/* The message, just moved there, is due at. */
void deferred_add(struct send *s, const struct message *m, usec_t at_mono);
/* It is not there any more. */
void deferred_forget(struct send *s, uint64_t inode);
/* Everything is due; what the walk has not found yet, when it does. */
void deferred_flush(struct send *s);
void deferred_done(struct send *s);

#endif
