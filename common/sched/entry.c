#include "sched/parts.h"

#include <string.h>

/* By kind. Odd ones are of a size that a slab takes, and these fill its pages
 * well. */
static const uint8_t rooms[ENTRY_KINDS] = { 1, 3, 7, 11, 15, 21, 33, 51, 67,
	101 };

void
entry_slabs_init(struct slab slabs[ENTRY_KINDS], struct page_source *source)
{
	size_t i;

	ASSERT(rooms[ENTRY_KINDS - 1] >= SCHED_ENTRY_RCPTS_MAX);
	for (i = 0; i < ENTRY_KINDS; i++)
		slab_init(&slabs[i], ENTRY_BYTES(rooms[i]), source);
}

void
entry_slabs_done(struct slab slabs[ENTRY_KINDS])
{
	size_t i;

	for (i = 0; i < ENTRY_KINDS; i++)
		slab_done(&slabs[i]);
}

uint32_t
entry_room(const struct entry *e)
{
	return rooms[e->kind];
}

void
entry_free(struct sched *s, struct entry *e)
{
	slab_put(&s->slabs.entry[e->kind], e);
}

struct entry *
entry_new(struct sched *s)
{
	struct entry *e = slab_get(&s->slabs.entry[0]);

	if (e == NULL)
		return NULL;
	e->nrcpts = 0;
	e->kind = 0;
	e->moves = 0;
	return e;
}

void
entries_append(struct entry_queue *q, struct entry *e)
{
	e->next = NULL;
	q->last = q->first == NULL ? &q->first : &(*q->last)->next;
	*q->last = e;
}

void
entries_prepend(struct entry_queue *q, struct entry *e)
{
	e->next = q->first;
	if (q->first == NULL)
		q->last = &q->first;
	else if (q->last == &q->first)
		q->last = &e->next;
	q->first = e;
}

struct entry *
entries_take(struct entry_queue *q)
{
	struct entry *e = q->first;

	if (e == NULL)
		return NULL;
	q->first = e->next;
	if (q->last == &e->next)
		q->last = &q->first;
	return e;
}

struct entry *
entries_last(const struct entry_queue *q)
{
	return q->first == NULL ? NULL : *q->last;
}

struct entry *
entries_grow_last(struct sched *s, struct entry_queue *q)
{
	struct entry *e = *q->last, *large;
	uint8_t kind = (uint8_t)(e->kind + 1);

	if (e->nrcpts < rooms[e->kind])
		return e;
	ASSERT(kind < ENTRY_KINDS);
	large = slab_get(&s->slabs.entry[kind]);
	if (large == NULL)
		return NULL;
	memcpy(large, e, ENTRY_BYTES(e->nrcpts));
	large->kind = kind;
	entry_free(s, e);
	*q->last = large;
	return large;
}

uint32_t
entries_count(const struct entry_queue *q)
{
	const struct entry *e;
	uint32_t n = 0;

	for (e = q->first; e != NULL; e = e->next)
		n++;
	return n;
}
