#include "sched/parts.h"

#define MIDDLE   ((uint64_t)1 << 63)
/* A range of 2^n labels may be spread when it holds less than (2/T)^n nodes. */
#define CROWDING 1.4

/* A label between the neighbours; false: there is none. 0 and UINT64_MAX are
 * never given, so both ends have room once they were spread. */
static bool
between(const struct order_node *prev, const struct order_node *next,
    uint64_t most, uint64_t *ret_label)
{
	uint64_t low = prev == NULL ? 0 : prev->label;
	uint64_t high = next == NULL ? UINT64_MAX : next->label;
	uint64_t gap = high - low;

	if (gap < 2)
		return false;
	if (prev == NULL && next == NULL)
		*ret_label = MIDDLE;
	else if (next == NULL)
		*ret_label = low + (gap / 2 < most ? gap / 2 : most);
	else if (prev == NULL)
		*ret_label = high - (gap / 2 < most ? gap / 2 : most);
	else
		*ret_label = low + gap / 2;
	return true;
}

/* Give `count` nodes from `node` on labels evenly in [low, low + 2^bits). */
static void
spread(struct order_node *node, uint64_t count, uint64_t low, unsigned bits,
    void (*moved)(struct order_node *node))
{
	uint64_t width = bits == 64 ? UINT64_MAX : (uint64_t)1 << bits;
	uint64_t step = width / (count + 1), label = low;

	for (; count > 0; count--, node = TAILQ_NEXT(node, link)) {
		label += step;
		node->label = label;
		if (moved != NULL)
			moved(node);
	}
}

/* Spread the smallest aligned range around `node` that is not crowded. */
static void
make_room(struct order_node *node, void (*moved)(struct order_node *node))
{
	struct order_node *first = node, *last = node, *p;
	uint64_t low, high, count = 1;
	double most = 1;
	unsigned bits;

	for (bits = 1;; bits++) {
		most *= 2 / CROWDING;
		high = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
		low = node->label & ~high;
		high |= low;
		while ((p = TAILQ_PREV(first, order_list, link)) != NULL &&
		    p->label >= low) {
			first = p;
			count++;
		}
		while (
		    (p = TAILQ_NEXT(last, link)) != NULL && p->label <= high) {
			last = p;
			count++;
		}
		if (bits == 64 ||
		    ((double)count < most && (high - low) / (count + 1) >= 2))
			break;
	}
	ASSERT((high - low) / (count + 1) >= 2);
	spread(first, count, low, bits, moved);
}

void
order_insert(struct order_list *o, struct order_node *before,
    struct order_node *node, const struct order_labels *labels)
{
	struct order_node *prev = before == NULL
	    ? TAILQ_LAST(o, order_list)
	    : TAILQ_PREV(before, order_list, link);
	uint64_t label = 0;

	while (!between(prev, before, labels->gap, &label))
		make_room(prev != NULL ? prev : before, labels->moved);
	node->label = label;
	if (before == NULL)
		TAILQ_INSERT_TAIL(o, node, link);
	else
		TAILQ_INSERT_BEFORE(before, node, link);
}

struct order_node *
order_next(const struct order_list *o, const struct order_node *node)
{
	struct order_node *next = TAILQ_NEXT(node, link);

	return next != NULL ? next : TAILQ_FIRST(o);
}
