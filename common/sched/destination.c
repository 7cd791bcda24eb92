#include "sched/parts.h"

static int
line_compare(const struct peer *a, const struct peer *b)
{
	return label_order(a->job->order.label, b->job->order.label);
}

static int
open_compare(const struct destination *a, const struct destination *b)
{
	int r = label_order(a->order_key, b->order_key);

	return r != 0 ? r : label_order(a->ring_key, b->ring_key);
}

TREE_GENERATE(line_tree, peer, line, line_compare)
TREE_GENERATE(open_tree, destination, link, open_compare)

struct destination *
destination_get(struct transport *t, const char *name, size_t nexthop_at)
{
	usec_t now = t->sched->now;
	struct site *site = site_open(t->sched->sites, t->index, name, now);
	struct destination *d;
	void **user;

	if (site == NULL)
		return NULL;
	user = site_user(site);
	if (*user != NULL) {
		site_close(site, now);
		return *user;
	}
	d = slab_get_zeroed(&t->sched->slabs.destination);
	if (d == NULL) {
		site_close(site, now);
		return NULL;
	}
	d->site = site;
	d->nexthop_at = (uint16_t)nexthop_at;
	d->state = (uint8_t)site_state(site, now);
	RB_INIT(&d->line);
	*user = d;
	t->sched->figures.destinations++;
	return d;
}

void
destination_release(struct transport *t, struct destination *d)
{
	struct sched *s = t->sched;

	if (d->peers > 0)
		return;
	ASSERT(!d->open && !d->dying && !d->waits && d->first_peer == NULL);
	s->figures.destinations--;
	*site_user(d->site) = NULL;
	site_close(d->site, s->now);
	slab_put(&s->slabs.destination, d);
}

/* The destinations of new mail come last, those of a job that preempts first.
 */
static void
open_in(struct transport *t, struct destination *d)
{
	struct open_tree *tree = &t->open;

	if (t->first == NULL || open_compare(d, t->first) < 0) {
		TREE_PUT_FIRST(open_tree, tree, t->first, d, link);
		t->first = d;
		if (t->last == NULL)
			t->last = d;
	} else if (open_compare(d, t->last) > 0) {
		TREE_PUT_LAST(open_tree, tree, t->last, d, link);
		t->last = d;
	} else {
		RB_INSERT(open_tree, tree, d);
	}
}

static void
open_out(struct transport *t, struct destination *d)
{
	struct open_tree *tree = &t->open;

	if (t->first == d)
		t->first = RB_NEXT(open_tree, tree, d);
	if (t->last == d)
		t->last = RB_PREV(open_tree, tree, d);
	RB_REMOVE(open_tree, tree, d);
}

static void
place_open(struct transport *t, struct destination *d, bool open)
{
	bool was = d->open;
	uint64_t order_key = 0, ring_key = 0;

	if (open) {
		order_key = d->first_peer->job->order.label;
		ring_key = d->first_peer->ring.label;
	}
	if (was && open && d->order_key == order_key && d->ring_key == ring_key)
		return;
	if (was)
		open_out(t, d);
	d->open = open;
	if (open) {
		d->order_key = order_key;
		d->ring_key = ring_key;
		open_in(t, d);
	}
}

/* Rule 4.5: room for an entry of a blocker. */
static void
start_again(struct transport *t, const struct destination *d)
{
	if (t->current == NULL || d->order_key < t->current->order.label)
		t->current = ORDER_OF(TAILQ_FIRST(&t->jobs), struct job, order);
}

static void
place_dead(struct transport *t, struct destination *d, bool dying)
{
	struct dead_list *list = &t->sched->dead;

	if (d->dying == dying)
		return;
	d->dying = dying;
	if (dying)
		TAILQ_INSERT_TAIL(list, d, dead);
	else
		TAILQ_REMOVE(list, d, dead);
}

/* Invariant: this scheduler is a waiter at a shared site if and only if the
 * site is full and the destination has peers in line. */
static bool
waiting_differs(const struct destination *d)
{
	return d->waits ? d->first_peer == NULL
			: d->first_peer != NULL && d->state == SITE_FULL;
}

void
destination_place(struct transport *t, struct destination *d)
{
	bool open, dying;

	if (waiting_differs(d))
		destination_ask(t, d);
	open = d->first_peer != NULL && d->state == SITE_ROOM;
	dying = d->first_peer != NULL && d->state == SITE_DEAD;
	if (!open)
		place_open(t, d, false);
	place_dead(t, d, dying);
	if (open) {
		place_open(t, d, true);
		start_again(t, d);
	}
}

void
destination_ask(struct transport *t, struct destination *d)
{
	usec_t now = t->sched->now;
	bool waits = d->first_peer != NULL;

	d->state = (uint8_t)site_wait(d->site, waits, now);
	d->waits = waits && (d->waits || d->state == SITE_FULL);
}

void
destination_refresh(struct transport *t, struct destination *d)
{
	destination_ask(t, d);
	destination_place(t, d);
}

void
destination_step_aside(struct transport *t, struct destination *d)
{
	d->state = (uint8_t)site_wait(d->site, false, t->sched->now);
	d->waits = false;
	destination_place(t, d);
}

/* New mail comes last in the job list, and in each line: no other job has to be
 * read for that. */
static bool
comes_last(const struct destination *d, const struct peer *p)
{
	return d->last_peer == NULL ||
	    TAILQ_NEXT(&p->job->order, link) == NULL ||
	    line_compare(d->last_peer, p) < 0;
}

void
destination_line_in(struct peer *p)
{
	struct destination *d = p->destination;
	struct peer *there;

	if (comes_last(d, p)) {
		TREE_PUT_LAST(line_tree, &d->line, d->last_peer, p, line);
		d->last_peer = p;
		if (d->first_peer == NULL)
			d->first_peer = p;
	} else if (line_compare(p, d->first_peer) < 0) {
		TREE_PUT_FIRST(line_tree, &d->line, d->first_peer, p, line);
		d->first_peer = p;
	} else {
		there = RB_INSERT(line_tree, &d->line, p);
		ASSERT(there == NULL);
	}
}

void
destination_line_out(struct peer *p)
{
	struct destination *d = p->destination;

	if (d->first_peer == p)
		d->first_peer = RB_NEXT(line_tree, &d->line, p);
	if (d->last_peer == p)
		d->last_peer = RB_PREV(line_tree, &d->line, p);
	RB_REMOVE(line_tree, &d->line, p);
}

uint32_t
destination_line_before(struct peer *p, uint32_t most, bool *ret_more)
{
	struct peer *before = RB_PREV(line_tree, &p->destination->line, p);
	uint32_t n = 0;

	for (; before != NULL && n < most; n++)
		before = RB_PREV(line_tree, &p->destination->line, before);
	*ret_more = before != NULL;
	return n;
}

struct peer *
destination_find(struct destination *d, struct job *job)
{
	struct peer key;

	if (d->first_peer == NULL || !job->listed)
		return NULL;
	key.job = job;
	return RB_FIND(line_tree, &d->line, &key);
}

struct job *
transport_first(struct transport *t)
{
	return t->first == NULL ? NULL : t->first->first_peer->job;
}

/* All jobs before the first are full, so every open destination that it waits
 * for has a peer of it first in line: its selectable peers are one after the
 * other in the tree, in the order of its ring. */
struct peer *
transport_turn(struct transport *t, struct job *first)
{
	struct destination key, *d = first->turn->destination;

	if (d->open && d->first_peer == first->turn)
		return d->first_peer;
	key.order_key = first->order.label;
	key.ring_key = first->turn->ring.label;
	d = RB_NFIND(open_tree, &t->open, &key);
	if (d == NULL || d->order_key != key.order_key)
		d = t->first;
	ASSERT(d != NULL);
	return d->first_peer;
}

/* Labels were spread, their order is the same: copies of them are mended. */
void
job_order_moved(struct order_node *node)
{
	struct job *job = ORDER_OF(node, struct job, order);
	struct order_node *n;
	struct peer *p;

	TAILQ_FOREACH (n, &job->ring, link) {
		p = ORDER_OF(n, struct peer, ring);
		if (p->destination->open && p->destination->first_peer == p)
			p->destination->order_key = node->label;
	}
}

void
peer_ring_moved(struct order_node *node)
{
	struct peer *p = ORDER_OF(node, struct peer, ring);

	if (p->destination->open && p->destination->first_peer == p)
		p->destination->ring_key = node->label;
}
