/* The jobs that never moved, by what they need: docs/SCHEDULING.md, rule 5.
 *
 * "Needs at most so much" is cut into ranges whose borders are powers of two: a
 * class for each highest bit of a need, and within a class a block for each bit
 * of the most that is set. A job is in the hull of its class, and in one hull
 * for each bit of its need that is not set. When it needs one less it changes
 * two of these in the mean: as many as a counter has bits that turn. */
#include "sched/parts.h"

/* Bits of a set of hulls: zeros below, classes above. */
#define CLASS_BIT INDEX_CLASSES

static unsigned
highest(uint32_t needed)
{
	return 31 - (unsigned)__builtin_clz(needed);
}

/* The hulls that hold a job which needs so much; 0: none. */
static uint64_t
hulls_for(uint32_t needed)
{
	unsigned class;

	if (needed == 0)
		return 0;
	class = highest(needed);
	return ((uint64_t)1 << (CLASS_BIT + class)) |
	    (~needed & (((uint64_t)1 << class) - 1));
}

static struct hull *
hull_of(struct transport *t, unsigned bit)
{
	return bit < CLASS_BIT ? &t->zeros[bit] : &t->classes[bit - CLASS_BIT];
}

/* Hulls where the job is the same for both needs. */
static uint64_t
hulls_in_common(uint32_t a, uint32_t b)
{
	uint64_t both = hulls_for(a) & hulls_for(b);

	return a == b ? both : both & ~(((uint64_t)2 << highest(a ^ b)) - 1);
}

static void
leave(struct job *job, uint64_t hulls)
{
	struct transport *t = job->transport;
	struct hull *h;
	unsigned bit;

	for (; hulls != 0; hulls &= hulls - 1) {
		bit = (unsigned)__builtin_ctzll(hulls);
		h = hull_of(t, bit);
		hull_remove(h, job, &t->sched->slabs.hull_node);
		if (h->root.bits == 0)
			t->hulls &= ~((uint64_t)1 << bit);
	}
}

/* The hulls that the job is not in for want of memory. */
static uint64_t
enter(struct job *job, uint64_t hulls)
{
	struct transport *t = job->transport;
	unsigned bit;

	for (; hulls != 0; hulls &= hulls - 1) {
		bit = (unsigned)__builtin_ctzll(hulls);
		if (!hull_insert(
			hull_of(t, bit), job, &t->sched->slabs.hull_node))
			break;
		t->hulls |= (uint64_t)1 << bit;
	}
	return hulls;
}

static void
move(struct job *job, struct indexed to)
{
	const struct indexed from = job->indexed;
	uint64_t stays = 0, missed;

	if (from.total == to.total)
		stays = hulls_in_common(from.needed, to.needed);
	leave(job, hulls_for(from.needed) & ~stays);
	job->indexed = to;
	missed = enter(job, hulls_for(to.needed) & ~stays);
	if (missed == 0)
		return;
	leave(job, hulls_for(to.needed) & ~missed);
	job->indexed = (struct indexed){ 0 };
}

/* ---- jobs that have changed ---- */

static bool
counts(const struct job *job)
{
	return job_needed(job) > 0 && !job_has_children(job);
}

static void
settle(struct job *job)
{
	struct indexed to = { 0 };

	if (counts(job))
		to = (struct indexed){ job_needed(job), job->total };
	if (to.needed != job->indexed.needed || to.total != job->indexed.total)
		move(job, to);
}

static void
late_out(struct transport *t, unsigned i)
{
	t->late[i]->late = false;
	for (t->nlate--; i < t->nlate; i++)
		t->late[i] = t->late[i + 1];
}

static void
late_in(struct job *job)
{
	struct transport *t = job->transport;

	if (job->late)
		return;
	if (t->nlate == INDEX_LATE) {
		settle(t->late[0]);
		late_out(t, 0);
	}
	t->late[t->nlate++] = job;
	job->late = true;
}

static void
settle_all_but(struct transport *t, const struct job *current)
{
	unsigned i = 0;

	while (i < t->nlate)
		if (t->late[i] == current) {
			i++;
		} else {
			settle(t->late[i]);
			late_out(t, i);
		}
}

/* ---- the job list ---- */

void
index_insert(struct job *job)
{
	if (job->transport->params.delivery_slot_cost < 2)
		return;
	if (job->moved)
		segment_insert(job);
	else
		late_in(job);
}

void
index_remove(struct job *job)
{
	struct transport *t = job->transport;
	unsigned i;

	if (job->moved) {
		segment_remove(job);
		return;
	}
	for (i = 0; job->late && i < t->nlate; i++)
		if (t->late[i] == job)
			late_out(t, i);
	move(job, (struct indexed){ 0 });
}

void
index_update(struct job *job)
{
	if (job->moved)
		segment_update(job);
	else if (job->listed)
		index_insert(job);
}

void
index_fill(struct transport *t)
{
	struct order_node *n = TAILQ_FIRST(&t->jobs);
	struct job *job;

	for (; n != NULL; n = TAILQ_NEXT(n, link)) {
		job = ORDER_OF(n, struct job, order);
		if (!job->moved || job->segment == NULL)
			index_insert(job);
	}
}

/* ---- the search ---- */

uint32_t
index_least_needed(const struct transport *t, const struct job *current)
{
	uint32_t least = segment_least_needed(t), classes;
	unsigned i;

	classes = (uint32_t)(t->hulls >> CLASS_BIT);
	if ((classes & -classes) != 0 && (classes & -classes) < least)
		least = classes & -classes;
	for (i = 0; i < t->nlate; i++)
		if (t->late[i] != current && counts(t->late[i]) &&
		    job_needed(t->late[i]) < least)
			least = job_needed(t->late[i]);
	return least;
}

void
index_search(struct transport *t, uint32_t most, struct search *x)
{
	uint64_t end = (uint64_t)most + 1, hulls;
	unsigned class = 63 - (unsigned)__builtin_clzll(end), bit;
	uint64_t below;

	settle_all_but(t, t->current);
	below = ((uint64_t)1 << class) - 1;
	for (hulls = t->hulls >> CLASS_BIT & below; hulls != 0;
	     hulls &= hulls - 1)
		hull_search(&t->classes[__builtin_ctzll(hulls)], 0, x);
	for (hulls = t->hulls & end & below; hulls != 0; hulls &= hulls - 1) {
		bit = (unsigned)__builtin_ctzll(hulls);
		hull_search(&t->zeros[bit], (uint32_t)((end >> bit) - 1), x);
	}
}

void
index_init(struct transport *t)
{
	unsigned i;

	for (i = 0; i < INDEX_CLASSES; i++) {
		t->classes[i].shift = 32;
		t->zeros[i].shift = i;
	}
}
