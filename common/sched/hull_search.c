#include "sched/hull_parts.h"

int
score_order(const struct score *a, const struct score *b)
{
	product x = (product)a->age * b->total, y = (product)b->age * a->total;

	return (x > y) - (x < y);
}

/* A clock that went back makes nobody younger than new. */
struct score
search_score(const struct search *x, const struct job *job)
{
	usec_t since = job->message->arrival;
	uint64_t age = since < x->now ? (uint64_t)(x->now - since) : 0;

	return (struct score){ age + USEC_PER_SEC, job->total };
}

void
search_offer(struct search *x, struct job *job, struct score score)
{
	int c = score_order(&score, &x->best);

	if (c < 0 ||
	    (c == 0 && x->job != NULL &&
		label_order(job->order.label, x->job->order.label) > 0))
		return;
	x->job = job;
	x->best = score;
}

/* No job as old as the oldest, or younger, with at least this total is better
 * than the best so far. */
static bool
is_beaten(const struct search *x, uint32_t least)
{
	const struct score most = {
		(uint64_t)(x->now - x->oldest) + USEC_PER_SEC, least
	};

	return score_order(&most, &x->best) < 0;
}

/* The parts of a row from one job on, the oldest last. */
struct parts {
	struct hull_ref part[HULL_HEIGHT];
	unsigned n;
};

/* The jobs from that message on; `one` is one of those that have as many bits
 * of the number as possible. */
static void
parts_from(struct hull_ref r, uint64_t from, uint64_t one, struct parts *parts)
{
	const struct hull_node *node;
	int bit = from == one ? NOWHERE : 63 - __builtin_clzll(from ^ one);

	parts->n = 0;
	while (is_node(r) && node_of(r)->bit > bit) {
		node = node_of(r);
		if ((from >> node->bit & 1) == 0)
			parts->part[parts->n++] = node->below[1];
		r = node->below[from >> node->bit & 1];
	}
	if (one >= from)
		parts->part[parts->n++] = r;
}

/* The node or job with all jobs of the block, and maybe others. */
static struct hull_ref
find_block(const struct hull *h, const struct key *key)
{
	struct hull_ref r = h->root;

	while (r.bits != 0 && is_node(r) && node_of(r)->bit >= HULL_BLOCK)
		r = node_of(r)->below[key_bit(key, node_of(r)->bit)];
	return r;
}

/* A younger part can only have a better job if that has a smaller total than
 * the best one of the older parts. */
void
hull_search(struct hull *h, uint32_t block, struct search *x)
{
	const struct key key = { x->from, block };
	uint32_t least = UINT32_MAX;
	struct hull_ref r = find_block(h, &key);
	struct parts parts;
	struct job *job;
	struct key one;

	if (r.bits == 0 || is_beaten(x, least_of(r)))
		return;
	one = key_of(h, sample(r, &key));
	if (one.block != block)
		return;
	parts_from(r, x->from, one.number, &parts);
	while (parts.n-- > 0) {
		r = parts.part[parts.n];
		if (least_of(r) >= least || is_beaten(x, least_of(r)))
			continue;
		job = best_at(r, x->now);
		if (job->indexed.total < least)
			least = job->indexed.total;
		search_offer(x, job, search_score(x, job));
	}
}

/* And until when, if that is not before the time of the search. */
static struct job *
best_until(struct hull_ref r, usec_t now, usec_t *ret_until)
{
	const struct hull_node *node;
	usec_t until = FOREVER;

	while (is_node(r)) {
		node = node_of(r);
		if (now <= node->until && until > node->until)
			until = node->until;
		r = node->below[now > node->until];
	}
	*ret_until = until;
	return job_of(r);
}

static void
find_best(struct hull *h, uint32_t block, struct search *x)
{
	const struct key key = { 0, block };
	struct hull_ref r = find_block(h, &key);
	struct job *job;
	usec_t until;

	if (r.bits == 0 || is_beaten(x, least_of(r)))
		return;
	job = best_until(r, x->now, &until);
	if (key_of(h, job).block != block)
		return;
	search_offer(x, job, search_score(x, job));
	if (x->is_latest) {
		h->best = job;
		h->until = until;
		h->block = block;
	}
}

void
hull_best(struct hull *h, uint32_t block, struct search *x)
{
	struct job *job = h->best;

	if (job != NULL && h->block == block && x->now <= h->until &&
	    x->is_latest)
		search_offer(x, job, search_score(x, job));
	else
		find_best(h, block, x);
}

/* ---- check ---- */

/* The best of all jobs below, by looking at each. */
static const struct job *
best_of_all(struct hull_ref r, usec_t now)
{
	const struct job *a, *b;

	if (!is_node(r))
		return job_of(r);
	a = best_of_all(node_of(r)->below[0], now);
	b = best_of_all(node_of(r)->below[1], now);
	return is_better(a, b, now) ? a : b;
}

static void
check_node(struct hull_ref r)
{
	const struct hull_node *node = node_of(r);

	if (node->bit >= HULL_BLOCK)
		return;
	ASSERT(node->least <= least_of(node->below[0]));
	ASSERT(node->least <= least_of(node->below[1]));
	if (node->until >= FOREVER - 1) {
		ASSERT(node->until < FOREVER ||
		    least_of(node->below[0]) <= least_of(node->below[1]));
		ASSERT(best_of_all(r, FOREVER - 1) ==
		    best_of_all(node->below[0], FOREVER - 1));
		return;
	}
	ASSERT(node->until == NEVER ||
	    best_of_all(r, node->until) ==
		best_of_all(node->below[0], node->until));
	ASSERT(best_of_all(r, node->until + 1) ==
	    best_of_all(node->below[1], node->until + 1));
}

size_t
hull_check(const struct hull *h)
{
	struct hull_ref left[HULL_HEIGHT + 1], r;
	size_t jobs = 0;
	unsigned n = 0;

	if (h->root.bits == 0)
		return 0;
	for (left[n++] = h->root; n > 0;) {
		r = left[--n];
		if (!is_node(r)) {
			jobs++;
			continue;
		}
		check_node(r);
		left[n++] = node_of(r)->below[0];
		left[n++] = node_of(r)->below[1];
	}
	return jobs;
}
