/* Invariants between the structures of the scheduler, by reading all of them.
 * The orders are stated here once more, so that a wrong one shows. */
#include "sched_check.h"

#include "sched/parts.h"

static int
by_label(const struct peer *a, const struct peer *b)
{
	return label_order(a->job->order.label, b->job->order.label);
}

static int
by_place(const struct destination *a, const struct destination *b)
{
	if (a->order_key != b->order_key)
		return a->order_key < b->order_key ? -1 : 1;
	return label_order(a->ring_key, b->ring_key);
}

static int
by_message(const struct job *a, const struct job *b)
{
	return message_order(a->message, b->message);
}

static int
unread_by_message(const struct job_reading *a, const struct job_reading *b)
{
	return by_message(a->job, b->job);
}

static int
by_block(const struct index_node *a, const struct index_node *b)
{
	if (a->block != b->block)
		return a->block < b->block ? -1 : 1;
	return label_order(a->job->order.label, b->job->order.label);
}

TREE_GENERATE(line_tree, peer, line, by_label)
TREE_GENERATE(open_tree, destination, link, by_place)
TREE_GENERATE(arrival_tree, job, arrival, by_message)
TREE_GENERATE(unread_tree, job_reading, link, unread_by_message)
TREE_GENERATE(index_tree, index_node, link, by_block)

/* Every element is in order, and there are so many. */
#define CHECK_TREE(tree, type, head, compare, count)                     \
	do {                                                             \
		struct type *x_, *last_ = NULL;                          \
		size_t n_ = 0;                                           \
		for (x_ = RB_MIN(tree, head); x_ != NULL;                \
		     x_ = RB_NEXT(tree, head, x_)) {                     \
			ASSERT(last_ == NULL || compare(last_, x_) < 0); \
			last_ = x_;                                      \
			n_++;                                            \
		}                                                        \
		ASSERT(n_ == (count));                                   \
	} while (0)

/* Counted on the way, compared at the end. */
struct counts {
	size_t jobs, open, unmoved, unread, dying;
	uint64_t running, waiting, held, messages;
	int64_t limit;
};

static uint64_t
check_entries(const struct peer *p, uint32_t *ret_entries)
{
	const struct entry *e;
	uint64_t rcpts = 0;

	*ret_entries = 0;
	for (e = p->entries.first; e != NULL; e = e->next) {
		ASSERT(e->nrcpts > 0 && e->nrcpts <= entry_room(e));
		(*ret_entries)++;
		rcpts += e->nrcpts;
	}
	ASSERT(*ret_entries > 0);
	return rcpts;
}

/* The job can go: it stands at or behind the current one. */
static void
check_not_gone_by(const struct job *job)
{
	const struct job *current = job->transport->current;

	ASSERT(current != NULL && current->listed);
	ASSERT(job->order.label >= current->order.label);
}

/* Once for each destination: by its first_peer. */
static void
check_destination(struct destination *d, struct counts *n)
{
	size_t lined = 0;
	struct peer *p;

	RB_FOREACH (p, line_tree, &d->line) {
		ASSERT(p->lined && p->destination == d);
		lined++;
	}
	CHECK_TREE(line_tree, peer, &d->line, by_label, lined);
	ASSERT(d->first_peer == RB_MIN(line_tree, &d->line));
	ASSERT(d->last_peer == RB_MAX(line_tree, &d->line));
	ASSERT(lined <= d->peers);
	ASSERT(d->open == (d->state == SITE_ROOM));
	ASSERT(d->dying == (d->state == SITE_DEAD));
	/* Only as a waiter is it told of room. */
	ASSERT(d->waits || d->state != SITE_FULL);
	if (d->open) {
		ASSERT(d->order_key == d->first_peer->job->order.label);
		ASSERT(d->ring_key == d->first_peer->ring.label);
		check_not_gone_by(d->first_peer->job);
	}
	n->open += d->open;
	n->dying += d->dying;
}

static uint64_t
check_ring(struct job *job, struct counts *n)
{
	struct order_node *node, *last = NULL;
	uint32_t entries, waiting = 0;
	bool turn = job->turn == NULL;
	uint64_t rcpts = 0;
	struct peer *p;

	TAILQ_FOREACH (node, &job->ring, link) {
		p = ORDER_OF(node, struct peer, ring);
		ASSERT(last == NULL || last->label < node->label);
		ASSERT(p->job == job && p->lined && !p->loading);
		rcpts += check_entries(p, &entries);
		waiting += entries;
		turn |= job->turn == p;
		if (p->destination->first_peer == p)
			check_destination(p->destination, n);
		last = node;
	}
	ASSERT(turn && (job->turn == NULL) == TAILQ_EMPTY(&job->ring));
	ASSERT(waiting == job->waiting);
	return rcpts;
}

static void
check_tree(const struct job *job)
{
	const struct transport *t = job->transport;
	const struct job *child;
	struct order_node *n;
	uint32_t children = 0;

	ASSERT(job->listed || job->below == NULL);
	ASSERT(job_price(job) == 0 || job->above != NULL);
	TAILQ_FOREACH (n, &t->jobs, link) {
		child = ORDER_OF(n, struct job, order);
		if (job_parent(child) != job)
			continue;
		ASSERT(child->order.label < job->order.label);
		children++;
	}
	ASSERT(children == (job->below == NULL ? 0 : job->below->children));
}

static void
check_job(struct job *job, struct counts *n)
{
	ASSERT(job->total >= job->selected + job->waiting);
	ASSERT(job->listed || job->waiting == 0);
	ASSERT(!job->listed || job->waiting > 0 || job->reading != NULL);
	ASSERT(job->listed || (!job->moved && job->indexed.needed == 0));
	ASSERT(job->reading == NULL || job->reading->unread == job->listed);
	ASSERT(job->reading != NULL || job->limit <= (int64_t)job->held ||
	    message_room(job->message) <= 0);
	check_tree(job);
	n->jobs += job->listed;
	n->unmoved += job->listed && !job->moved;
	n->unread += job->reading != NULL && job->reading->unread;
	n->limit += job->limit;
}

static uint64_t
check_message(struct sched_message *m, struct transport *t, struct counts *n)
{
	struct job *job;
	uint64_t rcpts = 0;

	SLIST_FOREACH (job, &m->jobs, of_message) {
		if (job->transport != t)
			continue;
		check_job(job, n);
		rcpts += check_ring(job, n);
		n->held += job->held;
	}
	return rcpts;
}

static bool
is_better(const struct job *a, const struct job *b, usec_t now)
{
	__extension__ typedef __int128 product;
	product x = (product)(now - a->message->arrival + USEC_PER_SEC) *
	    b->indexed.total;
	product y = (product)(now - b->message->arrival + USEC_PER_SEC) *
	    a->indexed.total;

	return x > y || (x == y && a->order.label < b->order.label);
}

/* What the node remembers holds for each job below it, now and at the last
 * time. */
static void
check_node(struct index_node *n)
{
	const struct transport *t = n->job->transport;
	struct index_node *at, *end = n;
	bool found = false;

	if (n->best == NULL || n->until < t->searched)
		return;
	for (at = n; RB_LEFT(at, link) != NULL;)
		at = RB_LEFT(at, link);
	while (RB_RIGHT(end, link) != NULL)
		end = RB_RIGHT(end, link);
	for (;; at = RB_NEXT(index_tree, NULL, at)) {
		found |= at->job == n->best;
		if (at->job != n->best) {
			ASSERT(is_better(n->best, at->job, t->searched));
			ASSERT(is_better(n->best, at->job,
			    n->until < INT64_MAX / 4 ? n->until
						     : INT64_MAX / 4));
		}
		if (at == end)
			break;
	}
	ASSERT(found);
}

/* The nodes with jobs of the list that belong there, by what they need. */
static void
check_index_tree(struct index_tree *tree, unsigned bit, bool is_class)
{
	struct index_node *n;
	size_t nodes = 0;

	RB_FOREACH (n, index_tree, tree) {
		ASSERT(n->job->listed);
		ASSERT(n->block == n->job->indexed.needed >> bit);
		ASSERT(is_class ? n->block == 1
				: n->block > 1 && n->block % 2 == 0);
		check_node(n);
		nodes++;
	}
	CHECK_TREE(index_tree, index_node, tree, by_block, nodes);
}

/* One for its class, one for each lower bit that is not set. */
static size_t
count_nodes(uint32_t needed)
{
	size_t nodes = 0;
	uint32_t bit;

	for (bit = needed; bit > 0; bit >>= 1)
		nodes += (bit & 1) == 0 || bit == 1;
	return nodes;
}

static size_t
nodes_of_tree(struct index_tree *tree)
{
	struct index_node *n;
	size_t nodes = 0;

	RB_FOREACH (n, index_tree, tree)
		nodes++;
	return nodes;
}

/* The index knows each job as it is, unless it is late. */
static void
check_index(struct transport *t)
{
	struct order_node *n;
	const struct job *job;
	size_t wanted = 0, nodes = 0;
	uint32_t needed;
	unsigned bit;

	TAILQ_FOREACH (n, &t->jobs, link) {
		job = ORDER_OF(n, struct job, order);
		wanted += count_nodes(job->indexed.needed);
		if (job == t->late || t->params.delivery_slot_cost < 2)
			continue;
		needed = job_has_children(job) ? 0 : job->total - job->selected;
		ASSERT(job->indexed.needed == needed);
		ASSERT(job->indexed.total == (needed == 0 ? 0 : job->total));
	}
	for (bit = 0; bit < INDEX_BITS; bit++) {
		check_index_tree(&t->classes[bit], bit, true);
		check_index_tree(&t->zeros[bit], bit, false);
		nodes += nodes_of_tree(&t->classes[bit]);
		nodes += nodes_of_tree(&t->zeros[bit]);
	}
	ASSERT(nodes == wanted);
	ASSERT(t->late == NULL || t->late->listed);
}

static void
check_transport(struct transport *t)
{
	struct order_node *node, *last = NULL;
	struct sched_message *m;
	struct counts n = { 0 };

	TAILQ_FOREACH (m, &t->sched->messages, link)
		check_message(m, t, &n);
	TAILQ_FOREACH (node, &t->jobs, link) {
		ASSERT(last == NULL || last->label < node->label);
		last = node;
	}
	ASSERT(n.jobs == t->njobs);
	CHECK_TREE(open_tree, destination, &t->open, by_place, n.open);
	ASSERT(t->first == RB_MIN(open_tree, &t->open));
	ASSERT(t->last == RB_MAX(open_tree, &t->open));
	CHECK_TREE(arrival_tree, job, &t->by_arrival, by_message, n.unmoved);
	ASSERT(t->youngest == RB_MAX(arrival_tree, &t->by_arrival));
	CHECK_TREE(
	    unread_tree, job_reading, &t->unread, unread_by_message, n.unread);
	check_index(t);
	ASSERT(t->current == NULL || t->current->transport == t);
	/* Slots are lent, never made. */
	ASSERT(n.limit + t->unused == t->params.recipient_limit);
}

void
sched_check(const struct sched *s)
{
	const struct sched_message *m;
	const struct job *job;
	struct counts n = { 0 };
	int64_t above = 0;
	uint32_t i, held;

	for (i = 0; i < s->count; i++)
		check_transport(&s->transports[i]);
	TAILQ_FOREACH (m, &s->messages, link) {
		held = 0;
		SLIST_FOREACH (job, &m->jobs, of_message)
			held += job->held;
		ASSERT(held == m->held && m->waiting <= m->held);
		ASSERT(m->reading == NULL || !m->reading->due ||
		    (m->reading->begun && !m->reading->asked));
		above += held_above(s, m->held);
		n.held += m->held;
		n.waiting += m->waiting;
		n.messages++;
	}
	ASSERT(above == s->above);
	ASSERT(n.messages == s->figures.messages);
	ASSERT(n.held == s->figures.recipients);
	ASSERT(n.waiting == s->figures.waiting);
}
