#include "sched/hull_parts.h"

/* ---- times ---- */

/* The last time at which a, the older one, is the better one of the two. */
static usec_t
last_time(const struct job *a, const struct job *b)
{
	usec_t apart = b->message->arrival - a->message->arrival;
	product all, after;
	uint32_t more;

	if (apart == 0)
		return is_better(a, b, 0) ? FOREVER : NEVER;
	if (a->indexed.total <= b->indexed.total)
		return FOREVER;
	more = a->indexed.total - b->indexed.total;
	all = (product)apart * a->indexed.total;
	after = all / more;
	if (after * more == all && !is_earlier(a, b))
		after--;
	if (after >= FOREVER - 1 - zero_of(a))
		return FOREVER - 1;
	return zero_of(a) + (usec_t)after;
}

static bool
older_wins(struct hull_ref older, struct hull_ref younger, usec_t now)
{
	return is_better(best_at(older, now), best_at(younger, now), now);
}

/* The older part has the best job at any time, as its least total says. Of two
 * jobs that arrived together, with the same total, the younger one may be the
 * earlier one in the list, if they have moved. */
static bool
is_least(const struct hull *h, struct hull_ref older, struct hull_ref younger)
{
	uint32_t a = least_of(older), b = least_of(younger);

	return a < b ||
	    (a == b && (!h->moved || older_wins(older, younger, FOREVER - 1)));
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
	usec_t from = NEVER + 1, to = FOREVER - 1, at;

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
node_renew(const struct hull *h, struct hull_node *node,
    const struct span *span, bool later)
{
	usec_t at = node->until + later;

	node->least = sum_least(node);
	if (is_least(h, node->below[0], node->below[1]))
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
	struct span span = { NEVER + 1, FOREVER };
	struct hull_node *new;
	struct path path;
	unsigned side;
	bool shows;
	int bit;

	h->best = NULL;
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
		new->until = is_least(h, new->below[0], new->below[1])
		    ? FOREVER
		    : find_until(new->below[0], new->below[1]);
		shows = span_cut(&span, new, side);
	}
	/* As far up as the job is the best at some time. */
	while (shows && path.n-- > 0 && path.node[path.n]->bit < HULL_BLOCK) {
		new = path.node[path.n];
		side = key_bit(&key, new->bit);
		node_renew(h, new, &span, side == 0);
		shows = span_cut(&span, new, side);
	}
	return true;
}

void
hull_remove(struct hull *h, struct job *job, struct slab *nodes)
{
	struct key key = key_of(h, job);
	struct hull_ref *at = &h->root, *above = NULL;
	struct span span = { NEVER + 1, FOREVER }, was;
	struct hull_node *node;
	struct path path;
	unsigned side;
	bool shows;

	h->best = NULL;
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
			node_renew(h, node, &was, side == 1);
	}
}

void
hull_clear(struct hull *h, unsigned *budget, struct slab *nodes)
{
	struct hull_node *node;
	struct hull_ref older;

	for (; *budget > 0 && is_node(h->root) && h->root.bits != 0;
	     (*budget)--) {
		node = node_of(h->root);
		older = node->below[0];
		if (is_node(older)) { /* becomes the root */
			node->below[0] = node_of(older)->below[1];
			node_of(older)->below[1] = h->root;
			h->root = older;
		} else {
			h->root = node->below[1];
			slab_put(nodes, node);
		}
	}
	if (*budget > 0)
		h->root.bits = 0;
}
