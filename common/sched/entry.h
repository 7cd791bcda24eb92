/* sched/entry.h - entries that wait, in a queue; inside of the module.
 *
 * Soft: NULL without memory.
 */
#ifndef SCHED_ENTRY_H
#define SCHED_ENTRY_H

#include "base/slab.h"
#include "sched/sched.h"

/* Each is of the slab of its kind, which says for how many recipients there is
 * room: 1 for kind 0, and more for each further one. */
#define ENTRY_KINDS 10
struct entry {
	struct entry *next; /* of the peer, while it waits */
	uint8_t nrcpts, kind;
	uint8_t moves; /* sched_move() */
	uint8_t spare;
	struct sched_rcpt rcpts[];
};
_Static_assert(SCHED_ENTRY_RCPTS_MAX <= UINT8_MAX, "an entry counts them");
#define ENTRY_BYTES(room) \
	(offsetof(struct entry, rcpts) + (room) * sizeof(struct sched_rcpt))
/* First in, first out. The last one may move, since it grows. */
struct entry_queue {
	struct entry *first; /* NULL: empty */
	struct entry **last; /* unless empty: what points to the last one */
};

void
entry_slabs_init(struct slab slabs[ENTRY_KINDS], struct page_source *source);
/* No entry may be in use. */
void entry_slabs_done(struct slab slabs[ENTRY_KINDS]);

/* With room for one recipient, and none. */
struct entry *entry_new(struct sched *s);
void entry_free(struct sched *s, struct entry *e);
uint32_t entry_room(const struct entry *e);

void entries_append(struct entry_queue *q, struct entry *e);
void entries_prepend(struct entry_queue *q, struct entry *e);
/* The first, out of the queue; NULL: the queue is empty. */
struct entry *entries_take(struct entry_queue *q);
/* NULL: the queue is empty. */
struct entry *entries_last(const struct entry_queue *q);
/* Room in the last entry, which has fewer recipients than its limit, for one
 * more: where it is full it becomes one of the next kind. The entry, which may
 * have moved. */
struct entry *entries_grow_last(struct sched *s, struct entry_queue *q);
uint32_t entries_count(const struct entry_queue *q);

#endif
