/* sched/entry.h - entries that wait, in a queue; inside of the module.
 *
 * Soft: NULL without memory.
 */
#ifndef SCHED_ENTRY_H
#define SCHED_ENTRY_H

#include "sched/sched.h"

/* With room for one recipient it is of a slab, else of malloc(). */
struct entry {
	struct entry *next; /* of the peer, while it waits */
	uint8_t nrcpts, room;
	uint8_t moves; /* sched_move() */
	uint8_t spare;
	struct sched_rcpt rcpts[];
};
_Static_assert(SCHED_ENTRY_RCPTS_MAX <= UINT8_MAX, "an entry counts them");
#define ENTRY_BYTES(room) \
	(offsetof(struct entry, rcpts) + (room) * sizeof(struct sched_rcpt))
#define ENTRY_ONE ENTRY_BYTES(1)
_Static_assert(ENTRY_ONE % 8 == 0, "an entry of a slab");
/* First in, first out. The last one may move, since it grows. */
struct entry_queue {
	struct entry *first; /* NULL: empty */
	struct entry **last; /* unless empty: what points to the last one */
};

/* With room for one recipient, and none. */
struct entry *entry_new(struct sched *s);
void entry_free(struct sched *s, struct entry *e);

void entries_append(struct entry_queue *q, struct entry *e);
void entries_prepend(struct entry_queue *q, struct entry *e);
/* The first, out of the queue; NULL: the queue is empty. */
struct entry *entries_take(struct entry_queue *q);
/* NULL: the queue is empty. */
struct entry *entries_last(const struct entry_queue *q);
/* Room in the last entry for one recipient more: 1 to begin with, then 4, 8, …
 * up to the limit. The entry, which may have moved. */
struct entry *
entries_grow_last(struct sched *s, struct entry_queue *q, uint32_t limit);
uint32_t entries_count(const struct entry_queue *q);

#endif
