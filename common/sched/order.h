/* sched/order.h - a list whose elements can be compared: a label in each
 * follows the order of the list, so that trees can be sorted by it.
 *
 * Inserting costs amortized O(log n), mostly nothing: where there is no label
 * between two neighbours, those around them are spread out. That keeps their
 * order, so trees that compare labels stay right; whoever keeps copies of them
 * is told by `moved` (NULL: nobody does).
 */
#ifndef SCHED_ORDER_H
#define SCHED_ORDER_H

#include "base/base.h"

#include <sys/queue.h>

struct order_node {
	TAILQ_ENTRY(order_node) link;
	uint64_t label;
};
TAILQ_HEAD(order_list, order_node);

#define ORDER_OF(node, type, field) \
	((type *)(void *)((char *)(node)-offsetof(type, field)))

/* Directly before `at`; NULL: at the end. */
void order_insert(struct order_list *o, struct order_node *at,
    struct order_node *node, void (*moved)(struct order_node *node));
/* The next one of the ring; the first follows the last. */
struct order_node *
order_next(const struct order_list *o, const struct order_node *node);

#endif
