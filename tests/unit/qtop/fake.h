/* Pages made by a test, in place of shared memory. */
#ifndef TESTS_QTOP_FAKE_H
#define TESTS_QTOP_FAKE_H

#include "qtop/model.h"

#define FAKE_MONO (1000 * USEC_PER_SEC) /* now */
#define FAKE_WALL (1700000000 * USEC_PER_SEC)

struct fake {
	int sched_error, queue_error;
	struct sched_page sched;
	struct queue_page queues[PAGE_QUEUES_MAX]; /* in order of the rows */
};

extern struct fake fake;
extern const struct model_source fake_source;

/* So many open, fresh, idle queues, numbered from 1. */
void fake_make(uint32_t queues);
/* A sample of it at FAKE_MONO, FAKE_WALL. */
void fake_sample(struct model *ret_model);

#endif
