/* queue-inject/choose.h - which queue a message goes to.
 *
 * The open queue with the least load; of equal ones that with the smallest
 * backlog; of equal ones each in turn. What is known comes from shared memory
 * (docs/IPC.md), none of which is believed further than this choice: a page
 * that is missing, short, stale or absurd only makes a queue less attractive,
 * and where the supervisor's page says nothing, the queue directories on disk
 * are the queues (I10, I12). The one thing that shared memory can refuse is
 * mail for an instance whose queues are all disabled or closing (I13).
 *
 * choose_judge() and choose_queue() are pure but for the reader that is passed
 * in; the caller passes the time and the turn.
 */
#ifndef QUEUE_INJECT_CHOOSE_H
#define QUEUE_INJECT_CHOOSE_H

#include "ipc/page.h"

/* Better ones first. */
enum queue_rank {
	RANK_OPEN,  /* open, and its page is fresh */
	RANK_BLIND, /* open, nothing is known of its load */
	RANK_DISK,  /* its directory is there, or it is quarantined */
	RANK_NEVER, /* closing or disabled */
};

struct queue_fact {
	uint32_t queue;
	enum queue_rank rank;
	bool failed; /* it was tried, and did not take the message */
	uint32_t load_pct;
	uint64_t backlog; /* files that wait: maildrop, incoming, active */
	uint64_t incoming, active; /* of RANK_OPEN, else 0 */
};

struct queue_facts {
	size_t count;
	bool shut; /* the supervisor lives, and no queue is open */
	struct queue_fact rows[PAGE_QUEUES_MAX];
};

/* Reads pages: sched_page_read() and queue_page_read(), or a test's. */
struct choose_reader {
	int (*sched)(void *arg, struct sched_page *ret_page);
	int (*queue)(void *arg, uint32_t queue, struct queue_page *ret_page);
	void *arg;
};

/* What shared memory says. Without a usable page of the supervisor there are
 * no rows. */
void choose_judge(const struct choose_reader *reader, usec_t now_mono,
    struct queue_facts *ret_facts);
/* Add queues that are known by their directories only; those whose own page
 * is fresh and says disabled are never chosen. */
void choose_add_disk(struct queue_facts *facts, const uint32_t *queues,
    size_t count, const struct choose_reader *reader, usec_t now_mono);
/* The row to try next, or -1. `turn` goes up by one a message. */
int choose_queue(const struct queue_facts *facts, uint32_t turn);

#endif
