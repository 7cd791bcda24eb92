#include "qctl/act/task.h"

#include <errno.h>
#include <stdlib.h>

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static int
order_of_messages(const struct target *a, const struct target *b)
{
	int r = ORDER(a->queue, b->queue);

	if (r == 0)
		r = ORDER(a->id.inode, b->id.inode);
	if (r == 0)
		r = ORDER(a->id.arrival_wall, b->id.arrival_wall);
	return r == 0 ? ORDER(a->id.nonce, b->id.nonce) : r;
}

/* Of one message in the order in which it was found. */
static int
order_of_finds(const void *a, const void *b, void *targets)
{
	const struct target *all = targets;
	const size_t i = *(const size_t *)a, j = *(const size_t *)b;
	int r = order_of_messages(&all[i], &all[j]);

	return r == 0 ? ORDER(i, j) : r;
}

int
targets_add(struct target **targets, size_t *count, size_t *cap,
    const struct target *target)
{
	const size_t want = *cap == 0 ? 64 : *cap * 2;
	struct target *more;

	if (*count == *cap) {
		more = reallocarray(*targets, want, sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		*targets = more;
		*cap = want;
	}
	(*targets)[(*count)++] = *target;
	return 0;
}

int
task_unite_targets(struct task *t)
{
	struct target *all = t->targets;
	size_t *order, i, n = 0;

	if (t->ntargets < 2)
		return 0;
	order = calloc(t->ntargets, sizeof(*order));
	if (order == NULL)
		return -ENOMEM;
	for (i = 0; i < t->ntargets; i++)
		order[i] = i;
	qsort_r(order, t->ntargets, sizeof(*order), order_of_finds, all);
	for (i = 1; i < t->ntargets; i++)
		if (order_of_messages(&all[order[i - 1]], &all[order[i]]) == 0)
			all[order[i - 1]].queue = 0;
	free(order);
	for (i = 0; i < t->ntargets; i++)
		if (all[i].queue != 0)
			all[n++] = all[i];
	t->ntargets = n;
	return 0;
}
