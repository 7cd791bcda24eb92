#include "qsim/simulate_parts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

static bool
before(const struct delivery *a, const struct delivery *b)
{
	return a->ends != b->ends ? a->ends < b->ends : a->number < b->number;
}

int
heap_add(struct heap *heap, const struct delivery *d)
{
	struct delivery *all =
	    array_room(heap->all, heap->count, &heap->cap, sizeof(*all));
	uint32_t at = heap->count;

	if (all == NULL)
		return -ENOMEM;
	heap->all = all;
	heap->count++;
	for (; at > 0 && before(d, &all[(at - 1) / 2]); at = (at - 1) / 2)
		all[at] = all[(at - 1) / 2];
	all[at] = *d;
	return 0;
}

const struct delivery *
heap_first(const struct heap *heap)
{
	return heap->count == 0 ? NULL : &heap->all[0];
}

void
heap_remove_first(struct heap *heap)
{
	struct delivery *all = heap->all, last;
	uint32_t at = 0, child;

	ASSERT(heap->count > 0);
	last = all[--heap->count];
	while ((child = 2 * at + 1) < heap->count) {
		if (child + 1 < heap->count &&
		    before(&all[child + 1], &all[child]))
			child++;
		if (!before(&all[child], &last))
			break;
		all[at] = all[child];
		at = child;
	}
	all[at] = last;
}

void
heap_done(struct heap *heap)
{
	free(heap->all);
	*heap = (struct heap){ 0 };
}
