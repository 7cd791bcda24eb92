/* Jobs by what they need, those that never moved in an index of the transport,
 * the others in shelves: docs/SCHEDULING.md, rule 5.
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
hull_of(struct index *ix, unsigned bit)
{
	return bit < CLASS_BIT ? &ix->zeros[bit]
			       : &ix->classes[bit - CLASS_BIT];
}

/* Hulls where the job is the same for both needs. */
static uint64_t
hulls_in_common(uint32_t a, uint32_t b)
{
	uint64_t both = hulls_for(a) & hulls_for(b);

	return a == b ? both : both & ~(((uint64_t)2 << highest(a ^ b)) - 1);
}

static void
leave(struct index *ix, struct job *job, uint64_t hulls)
{
	struct slab *nodes = &job->transport->sched->slabs.hull_node;
	struct hull *h;
	unsigned bit;

	for (; hulls != 0; hulls &= hulls - 1) {
		bit = (unsigned)__builtin_ctzll(hulls);
		h = hull_of(ix, bit);
		hull_remove(h, job, nodes);
		if (h->root.bits == 0)
			ix->hulls &= ~((uint64_t)1 << bit);
	}
}

void
index_leave(struct index *ix, struct job *job, uint64_t stays)
{
	leave(ix, job, hulls_for(job->indexed.needed) & ~stays);
}

bool
index_enter(struct index *ix, struct job *job, uint64_t stays)
{
	uint64_t all = hulls_for(job->indexed.needed) & ~stays, hulls;
	struct slab *nodes = &job->transport->sched->slabs.hull_node;
	unsigned bit;

	for (hulls = all; hulls != 0; hulls &= hulls - 1) {
		bit = (unsigned)__builtin_ctzll(hulls);
		if (!hull_insert(hull_of(ix, bit), job, nodes)) {
			leave(ix, job, all & ~hulls);
			return false;
		}
		ix->hulls |= (uint64_t)1 << bit;
	}
	return true;
}

static void
move(struct job *job, struct indexed to)
{
	struct index *ix = &job->transport->unmoved;
	const struct indexed from = job->indexed;
	uint64_t stays = 0;

	if (from.total == to.total)
		stays = hulls_in_common(from.needed, to.needed);
	if (job->moved) {
		shelf_move(job, to, stays);
		return;
	}
	index_leave(ix, job, stays);
	job->indexed = to;
	if (index_enter(ix, job, stays))
		return;
	leave(ix, job, hulls_for(to.needed) & stays);
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

void
index_settle(struct transport *t)
{
	unsigned i = 0;

	while (i < t->nlate)
		if (t->late[i] == t->current) {
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
	if (!job->moved || job->segment != NULL)
		late_in(job);
}

void
index_remove(struct job *job)
{
	struct transport *t = job->transport;
	unsigned i;

	for (i = 0; job->late && i < t->nlate; i++)
		if (t->late[i] == job)
			late_out(t, i);
	if (job->indexed.needed != 0)
		move(job, (struct indexed){ 0 });
	if (job->moved)
		segment_remove(job);
}

void
index_update(struct job *job)
{
	if (!job->moved) {
		if (job->listed)
			index_insert(job);
	} else if (job->segment != NULL) {
		segment_update(job);
		late_in(job);
	}
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

	classes = (uint32_t)(t->unmoved.hulls >> CLASS_BIT);
	if ((classes & -classes) != 0 && (classes & -classes) < least)
		least = classes & -classes;
	for (i = 0; i < t->nlate; i++)
		if (t->late[i] != current && counts(t->late[i]) &&
		    job_needed(t->late[i]) < least)
			least = job_needed(t->late[i]);
	return least;
}

/* Each hull, and its block, of those that need no more than x->most. All blocks
 * are of one class. */
static void
search(struct index *ix, struct search *x,
    void (*hull)(struct hull *h, uint32_t block, struct search *x))
{
	uint64_t end = (uint64_t)x->most + 1, hulls = ix->hulls >> CLASS_BIT;
	unsigned class = 63 - (unsigned)__builtin_clzll(end), bit;
	uint64_t below = ((uint64_t)1 << class) - 1;
	bool has_blocks = (hulls >> class & 1) != 0;

	for (hulls &= below; hulls != 0; hulls &= hulls - 1)
		hull(&ix->classes[__builtin_ctzll(hulls)], 0, x);
	if (!has_blocks)
		return;
	for (hulls = ix->hulls & end & below; hulls != 0; hulls &= hulls - 1) {
		bit = (unsigned)__builtin_ctzll(hulls);
		hull(&ix->zeros[bit], (uint32_t)((end >> bit) - 1), x);
	}
}

void
index_search(struct index *ix, struct search *x)
{
	search(ix, x, hull_search);
}

void
index_best(struct index *ix, struct search *x)
{
	search(ix, x, hull_best);
}

void
index_init(struct index *ix, bool moved)
{
	unsigned i;

	for (i = 0; i < INDEX_CLASSES; i++) {
		ix->classes[i] = (struct hull){ .shift = 32, .moved = moved };
		ix->zeros[i] =
		    (struct hull){ .shift = (uint8_t)i, .moved = moved };
	}
}
