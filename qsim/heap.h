/* qsim/heap.h - deliveries that run in the simulation, by the time of their
 * end; of one instant in the order in which they began. Soft: -ENOMEM. */
#ifndef QSIM_HEAP_H
#define QSIM_HEAP_H

#include "qsim/server.h"
#include "sched/sched.h"

struct delivery {
	usec_t ends;
	uint64_t number; /* of the deliveries, as they began */
	struct sched_entry *entry;
	uint32_t destination; /* index into those of the scenario */
	struct delivery_fate fate;
};

struct heap {
	struct delivery *all;
	uint32_t count, cap;
};

int heap_add(struct heap *heap, const struct delivery *d);
/* The first one, or NULL. It moves with the next change. */
const struct delivery *heap_first(const struct heap *heap);
void heap_remove_first(struct heap *heap);
void heap_done(struct heap *heap);

#endif
