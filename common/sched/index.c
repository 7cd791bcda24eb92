/* Jobs by what they need, to find who may preempt the current one:
 * docs/SCHEDULING.md, rule 5.
 *
 * "Needs less than M" is cut into ranges whose borders are powers of two: a
 * class for each highest bit of a need, and within the class of M a block for
 * each bit of M that is set: the needs with the higher bits of M, and with a
 * zero where M has that bit. So a job is in the tree of its class, and in a
 * tree of zeros for each lower bit of its need that is not set.
 *
 * Each tree is in the order of the list. A node remembers a job that is the
 * best one below it, and until when it is known to be: scores are lines, which
 * cross once at most. A node that has lost this job remembers none; it and
 * those whose time is over are mended when a search comes by. */
#define RB_AUGMENT(node) node_sum(node)
#include "sched/parts.h"

#define FOREVER INT64_MAX
#define NEVER   INT64_MIN

/* An age times a total. */
__extension__ typedef __int128 product;

static void node_sum(struct index_node *n);

static int
node_compare(const struct index_node *a, const struct index_node *b)
{
	if (a->block != b->block)
		return a->block < b->block ? -1 : 1;
	return label_order(a->job->order.label, b->job->order.label);
}

TREE_GENERATE(index_tree, index_node, link, node_compare)

/* ---- scores ---- */

/* When the score of the job is 0. */
static usec_t
zero_of(const struct job *job)
{
	return job->message->arrival - USEC_PER_SEC;
}

static bool
is_earlier(const struct job *a, const struct job *b)
{
	return a->order.label < b->order.label;
}

static bool
is_better(const struct job *a, const struct job *b, usec_t now)
{
	product x = (product)(now - zero_of(a)) * b->indexed.total;
	product y = (product)(now - zero_of(b)) * a->indexed.total;

	return x > y || (x == y && is_earlier(a, b));
}

/* a, which is the better one now, is so as long as b is there. */
static bool
is_better_for_ever(const struct job *a, const struct job *b)
{
	return a->indexed.total <= b->indexed.total;
}

/* Until when a, which is the better one now, is better than b: not more than a
 * microsecond or two too early, and never too late. */
static usec_t
better_until(const struct job *a, const struct job *b)
{
	const double apart = (double)(zero_of(b) - zero_of(a));
	double after;

	if (is_better_for_ever(a, b))
		return FOREVER;
	after = apart * a->indexed.total /
	    (double)(a->indexed.total - b->indexed.total) * (1 - 1e-12);
	return after > 1e18 ? FOREVER : zero_of(a) + (usec_t)after - 1;
}

/* ---- the best job of a part of a tree ---- */

static void
node_forget(struct index_node *n)
{
	n->best = NULL;
	n->until = NEVER;
}

/* Another job below the node is the best of others until then. */
static void
node_offer(struct index_node *n, struct job *job, usec_t until)
{
	struct job *worse = job;
	usec_t better;

	if (is_better(job, n->best, job->transport->searched)) {
		worse = n->best;
		n->best = job;
	}
	better = better_until(n->best, worse);
	if (until > better)
		until = better;
	if (n->until > until)
		n->until = until;
}

static void
node_sum(struct index_node *n)
{
	const struct index_node *below[] = { RB_LEFT(n, link),
		RB_RIGHT(n, link) };
	size_t i;

	n->best = n->job;
	n->until = FOREVER;
	for (i = 0; i < ARRAY_LEN(below); i++) {
		if (below[i] == NULL)
			continue;
		if (below[i]->best == NULL) {
			node_forget(n);
			return;
		}
		node_offer(n, below[i]->best, below[i]->until);
	}
}

/* As deep as the tree is high. */
static void
node_mend(struct index_node *n)
{
	if (n == NULL || n->job->transport->searched <= n->until)
		return;
	node_mend(RB_LEFT(n, link));
	node_mend(RB_RIGHT(n, link));
	node_sum(n);
}

/* ---- jobs come, change and go ---- */

/* The tree that holds jobs with that need because of the bit, or NULL. */
static struct index_tree *
tree_for(struct transport *t, uint32_t needed, unsigned bit)
{
	uint32_t block = needed >> bit;

	if (block == 1)
		return &t->classes[bit];
	return block > 1 && block % 2 == 0 ? &t->zeros[bit] : NULL;
}

/* Above a job that is better for ever, nobody has to hear of this one. Without
 * memory the job is no candidate for some. */
static void
node_add(struct index_tree *tree, struct job *job, uint32_t block)
{
	struct index_node *n = slab_get(&job->transport->sched->slabs.index);
	struct index_node *up;

	if (n == NULL)
		return;
	*n = (struct index_node){
		.job = job, .best = job, .until = FOREVER, .block = block
	};
	RB_INSERT(index_tree, tree, n);
	for (up = RB_PARENT(n, link); up != NULL; up = RB_PARENT(up, link)) {
		if (up->best == NULL)
			continue;
		node_offer(up, job, FOREVER);
		if (up->best != job && is_better_for_ever(up->best, job))
			break;
	}
}

static void
node_remove(struct index_tree *tree, struct job *job, uint32_t block)
{
	struct index_node key = { .job = job, .block = block };
	struct index_node *n = RB_FIND(index_tree, tree, &key), *up;

	if (n == NULL)
		return;
	for (up = n; up != NULL; up = RB_PARENT(up, link))
		if (up->best == job)
			node_forget(up);
	/* With two parts below, the next node takes its place. */
	if (RB_LEFT(n, link) != NULL && RB_RIGHT(n, link) != NULL)
		for (up = RB_NEXT(index_tree, tree, n); up != n;
		     up = RB_PARENT(up, link))
			node_forget(up);
	RB_REMOVE(index_tree, tree, n);
	slab_put(&job->transport->sched->slabs.index, n);
}

/* A job that needs one less changes two trees in the mean: as many as a counter
 * has bits that turn. */
static void
index_set(struct job *job, struct indexed to)
{
	const struct indexed from = job->indexed;
	struct index_tree *was, *is;
	unsigned bit;

	job->indexed = to;
	for (bit = 0; bit < INDEX_BITS; bit++) {
		was = tree_for(job->transport, from.needed, bit);
		is = tree_for(job->transport, to.needed, bit);
		if (was == is && from.needed >> bit == to.needed >> bit &&
		    from.total == to.total)
			continue;
		if (was != NULL)
			node_remove(was, job, from.needed >> bit);
		if (is != NULL)
			node_add(is, job, to.needed >> bit);
	}
}

/* The clock of the index never goes back, as nodes remember jobs for later
 * times, and is never before an arrival. */
static void
index_clock(struct transport *t)
{
	const struct message_list *all = &t->sched->messages;
	const usec_t last = TAILQ_LAST(all, message_list)->arrival;

	if (t->searched < t->sched->now)
		t->searched = t->sched->now;
	if (t->searched < last)
		t->searched = last;
}

/* The job that has changed is known as it is. */
static void
settle(struct transport *t)
{
	struct job *job = t->late;
	struct indexed to = { 0 };

	if (job == NULL)
		return;
	t->late = NULL;
	index_clock(t);
	if (!job_has_children(job) && job_needed(job) > 0)
		to = (struct indexed){ job_needed(job), job->total };
	if (to.needed != job->indexed.needed || to.total != job->indexed.total)
		index_set(job, to);
}

void
index_update(struct job *job)
{
	struct transport *t = job->transport;

	if (!job->listed || t->late == job || t->params.delivery_slot_cost < 2)
		return;
	settle(t);
	t->late = job;
}

void
index_remove(struct job *job)
{
	if (job->transport->late == job)
		job->transport->late = NULL;
	if (job->indexed.needed > 0)
		index_set(job, (struct indexed){ 0 });
}

void
index_fill(struct transport *t)
{
	void (*act)(struct job *) =
	    t->params.delivery_slot_cost < 2 ? index_remove : index_update;
	struct order_node *n;

	TAILQ_FOREACH (n, &t->jobs, link)
		act(ORDER_OF(n, struct job, order));
}

/* ---- the search ---- */

uint32_t
index_least_needed(struct transport *t)
{
	unsigned bit;

	index_clock(t);
	if (t->late != t->current)
		settle(t);
	for (bit = 0; bit < INDEX_BITS; bit++)
		if (!RB_EMPTY(&t->classes[bit]))
			return (uint32_t)1 << bit;
	return UINT32_MAX;
}

struct search {
	const struct transport *t;
	uint32_t block;
	struct job *best; /* NULL: none yet */
};

static void
search_offer(struct search *x, struct job *job)
{
	if (x->best == NULL || is_better(job, x->best, x->t->searched))
		x->best = job;
}

/* The jobs of the block that stand behind the current one. behind, before: all
 * below the node do, and none is of a later block. As deep as the tree is high.
 */
static void
search_part(struct search *x, struct index_node *n, bool behind, bool before)
{
	while (n != NULL && !(behind && before))
		if (n->block > x->block) {
			n = RB_LEFT(n, link);
		} else if (n->block < x->block ||
		    !is_earlier(x->t->current, n->job)) {
			n = RB_RIGHT(n, link);
		} else {
			search_offer(x, n->job);
			search_part(x, RB_LEFT(n, link), behind, true);
			n = RB_RIGHT(n, link);
			behind = true;
		}
	if (n == NULL)
		return;
	node_mend(n);
	search_offer(x, n->best);
}

/* True: no job with that total, or more, is better than the best one so far. */
static bool
is_beaten(const struct search *x, uint64_t total)
{
	const struct sched_message *oldest =
	    TAILQ_FIRST(&x->t->sched->messages);
	const usec_t now = x->t->searched, since = oldest->arrival;

	return x->best != NULL &&
	    (product)(now - since + USEC_PER_SEC) * x->best->indexed.total <
	    (product)(now - zero_of(x->best)) * total;
}

/* Look at all jobs that need less than `end`. */
static void
search_below(struct search *x, struct transport *t, uint64_t end)
{
	unsigned bit;

	x->block = 1;
	for (bit = 0; end >> bit > 1 && !is_beaten(x, (uint64_t)1 << bit);
	     bit++)
		search_part(x, RB_ROOT(&t->classes[bit]), false, true);
	if (end >> bit != 1)
		return;
	while (bit-- > 0)
		if ((end >> bit & 1) != 0) {
			x->block = (uint32_t)(end >> bit) - 1;
			search_part(x, RB_ROOT(&t->zeros[bit]), false, false);
		}
}

struct job *
index_best(struct transport *t, uint32_t most, double *ret_score)
{
	struct search x = { .t = t };

	search_below(&x, t, (uint64_t)most + 1);
	if (x.best != NULL)
		*ret_score = (double)(t->searched - zero_of(x.best)) /
		    x.best->indexed.total / USEC_PER_SEC;
	return x.best;
}
