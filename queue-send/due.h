/* queue-send/due.h - the deferred messages by due time: one small node each,
 * so that a million of them fit (D23). Pure: no disk, no clock.
 *
 * A node waits in one of two trees by due time: `later`, or `flushed`, which
 * is due whatever the time. A flush makes the whole of `later` the flushed tree
 * by exchanging roots, so it costs nothing per message in the usual case.
 * A node that was asked for (PREPARE) is in neither, until it is put back or
 * its message is taken.
 *
 * A node may know the backlog of the one destination that its message is for.
 * One that is due while that destination has its share of the active queue is
 * parked: it waits in the backlog, in the order of the times at which its
 * messages were due, whatever happens to the clock or to a flush, until it is
 * asked for.
 *
 * Keyed by inode: whoever removes a file drops its node, since a new file may
 * get the number (D22).
 */
#ifndef QUEUE_SEND_DUE_H
#define QUEUE_SEND_DUE_H

#include "base/base.h"

#include <bsd/sys/tree.h>

#define DUE_DEATHS_MAX 7u
#define DUE_MINUTE_MAX 0x3ffffffu

struct due {
	RB_ENTRY(due) by_inode;
	RB_ENTRY(due) by_time; /* in a tree of the queue, or of its backlog */
	uint64_t inode;
	usec_t at_mono;
	uint32_t backlog;     /* number of its backlog, 0: none is known */
	uint32_t minute : 26; /* its place in send->ages, 0: it has none */
	uint32_t deaths : 3;  /* of agents, see retry.h */
	uint32_t epoch : 1;   /* of the tree it is in */
	uint32_t asked : 1;
	uint32_t parked : 1;
};
RB_HEAD(due_inodes, due);
RB_HEAD(due_times, due);

/* Embedded in what knows the destination (share.h). */
struct due_backlog {
	struct due_times waiting; /* parked */
	uint32_t number;          /* 0: not added */
	uint32_t nodes;           /* that know it, in whatever state */
	uint32_t nwaiting, nasked;
};

struct due_number {
	struct due_backlog *backlog; /* NULL: free */
	uint32_t next_free;
};

struct due_queue {
	struct due_inodes nodes;
	struct due_times later, flushed;
	struct due_number *numbers; /* of backlogs, from 1 on */
	uint32_t nnumbers, free_number;
	uint32_t epoch : 1; /* of later; what is flushed has the other one */
	uint64_t count;     /* all nodes, asked and parked ones too */
	uint64_t asked, parked;
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
/* All that were asked for are due again, each at its own time if that is past
 * (the peer that was asked is gone). */
void due_unask_all(struct due_queue *q, usec_t now);
/* Everything that waits is due. */
void due_flush(struct due_queue *q);

/* A backlog gets its number: 0, or -ENOMEM. */
int due_backlog_add(struct due_queue *q, struct due_backlog *b);
/* With no node that knows it. */
void due_backlog_drop(struct due_queue *q, struct due_backlog *b);
/* NULL: not known. */
struct due_backlog *
due_backlog_of(const struct due_queue *q, const struct due *d);
/* From now on it knows this backlog, or none. Not while it is parked. */
void due_set_backlog(struct due_queue *q, struct due *d, struct due_backlog *b);
/* Into its backlog, wherever it was. */
void due_park(struct due_queue *q, struct due *d);
/* The first of a backlog, marked as asked for; NULL: none waits. */
struct due *due_ask_backlog(struct due_queue *q, struct due_backlog *b);
/* When the next one is due: a past time if one is; USEC_NEVER for none. */
usec_t due_next(const struct due_queue *q);

#endif
