/* qctl/act/spread.h - waiting mail of full queues goes to queues with room:
 * which queues are full, which have room, and how many messages go from each to
 * each (docs/QCTL.md, "Spread").
 *
 * spread_level() is pure; the figures are those that the queues publish.
 */
#ifndef QCTL_ACT_SPREAD_H
#define QCTL_ACT_SPREAD_H

#include "ipc/page.h"
#include "qctl/act/act.h"

struct spread_queue {
	uint32_t queue;
	bool gives, takes;
	uint64_t backlog; /* messages in it; UINT64_MAX: it is to be empty */
	uint64_t room;    /* takes so many */
	uint64_t waiting; /* of the selection: gives at most so many */
	uint64_t volume;  /* messages go between queues of one alone */
};

struct spread_plan {
	struct spread_queue queues[PAGE_QUEUES_MAX];
	size_t nqueues;
	/* [from][to], indexes of queues[]. */
	uint32_t moves[PAGE_QUEUES_MAX][PAGE_QUEUES_MAX];
};

/* Fills in moves[]: again and again one message of the queue that has most to
 * the one that has least, while that brings the two nearer to each other. The
 * other figures are used up. */
void spread_level(struct spread_plan *plan);

/* The messages of a queue by its page, but for those on hold. */
uint64_t spread_backlog(const struct queue_page *page);

/* Gives each target of the task its queue, and takes those out that stay; tells
 * how many, and from where to where. -errno, with the reason on standard error:
 * -ENOENT: no supervisor is running. */
int spread_targets(struct task *t);

#endif
