#include "sched/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Rule 4: peers of one batch start in the order of their destinations. */
static int
loading_compare(const struct peer *a, const struct peer *b)
{
	if (a->destination == b->destination)
		return 0;
	return strcasecmp(peer_name(a), peer_name(b));
}

TREE_GENERATE(loading_tree, peer, line, loading_compare)

static void
entry_free(struct entry *e)
{
	if (e->rcpts != &e->one)
		free(e->rcpts);
	free(e);
}

static struct entry *
entry_new(void)
{
	struct entry *e = malloc(sizeof(*e));

	if (e == NULL)
		return NULL;
	e->rcpts = &e->one;
	e->nrcpts = 0;
	e->room = 1;
	return e;
}

/* Room for one more: 1 in the entry itself, then 4, 8, … up to the limit. */
static int
entry_grow(struct entry *e, uint32_t limit)
{
	uint32_t room = e->room == 1 ? 4 : (uint32_t)e->room * 2;
	struct sched_rcpt *rcpts;
	bool inside = e->rcpts == &e->one;

	if (e->nrcpts < e->room)
		return 0;
	if (room > limit)
		room = limit;
	rcpts = realloc(inside ? NULL : e->rcpts, room * sizeof(*rcpts));
	if (rcpts == NULL)
		return -ENOMEM;
	if (inside)
		rcpts[0] = e->one;
	e->rcpts = rcpts;
	e->room = (uint16_t)room;
	return 0;
}

static struct entry *
last_entry(struct peer *p)
{
	if (STAILQ_EMPTY(&p->entries))
		return NULL;
	return (struct entry *)(void *)((char *)p->entries.stqh_last -
	    offsetof(struct entry, link));
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
	STAILQ_INIT(&p->entries);
	p->loading = true;
	RB_INSERT(loading_tree, &job->reading->loading, p);
	d->peers++;
	return p;
}

/* The destination may have no peers after this; release it. */
static void
peer_free(struct peer *p)
{
	ASSERT(!p->loading && !p->lined && p->running == 0);
	p->destination->peers--;
	free(p);
}

static struct peer *
loading_peer(struct job *job, struct destination *d)
{
	struct peer key, *p = job->reading->last_loading;

	if (p != NULL && p->destination == d)
		return p;
	key.job = job;
	key.destination = d;
	p = RB_FIND(loading_tree, &job->reading->loading, &key);
	if (p == NULL)
		p = peer_new(job, d);
	if (p != NULL)
		job->reading->last_loading = p;
	return p;
}

static void
end_loading(struct peer *p)
{
	RB_REMOVE(loading_tree, &p->job->reading->loading, p);
	if (p->job->reading->last_loading == p)
		p->job->reading->last_loading = NULL;
	p->loading = false;
}

int
peer_add_rcpt(
    struct job *job, struct destination *d, const struct sched_rcpt *rcpt)
{
	struct peer *p = loading_peer(job, d);
	struct entry *e;
	int r = -ENOMEM;

	if (p == NULL)
		return -ENOMEM;
	e = last_entry(p);
	if (e != NULL && e->nrcpts < entry_limit(p)) {
		r = entry_grow(e, entry_limit(p));
	} else {
		e = entry_new();
		if (e != NULL) {
			STAILQ_INSERT_TAIL(&p->entries, e, link);
			job->made++;
			r = 0;
		}
	}
	if (r == 0)
		e->rcpts[e->nrcpts++] = *rcpt;
	else if (STAILQ_EMPTY(&p->entries)) {
		end_loading(p);
		peer_free(p);
	}
	return r;
}

static uint32_t
count_entries(const struct peer *p)
{
	const struct entry *e;
	uint32_t n = 0;

	STAILQ_FOREACH (e, &p->entries, link)
		n++;
	return n;
}

/* In its job's ring it comes last, that is, before the one whose turn it is. */
static void
peer_line(struct peer *p)
{
	struct job *job = p->job;
	struct order_node *turn = NULL;

	ASSERT(!p->lined && !STAILQ_EMPTY(&p->entries));
	if (job->turn != NULL && TAILQ_FIRST(&job->ring) != &job->turn->ring)
		turn = &job->turn->ring;
	order_insert(
	    &job->ring, turn, &p->ring, &job->transport->sched->ring_labels);
	if (job->turn == NULL)
		job->turn = p;
	p->lined = true;
	destination_line_in(p);
	destination_refresh(job->transport, p->destination);
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
	TAILQ_REMOVE(&job->ring, &p->ring, link);
	p->lined = false;
	destination_line_out(p);
	destination_place(job->transport, p->destination);
}

/* Recipients of src fill up dst, as far as there is memory. */
static void
top_up(struct entry *dst, struct entry *src, uint32_t limit)
{
	struct sched_rcpt *rcpts = src->rcpts;
	uint32_t n = 0;

	while (n < src->nrcpts && dst->nrcpts < limit &&
	    entry_grow(dst, limit) == 0)
		dst->rcpts[dst->nrcpts++] = rcpts[n++];
	src->nrcpts = (uint16_t)(src->nrcpts - n);
	memmove(rcpts, rcpts + n, src->nrcpts * sizeof(*rcpts));
}

/* A batch goes on where the last one ended: its entries follow those that
 * wait, and the last of those is filled up first. */
static void
peer_join(struct peer *to, struct peer *from)
{
	struct entry *last = last_entry(to), *e;
	uint32_t limit = entry_limit(to);

	while ((e = STAILQ_FIRST(&from->entries)) != NULL) {
		STAILQ_REMOVE_HEAD(&from->entries, link);
		if (last->nrcpts < limit)
			top_up(last, e, limit);
		if (e->nrcpts == 0) {
			to->job->made--;
			entry_free(e);
			continue;
		}
		STAILQ_INSERT_TAIL(&to->entries, e, link);
		to->job->waiting++;
		last = e;
	}
}

static void
take_loading(struct peer *p, bool first_batch)
{
	struct job *job = p->job;
	struct peer *there = NULL;

	end_loading(p);
	if (!first_batch)
		there = destination_find(p->destination, job);
	if (there == NULL) {
		job->waiting += count_entries(p);
		peer_line(p);
		return;
	}
	peer_join(there, p);
	peer_free(p);
}

void
job_take_loading(struct job *job)
{
	bool first_batch = TAILQ_EMPTY(&job->ring);
	struct peer *p, *next;

	for (p = RB_MIN(loading_tree, &job->reading->loading); p != NULL;
	     p = next) {
		next = RB_NEXT(loading_tree, &job->reading->loading, p);
		take_loading(p, first_batch);
	}
}

/* The entries are gone; the destination, too, if nothing else holds it. */
static void
drop_entries(struct peer *p)
{
	struct sched_message *m = p->job->message;
	struct entry *e;

	while ((e = STAILQ_FIRST(&p->entries)) != NULL) {
		STAILQ_REMOVE_HEAD(&p->entries, link);
		m->waiting -= e->nrcpts;
		m->sched->figures.waiting -= e->nrcpts;
		pool_held(m, p->job, -(int64_t)e->nrcpts);
		entry_free(e);
	}
}

void
job_drop_loading(struct job *job)
{
	struct destination *d;
	struct peer *p;

	if (job->reading == NULL)
		return;
	while ((p = RB_MIN(loading_tree, &job->reading->loading)) != NULL) {
		d = p->destination;
		end_loading(p);
		job->made -= count_entries(p);
		drop_entries(p);
		peer_free(p);
		destination_release(job->transport, d);
	}
}

void
job_drop_waiting(struct job *job)
{
	struct destination *d;
	struct order_node *n;
	struct peer *p;
	uint32_t count;

	while ((n = TAILQ_FIRST(&job->ring)) != NULL) {
		p = ORDER_OF(n, struct peer, ring);
		d = p->destination;
		count = count_entries(p);
		job->waiting -= count;
		job->selected += count;
		peer_unline(p);
		drop_entries(p);
		if (p->running == 0)
			peer_free(p);
		destination_release(job->transport, d);
	}
}

struct taken *
taken_get(struct sched *s)
{
	struct taken *taken = SLIST_FIRST(&s->spare_taken);

	if (taken == NULL)
		return malloc(sizeof(*taken));
	SLIST_REMOVE_HEAD(&s->spare_taken, spare);
	return taken;
}

void
taken_spare(struct sched *s, struct taken *taken)
{
	SLIST_INSERT_HEAD(&s->spare_taken, taken, spare);
}

static void
fill(struct taken *taken, const struct peer *p, const struct entry *e)
{
	const struct sched_message *m = p->job->message;
	const char *name = peer_name(p);

	taken->pub = (struct sched_entry){
		.message = p->job->message,
		.owner = m->owner,
		.transport = p->job->transport->index,
		.destination = name,
		.nexthop = name + p->destination->nexthop_at,
		.rcpts = e->rcpts,
		.nrcpts = e->nrcpts,
		.selected_at = m->sched->now,
	};
}

void
peer_take(struct peer *p, bool has_place, struct taken *taken)
{
	struct entry *e = STAILQ_FIRST(&p->entries);
	struct job *job = p->job;
	struct sched_message *m = job->message;
	struct order_node *next;

	ASSERT(e != NULL);
	STAILQ_REMOVE_HEAD(&p->entries, link);
	fill(taken, p, e);
	taken->entry = e;
	taken->peer = p;
	taken->has_place = has_place;
	p->running++;
	job->waiting--;
	job->selected++;
	m->running++;
	m->waiting -= e->nrcpts;
	m->sched->figures.waiting -= e->nrcpts;
	if (has_place) {
		next = order_next(&job->ring, &p->ring);
		job->turn = ORDER_OF(next, struct peer, ring);
	}
	if (STAILQ_EMPTY(&p->entries))
		peer_unline(p);
}

/* Another peer of the same job and destination may have come meanwhile. */
void
peer_untake(struct taken *taken)
{
	struct peer *p = taken->peer, *there;
	struct entry *e = taken->entry;
	struct job *job = p->job;
	struct sched_message *m = job->message;

	ASSERT(job->listed);
	there = p->lined ? p : destination_find(p->destination, job);
	p->running--;
	job->waiting++;
	job->selected--;
	m->running--;
	m->waiting += e->nrcpts;
	m->sched->figures.waiting += e->nrcpts;
	STAILQ_INSERT_HEAD(&(there == NULL ? p : there)->entries, e, link);
	if (there == NULL)
		peer_line(p);
	else if (there != p && p->running == 0)
		peer_free(p);
	taken_spare(m->sched, taken);
}

void
taken_end(struct taken *taken)
{
	struct peer *p = taken->peer;
	struct sched_message *m = p->job->message;

	p->running--;
	m->running--;
	pool_held(m, p->job, -(int64_t)taken->entry->nrcpts);
	entry_free(taken->entry);
	if (!p->lined && !p->loading && p->running == 0)
		peer_free(p);
	taken_spare(m->sched, taken);
}

void
job_leave_lines(struct job *job)
{
	struct order_node *n;
	struct peer *p;

	TAILQ_FOREACH (n, &job->ring, link) {
		p = ORDER_OF(n, struct peer, ring);
		destination_line_out(p);
		destination_place(job->transport, p->destination);
	}
}

void
job_enter_lines(struct job *job)
{
	struct order_node *n;
	struct peer *p;

	TAILQ_FOREACH (n, &job->ring, link) {
		p = ORDER_OF(n, struct peer, ring);
		destination_line_in(p);
		destination_place(job->transport, p->destination);
	}
}
