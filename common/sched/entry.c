#include "sched/parts.h"

#include <stdlib.h>
#include <string.h>

void
entry_free(struct sched *s, struct entry *e)
{
	if (e->room > 1)
		free(e);
	else
		slab_put(&s->slabs.entry, e);
}

struct entry *
entry_new(struct sched *s)
{
	struct entry *e = slab_get(&s->slabs.entry);

	if (e == NULL)
		return NULL;
	e->nrcpts = 0;
	e->room = 1;
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
entries_grow_last(struct sched *s, struct entry_queue *q, uint32_t limit)
{
	struct entry *e = *q->last, *large;
	uint32_t room = e->room == 1 ? 4 : (uint32_t)e->room * 2;
	bool of_slab = e->room == 1;

	if (e->nrcpts < e->room)
		return e;
	if (room > limit)
		room = limit;
	large = realloc(of_slab ? NULL : e, ENTRY_BYTES(room));
	if (large == NULL)
		return NULL;
	if (of_slab) {
		memcpy(large, e, ENTRY_ONE);
		entry_free(s, e);
	}
	large->room = (uint8_t)room;
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
