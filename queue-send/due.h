/* queue-send/due.h - the deferred messages by due time: one small node each,
 * so that a million of them fit (D23). Pure: no disk, no clock.
 *
 * A node waits in one of two trees by due time: `later`, or `flushed`, which
 * is due whatever the time. A flush makes the whole of `later` the flushed tree
 * by exchanging roots, so it costs nothing per message in the usual case.
 * A node that was asked for (PREPARE) is in neither, until it is put back or
 * its message is taken.
 *
 * Keyed by inode: whoever removes a file drops its node, since a new file may
 * get the number (D22).
 */
#ifndef QUEUE_SEND_DUE_H
#define QUEUE_SEND_DUE_H

#include "base/base.h"

#include <bsd/sys/tree.h>

struct due {
	RB_ENTRY(due) by_inode;
	RB_ENTRY(due) by_time;
	uint64_t inode;
	usec_t at_mono;
	uint32_t minute; /* its place in send->ages, 0: it has none */
	uint8_t deaths;  /* of agents, see retry.h */
	uint8_t epoch;   /* of the tree it is in */
	bool asked;
};
RB_HEAD(due_inodes, due);
RB_HEAD(due_times, due);

struct due_queue {
	struct due_inodes nodes;
	struct due_times later, flushed;
	uint8_t epoch;  /* of later; what is flushed has the one before */
	uint64_t count; /* all nodes, asked ones too */
	uint64_t asked;
};

void due_init(struct due_queue *q);
void due_done(struct due_queue *q);
struct due *due_find(const struct due_queue *q, uint64_t inode);
/* A new message, or a new time for one that is there. NULL: -ENOMEM. */
struct due *due_put(struct due_queue *q, uint64_t inode, usec_t at_mono);
/* Drop it; one that is not there is fine. */
void due_drop(struct due_queue *q, uint64_t inode);
/* The one that is due first, marked as asked for; NULL: none is due. */
struct due *due_ask(struct due_queue *q, usec_t now);
/* It is not to be had now: due again at. */
void due_unask(struct due_queue *q, struct due *d, usec_t at_mono);
/* All that were asked for are due again (the peer that was asked is gone). */
void due_unask_all(struct due_queue *q, usec_t now);
/* Everything that waits is due. */
void due_flush(struct due_queue *q);
/* When the next one is due: a past time if one is; USEC_NEVER for none. */
usec_t due_next(const struct due_queue *q);

#endif
