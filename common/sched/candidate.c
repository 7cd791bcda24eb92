/* Candidates for preemption: docs/SCHEDULING.md, rule 5.
 *
 * Jobs of one total and octave are in order of arrival, so the first that may
 * is the best. Nothing is done when destinations open and close: a job that is
 * found blocked when it is looked at is parked, that is, replaced by its peers
 * in the ranks of their destinations; of each destination that is open, the
 * first of each class and octave is among the heads. */
#include "sched/parts.h"

#include <errno.h>
#include <stdlib.h>

#define PEERS_LOOKED_AT 8  /* before a job is parked */
#define HEADS_LOOKED_AT 16 /* before the current job is unparked */

static int
class_compare(const struct total_class *a, const struct total_class *b)
{
	return label_order(a->total, b->total);
}

/* Ties of age: the earlier in the list. */
static int
age_compare(const struct job *a, const struct job *b)
{
	usec_t at_a = a->message->arrival, at_b = b->message->arrival;

	if (at_a != at_b)
		return at_a < at_b ? -1 : 1;
	return label_order(a->order.label, b->order.label);
}

static int
head_compare(const struct rank *a, const struct rank *b)
{
	int r = age_compare(a->peer->job, b->peer->job);

	return r != 0 ? r
		      : label_order((uintptr_t)a->peer->destination,
			    (uintptr_t)b->peer->destination);
}

static bool
same_class(const struct rank *a, const struct rank *b)
{
	return a != NULL && b != NULL &&
	    a->peer->job->class == b->peer->job->class &&
	    a->peer->job->octave == b->peer->job->octave;
}

static int
rank_compare(const struct rank *a, const struct rank *b)
{
	const struct job *x = a->peer->job, *y = b->peer->job;
	int r = label_order(x->class->total, y->class->total);

	if (r == 0)
		r = label_order(x->octave, y->octave);
	return r != 0 ? r : age_compare(x, y);
}

TREE_GENERATE(class_tree, total_class, link, class_compare)
TREE_GENERATE(free_tree, job, free, age_compare)
TREE_GENERATE(head_tree, rank, heads, head_compare)
TREE_GENERATE(rank_tree, rank, link, rank_compare)

/* 1 for 1, 2 for 2 and 3, 3 for 4 to 7, …; 0 for 0. */
static uint8_t
octave_of(uint32_t entries)
{
	return entries == 0 ? 0 : (uint8_t)(32 - __builtin_clz(entries));
}

static struct total_class *
class_new(struct transport *t, uint32_t total)
{
	uint8_t octaves = (uint8_t)(octave_of(total) + 1);
	struct total_class *c =
	    calloc(1, sizeof(*c) + octaves * sizeof(c->octave[0]));

	if (c == NULL)
		return NULL;
	c->total = total;
	c->octaves = octaves;
	RB_INSERT(class_tree, &t->classes, c);
	return c;
}

void
class_leave(struct job *job)
{
	struct total_class *c = job->class;

	ASSERT(job->index == INDEX_NONE);
	job->class = NULL;
	if (c == NULL || --c->users > 0)
		return;
	RB_REMOVE(class_tree, &job->transport->classes, c);
	free(c);
}

int
class_want(struct job *job, uint32_t total)
{
	struct total_class key, *c = NULL;
	struct transport *t = job->transport;

	if (t->params.delivery_slot_cost >= 2 && total > 0) {
		key.total = total;
		c = RB_FIND(class_tree, &t->classes, &key);
		if (c == NULL)
			c = class_new(t, total);
		if (c == NULL)
			return -ENOMEM;
		c->users++;
	}
	candidate_drop(job);
	class_leave(job);
	job->class = c;
	return 0;
}

static struct class_octave *
octave(const struct job *job)
{
	return &job->class->octave[job->octave];
}

static void
head_in(struct rank *r)
{
	r->head = true;
	RB_INSERT(head_tree, &octave(r->peer->job)->heads, r);
}

static void
head_out(struct rank *r)
{
	RB_REMOVE(head_tree, &octave(r->peer->job)->heads, r);
	r->head = false;
}

static void
first_in(struct rank *r)
{
	struct destination *d = r->peer->destination;

	if (d->open)
		head_in(r);
	else
		LIST_INSERT_HEAD(&d->aside, r, aside);
}

static void
first_out(struct rank *r)
{
	if (r->head)
		head_out(r);
	else
		LIST_REMOVE(r, aside);
}

/* Ranks are of a pool, so that a selection does not meet a failure half way. */
static bool
reserve(struct sched *s, uint32_t count)
{
	struct rank *r;

	for (; s->nspare_ranks < count; s->nspare_ranks++) {
		r = malloc(sizeof(*r));
		if (r == NULL)
			return false;
		SLIST_INSERT_HEAD(&s->spare_ranks, r, spare);
	}
	return true;
}

static void
rank_in(struct peer *p)
{
	struct sched *s = p->job->transport->sched;
	struct rank_tree *ranks = &p->destination->ranks;
	struct rank *r = SLIST_FIRST(&s->spare_ranks), *next;

	ASSERT(r != NULL);
	SLIST_REMOVE_HEAD(&s->spare_ranks, spare);
	s->nspare_ranks--;
	r->peer = p;
	r->head = false;
	p->rank = r;
	RB_INSERT(rank_tree, ranks, r);
	if (same_class(r, RB_PREV(rank_tree, ranks, r)))
		return;
	next = RB_NEXT(rank_tree, ranks, r);
	if (same_class(r, next))
		first_out(next);
	first_in(r);
}

void
candidate_forget_peer(struct peer *p)
{
	struct sched *s = p->job->transport->sched;
	struct rank_tree *ranks = &p->destination->ranks;
	struct rank *r = p->rank, *next;

	if (r == NULL)
		return;
	next = RB_NEXT(rank_tree, ranks, r);
	if (!same_class(r, RB_PREV(rank_tree, ranks, r))) {
		first_out(r);
		if (same_class(r, next))
			first_in(next);
	}
	RB_REMOVE(rank_tree, ranks, r);
	p->rank = NULL;
	SLIST_INSERT_HEAD(&s->spare_ranks, r, spare);
	s->nspare_ranks++;
}

void
candidate_heads(struct destination *d)
{
	struct rank *r;

	while ((r = LIST_FIRST(&d->aside)) != NULL) {
		LIST_REMOVE(r, aside);
		head_in(r);
	}
}

/* The destination has closed since the rank came: aside until that opens. */
static void
put_aside(struct rank *r)
{
	head_out(r);
	LIST_INSERT_HEAD(&r->peer->destination->aside, r, aside);
}

static void
rank_peers(struct job *job, bool in)
{
	struct order_node *n;
	struct peer *p;

	TAILQ_FOREACH (n, &job->ring, link) {
		p = ORDER_OF(n, struct peer, ring);
		if (in)
			rank_in(p);
		else
			candidate_forget_peer(p);
	}
}

static uint8_t
octave_now(const struct job *job)
{
	return job->selected == 0 ? 0 : octave_of(job_needed(job));
}

/* A class is among those with jobs that have begun, or not any more. */
static void
count_begun(struct job *job, int change)
{
	struct total_class *c = job->class;

	if (job->octave == 0)
		return;
	if (c->begun == 0)
		LIST_INSERT_HEAD(&job->transport->begun, c, with_begun);
	c->begun = (uint32_t)((int64_t)c->begun + change);
	if (c->begun == 0)
		LIST_REMOVE(c, with_begun);
}

/* For INDEX_PARKED there are ranks enough. */
static void
index_as(struct job *job, enum job_index index)
{
	if (job->index != INDEX_NONE)
		count_begun(job, -1);
	if (job->index == INDEX_FREE)
		RB_REMOVE(free_tree, &octave(job)->free, job);
	else if (job->index == INDEX_PARKED)
		rank_peers(job, false);
	job->index = (uint8_t)index;
	if (index == INDEX_NONE)
		return;
	job->octave = octave_now(job);
	count_begun(job, 1);
	if (index == INDEX_FREE)
		RB_INSERT(free_tree, &octave(job)->free, job);
	else
		rank_peers(job, true);
}

void
candidate_drop(struct job *job)
{
	if (job->index != INDEX_NONE)
		index_as(job, INDEX_NONE);
}

void
candidate_update(struct job *job)
{
	if (job->class == NULL || !job->listed || job->waiting == 0 ||
	    !LIST_EMPTY(&job->children)) {
		candidate_drop(job);
		return;
	}
	if (job->index == INDEX_NONE)
		index_as(job, INDEX_FREE);
	else if (job->octave != octave_now(job))
		index_as(job, job->index);
}

/* Not asked for here: whether it is a blocker. */
static bool
eligible(const struct job *job, const struct job *current, uint32_t most)
{
	return job != current && job_needed(job) <= most;
}

static bool
seen_open(struct job *job)
{
	struct order_node *n = &job->turn->ring;
	struct peer *p;
	int i;

	for (i = 0; i < PEERS_LOOKED_AT; i++) {
		p = ORDER_OF(n, struct peer, ring);
		if (p->destination->open)
			return true;
		n = order_next(&job->ring, n);
		if (n == &job->turn->ring)
			break;
	}
	return false;
}

/* Without memory it stays as it is, and waits for a better time. */
static void
park(struct job *job)
{
	if (reserve(job->transport->sched, job->peers))
		index_as(job, INDEX_PARKED);
}

static struct job *
best_free(struct class_octave *o, const struct job *current, uint32_t most)
{
	struct job *job, *next;

	for (job = RB_MIN(free_tree, &o->free); job != NULL; job = next) {
		next = RB_NEXT(free_tree, &o->free, job);
		if (job == current)
			continue;
		if (!seen_open(job))
			park(job);
		else if (eligible(job, current, most))
			return job;
	}
	return NULL;
}

/* The first of one destination that may, behind the one that may not. */
static struct job *
best_behind(struct rank *head, const struct job *current, uint32_t most)
{
	struct rank *r = head;

	while (same_class(head, r = RB_NEXT(rank_tree, , r)))
		if (eligible(r->peer->job, current, most))
			return r->peer->job;
	return NULL;
}

static struct job *
best_head(struct class_octave *o, struct job *current, uint32_t most,
    struct job *best)
{
	struct rank *head, *next;
	struct job *job;
	int own = 0;

	for (head = RB_MIN(head_tree, &o->heads); head != NULL; head = next) {
		next = RB_NEXT(head_tree, &o->heads, head);
		if (!head->peer->destination->open) {
			put_aside(head);
			continue;
		}
		job = head->peer->job;
		if (best != NULL && age_compare(best, job) < 0)
			break;
		if (eligible(job, current, most)) {
			best = job;
			break;
		}
		own += job == current;
		job = best_behind(head, current, most);
		if (job != NULL && (best == NULL || age_compare(job, best) < 0))
			best = job;
	}
	if (own > HEADS_LOOKED_AT)
		index_as(current, INDEX_FREE);
	return best;
}

static struct job *
best_of_octave(struct class_octave *o, struct job *current, uint32_t most)
{
	struct job *job = NULL;

	if (!RB_EMPTY(&o->free))
		job = best_free(o, current, most);
	if (!RB_EMPTY(&o->heads))
		job = best_head(o, current, most, job);
	return job;
}

/* Of those that have begun; they need less than their total. */
static struct job *
best_begun(struct total_class *c, struct job *current, uint32_t most)
{
	struct job *best = NULL, *job;
	uint8_t i;

	for (i = 1; i < c->octaves && (uint32_t)1 << (i - 1) <= most; i++) {
		job = best_of_octave(&c->octave[i], current, most);
		if (job != NULL && (best == NULL || age_compare(job, best) < 0))
			best = job;
	}
	return best;
}

static double
score_of(usec_t arrival, uint32_t total, usec_t now)
{
	return (double)(now - arrival + USEC_PER_SEC) / total;
}

/* The best so far. */
struct contest {
	struct job *job;
	double score;
	usec_t now;
};

/* Ties: the earlier in the list. */
static void
compete(struct contest *best, struct job *job)
{
	double score;

	if (job == NULL)
		return;
	score = score_of(job->message->arrival, job->total, best->now);
	if (best->job != NULL &&
	    (score < best->score ||
		(score == best->score &&
		    job->order.label > best->job->order.label)))
		return;
	best->job = job;
	best->score = score;
}

struct job *
candidate_best(
    struct job *current, uint32_t most, usec_t now, double *ret_score)
{
	struct transport *t = current->transport;
	usec_t oldest = TAILQ_FIRST(&t->sched->messages)->arrival;
	struct contest best = { .now = now };
	struct total_class *c, *next;

	for (c = LIST_FIRST(&t->begun); c != NULL; c = next) {
		next = LIST_NEXT(c, with_begun);
		compete(&best, best_begun(c, current, most));
	}
	RB_FOREACH (c, class_tree, &t->classes) {
		if (c->total > most ||
		    (best.job != NULL &&
			score_of(oldest, c->total, now) < best.score))
			break;
		compete(&best, best_of_octave(&c->octave[0], current, most));
	}
	*ret_score = best.score / USEC_PER_SEC;
	return best.job;
}
