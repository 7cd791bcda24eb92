/* queue-send/state/due.h - deferred messages by the time at which they are due.
 * Pure: no disk, no clock. */
#ifndef QUEUE_SEND_STATE_DUE_H
#define QUEUE_SEND_STATE_DUE_H

#include "base/base.h"
#include "base/slab.h"

#include <bsd/sys/tree.h>

/* A node of 96 bytes for each deferred message, so that a million fit.
 *
 * A node waits in a tree by due time: that of the current epoch, or that of the
 * epoch before it, whose nodes are due whatever the time. A flush begins the
 * next epoch, so it costs nothing per message. While nodes of the epoch before
 * wait it is put off until all of these have been asked for. A node that
 * was asked for (PREPARE) is in a tree of its own kind, until it is put back or
 * its message is taken.
 *
 * A node may know the backlog of the one destination that its message is for.
 * A message that is due while that destination has its share is parked: its
 * node waits in the backlog, in the order of the times at which messages were
 * due, whatever happens to the clock or to a flush, until it is asked for.
 *
 * Nodes are keyed by inode. The code that removes a file drops its node, since
 * inode numbers are reused. */
#define DUE_DEATHS_MAX 7u
#define DUE_EPOCHS     2

struct due {
	RB_ENTRY(due) by_inode;
	RB_ENTRY(due) by_time; /* in a tree of the queue, or of its backlog */
	uint64_t inode;
	usec_t at_mono;
	struct due_backlog *backlog; /* NULL: none is known */
	uint32_t second;     /* for ages_remove(), 0: it is not counted */
	uint32_t deaths : 3; /* of agents that had the message */
	uint32_t epoch : 1;  /* of the tree it is in */
	uint32_t asked : 1;
	uint32_t parked : 1;
	uint32_t owed : 1; /* the message was on hold, and has not been tried */
	uint32_t untouched : 1; /* parked before its first attempt, and no
				 * operator has acted on it since */
	uint32_t untried : 1;   /* no delivery was tried; due_set_untried() */
};
RB_HEAD(due_inodes, due);
RB_HEAD(due_times, due);

/* The nodes of one destination; all zero: none. */
struct due_backlog {
	struct due_times waiting; /* parked */
	uint32_t nodes;           /* that know it, in whatever state */
	uint32_t nwaiting, nasked;
};

struct due_queue {
	struct slab slab; /* of the nodes */
	struct due_inodes nodes;
	struct due_times times[DUE_EPOCHS], asking;
	uint32_t epoch;   /* nodes of the other one are due */
	bool flush_waits; /* for a tree */
	uint64_t count;   /* all nodes, asked and parked ones too */
	uint64_t asked, parked;
	uint64_t untried; /* nodes whose message was never tried */
};

void due_init(struct due_queue *q);
void due_done(struct due_queue *q);
struct due *due_find(const struct due_queue *q, uint64_t inode);
/* A new message, or a new time for one that is there. NULL: -ENOMEM. */
struct due *due_put(struct due_queue *q, uint64_t inode, usec_t at_mono);
/* Is it known that nothing of the message has been written? Not after
 * due_put(). A number without a node is fine, and is not known. */
void due_set_untouched(struct due_queue *q, uint64_t inode, bool untouched);
bool due_is_untouched(const struct due_queue *q, uint64_t inode);
/* Count a node as never tried, or no longer. The mark lives as long as the
 * node, also through due_put(). */
void due_set_untried(struct due_queue *q, struct due *d, bool untried);
/* Drop it; a number without a node is fine. */
void due_drop(struct due_queue *q, uint64_t inode);
/* The node that is due first, marked as asked for; NULL: none is due. */
struct due *due_ask(struct due_queue *q, usec_t now);
/* The message is not to be had now: due again at. */
void due_unask(struct due_queue *q, struct due *d, usec_t at_mono);
/* The peer that was asked is gone: all nodes that were asked for are due again,
 * each at its own time if that is past. */
void due_unask_all(struct due_queue *q, usec_t now);
/* Of these, one whose answer has come: it counts as asked for until its message
 * is taken. */
void due_ask_again(struct due_queue *q, struct due *d);
/* Everything that waits is due. */
void due_flush(struct due_queue *q);

/* From now on the node knows this backlog, or none. Not while it is parked. */
void due_set_backlog(struct due *d, struct due_backlog *b);
/* Into its backlog, wherever it was. */
void due_park(struct due_queue *q, struct due *d);
/* The first of a backlog, marked as asked for; NULL: none waits. */
struct due *due_ask_backlog(struct due_queue *q, struct due_backlog *b);
/* How many stand before a parked node in its backlog, counted up to most. */
uint32_t due_parked_before(const struct due *d, uint32_t most, bool *ret_more);
/* When the next node is due: a past time if one is; USEC_NEVER for none. */
usec_t due_next(const struct due_queue *q);

#endif
