#include "sched/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Rule 4: peers of one batch start in the order of their destinations. */
static int
fresh_compare(const struct peer *a, const struct peer *b)
{
	if (a->destination == b->destination)
		return 0;
	return strcasecmp(a->destination->name, b->destination->name);
}

TREE_GENERATE(fresh_tree, peer, line, fresh_compare)

static struct sched_rcpt *
entry_rcpts(struct entry *e)
{
	return (struct sched_rcpt *)(uintptr_t)e->pub.rcpts;
}

static void
entry_free(struct entry *e)
{
	if (e->pub.rcpts != &e->one)
		free(entry_rcpts(e));
	free(e);
}

static struct entry *
entry_new(struct peer *p)
{
	struct entry *e = malloc(sizeof(*e));

	if (e == NULL)
		return NULL;
	*e = (struct entry){
		.pub = {
			.message = p->job->message,
			.owner = p->job->message->owner,
			.transport = p->job->transport->index,
			.destination = p->destination->name,
			.nexthop = p->destination->nexthop,
			.rcpts = &e->one,
		},
		.peer = p,
		.room = 1,
		.state = ENTRY_WAITING,
	};
	return e;
}

/* Room for one more: 1 in the entry itself, then 4, 8, … up to the limit. */
static int
entry_grow(struct entry *e, uint32_t limit)
{
	uint32_t room = e->room == 1 ? 4 : (uint32_t)e->room * 2;
	struct sched_rcpt *rcpts;
	bool inside = e->pub.rcpts == &e->one;

	if (e->pub.nrcpts < e->room)
		return 0;
	if (room > limit)
		room = limit;
	rcpts = realloc(inside ? NULL : entry_rcpts(e), room * sizeof(*rcpts));
	if (rcpts == NULL)
		return -ENOMEM;
	if (inside)
		rcpts[0] = e->one;
	e->pub.rcpts = rcpts;
	e->room = (uint16_t)room;
	return 0;
}

static uint32_t
entry_limit(const struct peer *p)
{
	return p->job->transport->params.destination_recipient_limit;
}

static struct peer *
peer_new(struct job *job, struct destination *d)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->job = job;
	p->destination = d;
	TAILQ_INIT(&p->entries);
	p->fresh = true;
	RB_INSERT(fresh_tree, &job->fresh, p);
	d->peers++;
	return p;
}

/* The destination may have no peers after this; release it. */
static void
peer_free(struct peer *p)
{
	ASSERT(!p->fresh && !p->lined && !p->ranked && p->running == 0);
	p->destination->peers--;
	free(p);
}

static struct peer *
fresh_peer(struct job *job, struct destination *d)
{
	struct peer key, *p = job->last_fresh;

	if (p != NULL && p->destination == d)
		return p;
	key.destination = d;
	p = RB_FIND(fresh_tree, &job->fresh, &key);
	if (p == NULL)
		p = peer_new(job, d);
	if (p != NULL)
		job->last_fresh = p;
	return p;
}

static void
unfresh(struct peer *p)
{
	RB_REMOVE(fresh_tree, &p->job->fresh, p);
	if (p->job->last_fresh == p)
		p->job->last_fresh = NULL;
	p->fresh = false;
}

int
peer_add_rcpt(
    struct job *job, struct destination *d, const struct sched_rcpt *rcpt)
{
	struct peer *p = fresh_peer(job, d);
	struct entry *e;
	int r = -ENOMEM;

	if (p == NULL)
		return -ENOMEM;
	e = TAILQ_LAST(&p->entries, entry_queue);
	if (e != NULL && e->pub.nrcpts < entry_limit(p)) {
		r = entry_grow(e, entry_limit(p));
	} else {
		e = entry_new(p);
		if (e != NULL) {
			TAILQ_INSERT_TAIL(&p->entries, e, link);
			job->made++;
			r = 0;
		}
	}
	if (r == 0)
		entry_rcpts(e)[e->pub.nrcpts++] = *rcpt;
	else if (TAILQ_EMPTY(&p->entries)) {
		unfresh(p);
		peer_free(p);
	}
	return r;
}

static uint32_t
count_entries(const struct peer *p)
{
	const struct entry *e;
	uint32_t n = 0;

	TAILQ_FOREACH (e, &p->entries, link)
		n++;
	return n;
}

/* In its job's ring it comes last, that is, before the one whose turn it is. */
static void
peer_line(struct peer *p)
{
	struct job *job = p->job;
	struct order_node *turn = NULL;

	ASSERT(!p->lined && !TAILQ_EMPTY(&p->entries));
	if (job->turn != NULL &&
	    TAILQ_FIRST(&job->ring.list) != &job->turn->ring)
		turn = &job->turn->ring;
	order_insert(&job->ring, turn, &p->ring);
	if (job->turn == NULL)
		job->turn = p;
	p->lined = true;
	destination_line_in(p);
	destination_place(p->destination);
}

static void
peer_unline(struct peer *p)
{
	struct job *job = p->job;
	struct order_node *next;

	if (job->turn == p) {
		next = order_next(&job->ring, &p->ring);
		job->turn =
		    next == &p->ring ? NULL : ORDER_OF(next, struct peer, ring);
	}
	candidate_forget_peer(p);
	order_remove(&job->ring, &p->ring);
	p->lined = false;
	destination_line_out(p);
	destination_place(p->destination);
}

/* Recipients of src fill up dst, as far as there is memory. */
static void
top_up(struct entry *dst, struct entry *src, uint32_t limit)
{
	struct sched_rcpt *rcpts = entry_rcpts(src);
	uint32_t n = 0;

	while (n < src->pub.nrcpts && dst->pub.nrcpts < limit &&
	    entry_grow(dst, limit) == 0)
		entry_rcpts(dst)[dst->pub.nrcpts++] = rcpts[n++];
	src->pub.nrcpts -= n;
	memmove(rcpts, rcpts + n, src->pub.nrcpts * sizeof(*rcpts));
}

/* A batch goes on where the last one ended: its entries follow those that
 * wait, and the last of those is filled up first. */
static void
peer_join(struct peer *to, struct peer *from)
{
	struct entry *last = TAILQ_LAST(&to->entries, entry_queue), *e;
	uint32_t limit = entry_limit(to);

	while ((e = TAILQ_FIRST(&from->entries)) != NULL) {
		TAILQ_REMOVE(&from->entries, e, link);
		if (last->pub.nrcpts < limit)
			top_up(last, e, limit);
		if (e->pub.nrcpts == 0) {
			to->job->made--;
			entry_free(e);
			continue;
		}
		e->peer = to;
		TAILQ_INSERT_TAIL(&to->entries, e, link);
		last = e;
	}
}

static void
take_fresh(struct peer *p)
{
	struct job *job = p->job;
	struct peer *there;
	uint32_t had;

	unfresh(p);
	there = destination_find(p->destination, job);
	if (there == NULL) {
		job->waiting += count_entries(p);
		peer_line(p);
		return;
	}
	had = count_entries(there);
	peer_join(there, p);
	job->waiting += count_entries(there) - had;
	peer_free(p);
}

void
job_take_fresh(struct job *job)
{
	struct peer *p, *next;

	for (p = RB_MIN(fresh_tree, &job->fresh); p != NULL; p = next) {
		next = RB_NEXT(fresh_tree, &job->fresh, p);
		take_fresh(p);
	}
}

/* The entries are gone; the destination, too, if nothing else holds it. */
static void
drop_entries(struct peer *p)
{
	struct sched_message *m = p->job->message;
	struct entry *e;

	while ((e = TAILQ_FIRST(&p->entries)) != NULL) {
		TAILQ_REMOVE(&p->entries, e, link);
		m->waiting -= e->pub.nrcpts;
		m->sched->figures.waiting -= e->pub.nrcpts;
		message_held(m, p->job, -(int64_t)e->pub.nrcpts);
		entry_free(e);
	}
}

void
job_drop_fresh(struct job *job)
{
	struct destination *d;
	struct peer *p;

	while ((p = RB_MIN(fresh_tree, &job->fresh)) != NULL) {
		d = p->destination;
		unfresh(p);
		job->made -= count_entries(p);
		drop_entries(p);
		peer_free(p);
		destination_release(d);
	}
}

void
job_drop_waiting(struct job *job)
{
	struct destination *d;
	struct order_node *n;
	struct peer *p;
	uint32_t count;

	while ((n = TAILQ_FIRST(&job->ring.list)) != NULL) {
		p = ORDER_OF(n, struct peer, ring);
		d = p->destination;
		count = count_entries(p);
		job->waiting -= count;
		job->selected += count;
		peer_unline(p);
		drop_entries(p);
		if (p->running == 0)
			peer_free(p);
		destination_release(d);
	}
}

struct entry *
peer_take(struct peer *p, enum entry_state state)
{
	struct entry *e = TAILQ_FIRST(&p->entries);
	struct job *job = p->job;
	struct sched_message *m = job->message;
	struct order_node *next;

	ASSERT(e != NULL);
	TAILQ_REMOVE(&p->entries, e, link);
	e->state = (uint8_t)state;
	p->running++;
	job->waiting--;
	job->selected++;
	m->running++;
	m->waiting -= e->pub.nrcpts;
	m->sched->figures.waiting -= e->pub.nrcpts;
	if (state == ENTRY_RUNNING) {
		next = order_next(&job->ring, &p->ring);
		job->turn = ORDER_OF(next, struct peer, ring);
	}
	if (TAILQ_EMPTY(&p->entries))
		peer_unline(p);
	return e;
}

/* Another peer of the same job and destination may have come meanwhile. */
void
peer_untake(struct entry *e)
{
	struct peer *p = e->peer, *there;
	struct job *job = p->job;
	struct sched_message *m = job->message;

	ASSERT(job->listed);
	there = p->lined ? p : destination_find(p->destination, job);
	p->running--;
	job->waiting++;
	job->selected--;
	m->running--;
	m->waiting += e->pub.nrcpts;
	m->sched->figures.waiting += e->pub.nrcpts;
	e->state = ENTRY_WAITING;
	if (there == NULL) {
		TAILQ_INSERT_HEAD(&p->entries, e, link);
		peer_line(p);
		return;
	}
	TAILQ_INSERT_HEAD(&there->entries, e, link);
	e->peer = there;
	if (there != p && p->running == 0)
		peer_free(p);
}

void
entry_end(struct entry *e)
{
	struct peer *p = e->peer;
	struct sched_message *m = p->job->message;

	p->running--;
	m->running--;
	message_held(m, p->job, -(int64_t)e->pub.nrcpts);
	entry_free(e);
	if (!p->lined && !p->fresh && p->running == 0)
		peer_free(p);
}

void
job_leave_lines(struct job *job)
{
	struct order_node *n;
	struct peer *p;

	TAILQ_FOREACH (n, &job->ring.list, link) {
		p = ORDER_OF(n, struct peer, ring);
		destination_line_out(p);
		destination_place(p->destination);
	}
}

void
job_enter_lines(struct job *job)
{
	struct order_node *n;
	struct peer *p;

	TAILQ_FOREACH (n, &job->ring.list, link) {
		p = ORDER_OF(n, struct peer, ring);
		destination_line_in(p);
		destination_place(p->destination);
	}
}
