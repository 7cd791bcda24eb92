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
		return (a->group > b->group) - (a->group < b->group);
	return strcasecmp(peer_name(a), peer_name(b));
}

TREE_GENERATE(loading_tree, peer, line, loading_compare)

static uint32_t
entry_limit(const struct peer *p)
{
	const struct job *job = p->job;

	return job->message->single
	    ? 1
	    : job->transport->params.destination_recipient_limit;
}

static struct peer *
peer_new(struct job *job, struct destination *d)
{
	struct peer *p = slab_get_zeroed(&job->transport->sched->slabs.peer);

	if (p == NULL)
		return NULL;
	p->job = job;
	p->destination = d;
	d->peers++;
	/* The peer comes behind that one in line. */
	if (d->last_peer != NULL)
		__builtin_prefetch(&d->last_peer->line);
	return p;
}

static struct peer *
peer_new_loading(struct job *job, struct destination *d, uint64_t group)
{
	struct peer *p = peer_new(job, d);

	if (p == NULL)
		return NULL;
	p->loading = true;
	p->group = group;
	RB_INSERT(loading_tree, &job->reading->loading, p);
	return p;
}

/* The destination may have no peers after this; release it. */
static void
peer_free(struct peer *p)
{
	ASSERT(!p->loading && !p->lined && p->running == 0);
	p->destination->peers--;
	slab_put(&p->job->transport->sched->slabs.peer, p);
}

static struct peer *
loading_peer(struct job *job, struct destination *d, uint64_t group)
{
	struct peer key, *p = job->reading->last_loading;

	if (p != NULL && p->destination == d && p->group == group)
		return p;
	key.job = job;
	key.destination = d;
	key.group = group;
	p = RB_FIND(loading_tree, &job->reading->loading, &key);
	if (p == NULL)
		p = peer_new_loading(job, d, group);
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

/* The entry of the peer that has room for one recipient more, or NULL without
 * memory. */
static struct entry *
entry_with_room(struct peer *p)
{
	struct sched *s = p->job->transport->sched;
	struct entry *e = entries_last(&p->entries);

	if (e != NULL && e->nrcpts < entry_limit(p))
		return entries_grow_last(s, &p->entries);
	e = entry_new(s);
	if (e == NULL)
		return NULL;
	entries_append(&p->entries, e);
	p->job->reading->made++;
	return e;
}

int
peer_add_rcpt(struct job *job, struct destination *d, uint64_t group,
    const struct sched_rcpt *rcpt)
{
	struct peer *p = loading_peer(job, d, group);
	struct entry *e;

	if (p == NULL)
		return -ENOMEM;
	e = entry_with_room(p);
	if (e != NULL) {
		e->rcpts[e->nrcpts++] = *rcpt;
		return 0;
	}
	if (p->entries.first == NULL) {
		end_loading(p);
		peer_free(p);
	}
	return -ENOMEM;
}

/* In its job's ring it comes last, that is, before the one whose turn it is. */
static void
peer_line(struct peer *p)
{
	struct job *job = p->job;
	struct order_node *turn = NULL;

	ASSERT(!p->lined && p->entries.first != NULL);
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

/* Recipients of src fill up the last entry of the peer, as far as there is
 * memory. */
static void
top_up(struct peer *p, struct entry *src)
{
	struct entry *dst = entries_last(&p->entries);
	struct sched *s = p->job->transport->sched;
	uint32_t n = 0, limit = entry_limit(p);

	while (dst != NULL && n < src->nrcpts && dst->nrcpts < limit) {
		dst = entries_grow_last(s, &p->entries);
		if (dst != NULL)
			dst->rcpts[dst->nrcpts++] = src->rcpts[n++];
	}
	src->nrcpts = (uint8_t)(src->nrcpts - n);
	memmove(src->rcpts, src->rcpts + n, src->nrcpts * sizeof(*src->rcpts));
}

/* A batch goes on where the last one ended: its entries follow those that
 * wait, and the last of those is filled up first. That of a shared destination
 * may be of another group. */
static void
peer_join(struct peer *to, struct peer *from, bool shared)
{
	struct entry *e;

	while ((e = entries_take(&from->entries)) != NULL) {
		if (!shared)
			top_up(to, e);
		if (e->nrcpts == 0) {
			to->job->reading->made--;
			entry_free(to->job->transport->sched, e);
			continue;
		}
		entries_append(&to->entries, e);
		to->job->waiting++;
	}
}

static void
take_loading(struct peer *p, bool first_batch)
{
	const bool shared = p->group != 0;
	struct job *job = p->job;
	struct peer *there = NULL;

	end_loading(p);
	if (!first_batch || shared)
		there = destination_find(p->destination, job);
	if (there == NULL) {
		job->waiting += entries_count(&p->entries);
		peer_line(p);
		return;
	}
	peer_join(there, p, shared);
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

	while ((e = entries_take(&p->entries)) != NULL) {
		m->waiting -= e->nrcpts;
		m->sched->figures.waiting -= e->nrcpts;
		pool_held(m, p->job, -(int64_t)e->nrcpts);
		entry_free(m->sched, e);
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
		job->reading->made -= entries_count(&p->entries);
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
		count = entries_count(&p->entries);
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
		.moves = e->moves,
		.selected_at = m->sched->now,
	};
}

void
peer_take(struct peer *p, bool has_place, struct taken *taken)
{
	struct entry *e = entries_take(&p->entries);
	struct job *job = p->job;
	struct sched_message *m = job->message;
	struct order_node *next;

	ASSERT(e != NULL);
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
	if (p->entries.first == NULL)
		peer_unline(p);
}

/* The entry of the peer waits again. */
static void
count_again(struct peer *p, const struct entry *e)
{
	struct sched_message *m = p->job->message;

	ASSERT(p->job->listed);
	p->running--;
	p->job->waiting++;
	p->job->selected--;
	m->running--;
	m->waiting += e->nrcpts;
	m->sched->figures.waiting += e->nrcpts;
}

/* Another peer of the same job and destination may have come meanwhile. */
void
peer_untake(struct taken *taken)
{
	struct peer *p = taken->peer, *there;
	struct entry *e = taken->entry;
	struct job *job = p->job;
	struct sched_message *m = job->message;

	there = p->lined ? p : destination_find(p->destination, job);
	count_again(p, e);
	entries_prepend(&(there == NULL ? p : there)->entries, e);
	if (there == NULL)
		peer_line(p);
	else if (there != p && p->running == 0)
		peer_free(p);
	taken_spare(m->sched, taken);
}

struct peer *
peer_for_move(struct job *job, struct destination *d)
{
	struct peer *there = destination_find(d, job);

	return there != NULL ? there : peer_new(job, d);
}

void
peer_move(struct taken *taken, struct peer *to)
{
	struct peer *p = taken->peer;
	struct entry *e = taken->entry;
	struct sched_message *m = p->job->message;

	ASSERT(to != p && to->job == p->job);
	count_again(p, e);
	if (e->moves < UINT8_MAX)
		e->moves++;
	entries_append(&to->entries, e);
	if (!to->lined)
		peer_line(to);
	if (!p->lined && p->running == 0)
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
	entry_free(m->sched, taken->entry);
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
