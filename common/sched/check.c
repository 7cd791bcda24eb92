/* Invariants between the structures, by reading all of them. Slow, for
 * tests. The orders are stated here once more, so that a wrong one shows. */
#include "sched/parts.h"

static int
by_label(const struct peer *a, const struct peer *b)
{
	return label_order(a->job->order.label, b->job->order.label);
}

static int
by_age(const struct job *a, const struct job *b)
{
	if (a->message->arrival != b->message->arrival)
		return a->message->arrival < b->message->arrival ? -1 : 1;
	return label_order(a->order.label, b->order.label);
}

static int
by_total(const struct total_class *a, const struct total_class *b)
{
	return (a->total > b->total) - (a->total < b->total);
}

static int
by_rank(const struct rank *x, const struct rank *y)
{
	const struct peer *a = x->peer, *b = y->peer;

	if (a->job->class != b->job->class)
		return by_total(a->job->class, b->job->class);
	if (a->job->octave != b->job->octave)
		return a->job->octave < b->job->octave ? -1 : 1;
	return by_age(a->job, b->job);
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
heads_by_age(const struct rank *x, const struct rank *y)
{
	const struct peer *a = x->peer, *b = y->peer;
	int r = by_age(a->job, b->job);

	return r != 0
	    ? r
	    : label_order((uintptr_t)a->destination, (uintptr_t)b->destination);
}

TREE_GENERATE(line_tree, peer, line, by_label)
TREE_GENERATE(rank_tree, rank, link, by_rank)
TREE_GENERATE(head_tree, rank, heads, heads_by_age)
TREE_GENERATE(open_tree, destination, link, by_place)
TREE_GENERATE(class_tree, total_class, link, by_total)
TREE_GENERATE(free_tree, job, free, by_age)
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
	size_t jobs, open, unmoved, unread, free, begun, heads, dying;
	uint64_t running, waiting, held, messages;
	int64_t limit;
};

static uint64_t
check_entries(const struct peer *p, uint32_t *ret_entries)
{
	const struct entry *e;
	uint64_t rcpts = 0;

	*ret_entries = 0;
	STAILQ_FOREACH (e, &p->entries, link) {
		ASSERT(e->nrcpts > 0 && e->nrcpts <= e->room);
		(*ret_entries)++;
		rcpts += e->nrcpts;
	}
	ASSERT(*ret_entries > 0);
	return rcpts;
}

static bool
leads(const struct rank *a, const struct rank *b)
{
	const struct job *x, *y = b->peer->job;

	if (a == NULL)
		return true;
	x = a->peer->job;
	return x->class != y->class || x->octave != y->octave;
}

static void
check_ranks(struct destination *d, struct counts *n)
{
	struct rank *r, *last = NULL, *other;
	bool aside;

	RB_FOREACH (r, rank_tree, &d->ranks) {
		ASSERT(r->peer->rank == r && r->peer->lined);
		ASSERT(last == NULL || by_rank(last, r) < 0);
		aside = false;
		LIST_FOREACH (other, &d->aside, aside)
			aside |= other == r;
		ASSERT((aside || r->head) == leads(last, r));
		ASSERT(!aside || (!r->head && !d->open));
		n->heads += r->head;
		last = r;
	}
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
	ASSERT(lined <= d->peers);
	ASSERT(d->open == (d->state == SITE_ROOM));
	ASSERT(d->dying == (d->state == SITE_DEAD));
	/* Only as a waiter is it told of room. */
	ASSERT(d->waits || d->state != SITE_FULL ||
	    d->first_peer->job->transport->sched->sites->wait == NULL);
	if (d->open) {
		ASSERT(d->order_key == d->first_peer->job->order.label);
		ASSERT(d->ring_key == d->first_peer->ring.label);
	}
	n->open += d->open;
	n->dying += d->dying;
	check_ranks(d, n);
}

static uint64_t
check_ring(struct job *job, struct counts *n)
{
	struct order_node *node, *last = NULL;
	uint32_t entries, waiting = 0, peers = 0;
	bool turn = job->turn == NULL;
	uint64_t rcpts = 0;
	struct peer *p;

	TAILQ_FOREACH (node, &job->ring, link) {
		p = ORDER_OF(node, struct peer, ring);
		ASSERT(last == NULL || last->label < node->label);
		ASSERT(p->job == job && p->lined && !p->loading);
		ASSERT((p->rank != NULL) == (job->index == INDEX_PARKED));
		rcpts += check_entries(p, &entries);
		waiting += entries;
		peers++;
		turn |= job->turn == p;
		if (p->destination->first_peer == p)
			check_destination(p->destination, n);
		last = node;
	}
	ASSERT(turn && (job->turn == NULL) == TAILQ_EMPTY(&job->ring));
	ASSERT(waiting == job->waiting && peers == job->peers);
	return rcpts;
}

static void
check_tree(const struct job *job)
{
	const struct job *child;

	LIST_FOREACH (child, &job->children, sibling) {
		ASSERT(child->parent == job && child->listed && child->moved);
		ASSERT(child->order.label < job->order.label);
	}
	ASSERT(job_parent(job) == NULL || job->parent->listed);
	ASSERT(job->price == 0 || job_parent(job) != NULL);
}

static void
check_index(const struct job *job, struct counts *n)
{
	bool should = job->class != NULL && job->listed && job->waiting > 0 &&
	    LIST_EMPTY(&job->children);
	uint32_t needed = job->total - job->selected;
	uint8_t octave = 0;

	ASSERT((job->index != INDEX_NONE) == should);
	if (!should)
		return;
	ASSERT(job->class->total == job->total);
	for (; job->selected > 0 && needed > 0; needed /= 2)
		octave++;
	ASSERT(job->octave == octave);
	n->free += job->index == INDEX_FREE;
	n->begun += octave > 0;
}

static void
check_job(struct job *job, struct counts *n)
{
	ASSERT(job->total >= job->selected + job->waiting);
	ASSERT(job->reading != NULL || job->total == job->made);
	ASSERT(job->listed || job->waiting == 0);
	ASSERT(!job->listed || job->waiting > 0 || job->reading != NULL);
	ASSERT(job->reading == NULL || job->reading->unread == job->listed);
	ASSERT(job->reading != NULL || job->limit <= (int64_t)job->held ||
	    message_room(job->message) <= 0);
	check_tree(job);
	check_index(job, n);
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

static void
check_classes(struct transport *t, const struct counts *n)
{
	struct total_class *c, *last = NULL;
	size_t free = 0, heads = 0, begun = 0;
	struct class_octave *o;
	struct rank *r;
	struct job *job;

	RB_FOREACH (c, class_tree, &t->classes) {
		ASSERT(last == NULL || last->total < c->total);
		ASSERT(c->users > 0);
		begun += c->begun;
		for (o = c->octave; o < c->octave + c->octaves; o++) {
			RB_FOREACH (job, free_tree, &o->free)
				free++;
			RB_FOREACH (r, head_tree, &o->heads)
				heads++;
		}
		last = c;
	}
	ASSERT(free == n->free && heads == n->heads);
	ASSERT(begun == n->begun);
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
	CHECK_TREE(arrival_tree, job, &t->by_arrival, by_message, n.unmoved);
	CHECK_TREE(
	    unread_tree, job_reading, &t->unread, unread_by_message, n.unread);
	check_classes(t, &n);
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
