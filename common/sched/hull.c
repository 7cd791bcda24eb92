#include "sched/parts.h"

/* Times stay below, so that differences do not overflow. */
#define FOREVER (INT64_MAX / 2)
#define NOWHERE (-1)

/* An age times a total. */
__extension__ typedef __int128 product;

/* ---- references ---- */

static bool
is_node(struct hull_ref r)
{
	return (r.bits & 1) == 0;
}

static struct hull_node *
node_of(struct hull_ref r)
{
	return (struct hull_node *)r.bits;
}

static struct job *
job_of(struct hull_ref r)
{
	return (struct job *)(r.bits - 1);
}

static struct hull_ref
of_node(struct hull_node *node)
{
	return (struct hull_ref){ (uintptr_t)node };
}

static struct hull_ref
of_job(struct job *job)
{
	return (struct hull_ref){ (uintptr_t)job + 1 };
}

/* ---- keys ---- */

struct key {
	uint64_t number;
	uint32_t block;
};

static struct key
key_of(const struct hull *h, const struct job *job)
{
	return (struct key){ job->message->number,
		h->shift == 32 ? 0 : job->indexed.needed >> h->shift };
}

static unsigned
key_bit(const struct key *key, unsigned bit)
{
	if (bit < HULL_BLOCK)
		return (unsigned)(key->number >> bit) & 1;
	return key->block >> (bit - HULL_BLOCK) & 1;
}

/* The highest bit in which they differ, or NOWHERE. */
static int
key_differ(const struct key *a, const struct key *b)
{
	if (a->block != b->block)
		return HULL_BLOCK + 31 - __builtin_clz(a->block ^ b->block);
	if (a->number != b->number)
		return 63 - __builtin_clzll(a->number ^ b->number);
	return NOWHERE;
}

/* A job that has as many bits of the key as possible. */
static struct job *
sample(struct hull_ref r, const struct key *key)
{
	while (is_node(r))
		r = node_of(r)->below[key_bit(key, node_of(r)->bit)];
	return job_of(r);
}

/* ---- lines ---- */

static uint32_t
least_of(struct hull_ref r)
{
	return is_node(r) ? node_of(r)->least : job_of(r)->indexed.total;
}

/* When the score of the job is 0. */
static usec_t
zero_of(const struct job *job)
{
	return job->message->arrival - USEC_PER_SEC;
}

static struct job *
best_at(struct hull_ref r, usec_t now)
{
	while (is_node(r))
		r = node_of(r)->below[now > node_of(r)->until];
	return job_of(r);
}

/* The last time at which a, the older one, is as good as b or better. */
static usec_t
last_time(const struct job *a, const struct job *b)
{
	uint32_t more;
	usec_t apart = b->message->arrival - a->message->arrival;
	product after;

	if (a->indexed.total <= b->indexed.total)
		return FOREVER;
	more = a->indexed.total - b->indexed.total;
	after = (product)apart * a->indexed.total / more;
	if (after >= FOREVER - 1 - zero_of(a))
		return FOREVER - 1;
	return zero_of(a) + (usec_t)after;
}

static bool
older_wins(struct hull_ref older, struct hull_ref younger, usec_t now)
{
	const struct job *a = best_at(older, now), *b = best_at(younger, now);

	return (product)(now - zero_of(a)) * b->indexed.total >=
	    (product)(now - zero_of(b)) * a->indexed.total;
}

/* Down to where more than one part has the best job between these times. */
static struct hull_ref
narrow(struct hull_ref r, usec_t from, usec_t to)
{
	const struct hull_node *node;

	for (; is_node(r); r = node->below[node->until < from]) {
		node = node_of(r);
		if (node->until >= from && node->until < to)
			break;
	}
	return r;
}

/* The last time at which the older part has the best job of both, found between
 * two bounds: the times of one part's nodes halve what is between them. */
static usec_t
find_until(struct hull_ref older, struct hull_ref younger)
{
	usec_t from = -FOREVER, to = FOREVER - 1, at;

	if (least_of(older) <= least_of(younger))
		return FOREVER;
	for (;;) {
		older = narrow(older, from, to + 1);
		younger = narrow(younger, from, to + 1);
		if (is_node(older))
			at = node_of(older)->until;
		else if (is_node(younger))
			at = node_of(younger)->until;
		else
			return last_time(job_of(older), job_of(younger));
		if (!older_wins(older, younger, at))
			to = at - 1;
		else if (older_wins(older, younger, at + 1))
			from = at + 1;
		else
			return at;
	}
}

/* When a job is the best below a node. */
struct span {
	usec_t from, to;
};

static uint32_t
sum_least(const struct hull_node *node)
{
	uint32_t a = least_of(node->below[0]), b = least_of(node->below[1]);

	return a < b ? a : b;
}

/* A job has come to one part or left it, where it is or was the best in that
 * span. If the younger part can win earlier now, the last time of the older one
 * tells, else (`later`) the first one of the younger part. */
static void
node_renew(struct hull_node *node, const struct span *span, bool later)
{
	usec_t at = node->until + later;

	node->least = sum_least(node);
	if (least_of(node->below[0]) == node->least)
		node->until = FOREVER;
	else if (node->until == FOREVER ||
	    (at >= span->from && at <= span->to &&
		older_wins(node->below[0], node->below[1], at) == later))
		node->until = find_until(node->below[0], node->below[1]);
}

static bool
span_cut(struct span *span, const struct hull_node *node, unsigned side)
{
	if (side == 0 && span->to > node->until)
		span->to = node->until;
	if (side == 1 && span->from <= node->until)
		span->from = node->until + 1;
	return span->from <= span->to;
}

/* ---- jobs come and go ---- */

/* The nodes from the root down. */
struct path {
	struct hull_node *node[HULL_HEIGHT];
	unsigned n;
};

bool
hull_insert(struct hull *h, struct job *job, struct slab *nodes)
{
	struct key key = key_of(h, job), other;
	struct hull_ref *at = &h->root;
	struct span span = { -FOREVER, FOREVER };
	struct hull_node *new;
	struct path path;
	unsigned side;
	bool shows;
	int bit;

	if (at->bits == 0) {
		*at = of_job(job);
		return true;
	}
	other = key_of(h, sample(*at, &key));
	bit = key_differ(&key, &other);
	ASSERT(bit != NOWHERE);
	new = slab_get(nodes);
	if (new == NULL)
		return false;
	for (path.n = 0; is_node(*at) && node_of(*at)->bit > bit; path.n++) {
		path.node[path.n] = node_of(*at);
		at = &node_of(*at)->below[key_bit(&key, node_of(*at)->bit)];
	}
	side = key_bit(&key, (unsigned)bit);
	new->bit = (uint8_t)bit;
	new->below[side] = of_job(job);
	new->below[1 - side] = *at;
	*at = of_node(new);
	shows = new->bit < HULL_BLOCK;
	if (shows) {
		new->least = sum_least(new);
		new->until = find_until(new->below[0], new->below[1]);
		shows = span_cut(&span, new, side);
	}
	/* As far up as the job is the best at some time. */
	while (shows && path.n-- > 0 && path.node[path.n]->bit < HULL_BLOCK) {
		new = path.node[path.n];
		side = key_bit(&key, new->bit);
		node_renew(new, &span, side == 0);
		shows = span_cut(&span, new, side);
	}
	return true;
}

void
hull_remove(struct hull *h, struct job *job, struct slab *nodes)
{
	struct key key = key_of(h, job);
	struct hull_ref *at = &h->root, *above = NULL;
	struct span span = { -FOREVER, FOREVER }, was;
	struct hull_node *node;
	struct path path;
	unsigned side;
	bool shows;

	for (path.n = 0; is_node(*at); path.n++) {
		node = path.node[path.n] = node_of(*at);
		above = at;
		at = &node->below[key_bit(&key, node->bit)];
	}
	ASSERT(job_of(*at) == job);
	if (above == NULL) {
		at->bits = 0;
		return;
	}
	node = path.node[--path.n];
	shows = node->bit < HULL_BLOCK &&
	    span_cut(&span, node, key_bit(&key, node->bit));
	*above = node->below[1 - key_bit(&key, node->bit)];
	slab_put(nodes, node);
	/* Where the job was not the best at any time, nothing changes. */
	while (shows && path.n-- > 0 && path.node[path.n]->bit < HULL_BLOCK) {
		node = path.node[path.n];
		side = key_bit(&key, node->bit);
		was = span;
		shows = span_cut(&span, node, side);
		if (shows)
			node_renew(node, &was, side == 1);
	}
}

/* ---- the search ---- */

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

/* A younger part can only have a better job if that has a smaller total than
 * the best one of the older parts. */
void
hull_search(const struct hull *h, uint32_t block, struct search *x)
{
	const struct key key = { x->from, block };
	uint32_t least = UINT32_MAX;
	struct hull_ref r = h->root;
	struct parts parts;
	struct job *job;
	struct key one;

	while (r.bits != 0 && is_node(r) && node_of(r)->bit >= HULL_BLOCK)
		r = node_of(r)->below[key_bit(&key, node_of(r)->bit)];
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
	return (product)(now - zero_of(a)) * b->indexed.total >=
		(product)(now - zero_of(b)) * a->indexed.total
	    ? a
	    : b;
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
		return;
	}
	ASSERT(best_of_all(r, node->until) ==
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
