/* Invariants between the structures, by reading all of them. Slow, for
 * tests. The orders are stated here once more, so that a wrong one shows. */
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

TREE_GENERATE(line_tree, peer, line, by_label)
TREE_GENERATE(open_tree, destination, link, by_place)
TREE_GENERATE(arrival_tree, job, arrival, by_message)
TREE_GENERATE(unread_tree, job_reading, link, unread_by_message)

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

/* The part of the leaf is right for the job. */
static void
check_part(const struct job *job)
{
	const struct segment_part *p =
	    &job->segment->part[segment_place_of_job(job)];
	uint32_t needed = job->total - job->selected;
	bool counts = needed > 0 && !job_has_children(job);
	bool begun = job->selected > 0;

	ASSERT(p->since == (counts ? job->message->arrival : INT64_MAX));
	ASSERT(p->unbegun == (counts && !begun ? job->total : UINT32_MAX));
	ASSERT(p->begun == (counts && begun ? job->total : UINT32_MAX));
	ASSERT(p->needed == (counts && begun ? needed : UINT32_MAX));
}

/* Hulls that a job with that need is in: one for its class, one for each bit
 * that is not set. */
static size_t
count_hulls(uint32_t needed)
{
	size_t hulls = 0;
	uint32_t bit;

	for (bit = needed; bit > 0; bit >>= 1)
		hulls += (bit & 1) == 0 || bit == 1;
	return hulls;
}

static size_t
check_hulls(const struct index *ix)
{
	size_t found = 0;
	unsigned i;

	for (i = 0; i < INDEX_CLASSES; i++) {
		found += hull_check(&ix->classes[i]);
		found += hull_check(&ix->zeros[i]);
		ASSERT((ix->zeros[i].root.bits != 0) == (ix->hulls >> i & 1));
		ASSERT((ix->classes[i].root.bits != 0) ==
		    (ix->hulls >> (INDEX_CLASSES + i) & 1));
	}
	return found;
}

/* Each node but leaves and the root has a shelf with all jobs before the next
 * one that is due. */
static void
check_shelf(const struct segment *s)
{
	const struct shelf *shelf = s->shelf;
	const struct job *job;
	size_t wanted = 0;

	ASSERT((shelf != NULL) == (!s->leaf && s->up != NULL));
	if (shelf == NULL)
		return;
	for (job = segment_first(s); job != NULL && job != shelf->next;
	     job = segment_after(s, job)) {
		ASSERT(shelf_holds(shelf, job));
		wanted += count_hulls(job->indexed.needed);
	}
	ASSERT(job == shelf->next);
	ASSERT(check_hulls(&shelf->index) == wanted);
}

/* The sum above is that of the parts. */
static void
check_sum(struct segment *s)
{
	struct segment_part sum = segment_sum(s), *above;

	ASSERT(s->n > 0 && s->n <= SEGMENT_PARTS);
	check_shelf(s);
	if (s->up == NULL)
		return;
	ASSERT(!s->up->leaf && segment_place(s) < s->up->n);
	above = &s->up->part[segment_place(s)];
	ASSERT(above->since == sum.since && above->unbegun == sum.unbegun);
	ASSERT(above->begun == sum.begun && above->needed == sum.needed);
}

/* The leaf behind this one, NULL: none. */
static struct segment *
next_leaf(struct segment *s)
{
	while (s->up != NULL && segment_place(s) + 1 == s->up->n)
		s = s->up;
	if (s->up == NULL)
		return NULL;
	s = s->up->part[segment_place(s) + 1].below;
	while (!s->leaf)
		s = s->part[0].below;
	return s;
}

/* The leaves, one after the other, are the moved jobs of the list; without
 * memory or preemption jobs have no place. */
static void
check_segments(const struct transport *t)
{
	struct segment *s = t->segments, *leaf = NULL, *up;
	struct order_node *n;
	struct job *job;
	unsigned at = 0;

	ASSERT(s == NULL || s->up == NULL);
	for (; s != NULL; s = s->leaf ? NULL : s->part[0].below)
		leaf = s;
	TAILQ_FOREACH (n, &t->jobs, link) {
		job = ORDER_OF(n, struct job, order);
		if (!job->moved)
			continue;
		ASSERT(
		    job->segment != NULL || t->params.delivery_slot_cost < 2);
		if (job->segment == NULL)
			continue;
		if (at == leaf->n) {
			leaf = next_leaf(leaf);
			at = 0;
		}
		ASSERT(leaf != NULL && leaf->leaf && job->segment == leaf);
		ASSERT(leaf->part[at].job == job);
		check_part(job);
		at++;
		for (up = leaf; at == leaf->n && up != NULL; up = up->up)
			check_sum(up);
	}
	ASSERT(leaf == NULL || (at == leaf->n && next_leaf(leaf) == NULL));
}

/* The hulls know the job as it is, unless it is late. How many of them it is
 * in. */
static size_t
check_indexed(const struct job *job)
{
	const struct transport *t = job->transport;
	uint32_t needed = job->total - job->selected;
	bool counts = needed > 0 && !job_has_children(job);

	if (!job->late && t->params.delivery_slot_cost >= 2) {
		ASSERT(job->indexed.needed == (counts ? needed : 0));
		ASSERT(job->indexed.total == (counts ? job->total : 0));
	}
	return count_hulls(job->indexed.needed);
}

static void
check_index(const struct transport *t)
{
	struct order_node *n;
	struct job *job;
	size_t wanted = 0, hulls;
	unsigned i, late = 0;

	TAILQ_FOREACH (n, &t->jobs, link) {
		job = ORDER_OF(n, struct job, order);
		hulls = check_indexed(job);
		wanted += job->moved ? 0 : hulls;
		late += job->late;
	}
	ASSERT(late == t->nlate);
	for (i = 0; i < t->nlate; i++)
		ASSERT(t->late[i]->late && t->late[i]->listed);
	ASSERT(check_hulls(&t->unmoved) == wanted);
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
	check_segments(t);
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
