/* A list whose labels follow it, wherever its elements come in. */
#include "sched/parts.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define N 5000

static struct order_node nodes[N];
static uint64_t copies[N]; /* of the labels, as `moved` keeps them */

static void
moved(struct order_node *node)
{
	copies[node - nodes] = node->label;
}

/* Many labels between neighbours, and so few that they are soon spread. */
static const uint64_t gaps[] = { ORDER_GAP, 2 };
static struct order_labels labels = { ORDER_GAP, moved };

static void
insert(struct order_list *list, struct order_node *at, int i)
{
	order_insert(list, at, &nodes[i], &labels);
	copies[i] = nodes[i].label;
}

static void
must_be_in_order(const struct order_list *list, size_t count)
{
	const struct order_node *n, *last = NULL;
	size_t seen = 0;

	TAILQ_FOREACH (n, list, link) {
		cr_assert(last == NULL || last->label < n->label);
		cr_assert_eq(copies[n - nodes], n->label, "a copy is stale");
		last = n;
		seen++;
	}
	cr_assert_eq(seen, count);
}

static const struct {
	const char *name;
	int at; /* of those that are there: the first, the last, … */
} places[] = {
	{ "at the end", -1 },
	{ "before the first", 0 },
	{ "before the last", 1 },
	{ "before any", 2 },
};

static struct order_node *
choose(const struct order_list *list, int at, int count)
{
	if (at == 0)
		return TAILQ_FIRST(list);
	if (at == 1)
		return TAILQ_LAST(list, order_list);
	return at == 2 && count > 0 ? &nodes[rand() % count] : NULL;
}

Test(order, labels_follow_the_list)
{
	struct order_list list;
	size_t p;
	int i;

	for (p = 0; p < ARRAY_LEN(places) * ARRAY_LEN(gaps); p++) {
		labels.gap = gaps[p % ARRAY_LEN(gaps)];
		TAILQ_INIT(&list);
		for (i = 0; i < N; i++) {
			insert(&list,
			    choose(&list, places[p / ARRAY_LEN(gaps)].at, i),
			    i);
			if (i % 97 == 0)
				must_be_in_order(&list, (size_t)i + 1);
		}
		must_be_in_order(&list, N);
	}
}

Test(order, labels_at_both_ends_of_their_range)
{
	static const uint64_t ends[] = { 1, 2, UINT64_MAX - 2, UINT64_MAX - 1 };
	struct order_list list;
	size_t e;
	int i;

	for (e = 0; e < ARRAY_LEN(ends); e++) {
		TAILQ_INIT(&list);
		insert(&list, NULL, 0);
		nodes[0].label = copies[0] = ends[e];
		for (i = 1; i < 200; i++)
			insert(&list, i % 2 ? NULL : TAILQ_FIRST(&list), i);
		must_be_in_order(&list, 200);
	}
}

Test(order, the_ring_goes_round)
{
	struct order_list list;
	int i;

	TAILQ_INIT(&list);
	for (i = 0; i < 3; i++)
		insert(&list, NULL, i);
	cr_assert_eq(order_next(&list, &nodes[0]), &nodes[1]);
	cr_assert_eq(order_next(&list, &nodes[2]), &nodes[0]);
}
