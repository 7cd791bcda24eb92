/* Candidates for preemption: docs/SCHEDULING.md, rule 5.
 *
 * Jobs that never moved are found in hulls (index.c), those that have moved in
 * segments (segment.c). There the search goes over the list behind the current
 * job, segment by segment, and asks the shelf of each that has a whole one
 * (shelf.c): the one that promises most comes first, and those that promise
 * less than the best job found so far are left out. */
#include "sched/parts.h"

/* A total is at least what is needed. */
static struct score
score_of(const struct search *x, const struct segment_part *p)
{
	uint32_t unbegun = p->unbegun <= x->most ? p->unbegun : UINT32_MAX;
	uint32_t begun = p->needed <= x->most ? p->begun : UINT32_MAX;
	usec_t since = p->since < x->now ? p->since : x->now;

	return (struct score){ (uint64_t)(x->now - since) + USEC_PER_SEC,
		unbegun < begun ? unbegun : begun };
}

/* Seconds per entry, or somewhat less. */
static double
not_above(const struct score *score)
{
	return (double)score->age / score->total * (1 - 1e-12);
}

/* Of the parts in the set, the first of those that offer most, if that is as
 * much as the best so far; else SEGMENT_PARTS. Most parts fail the first
 * comparison, which is quick. */
static unsigned
most_promising(const struct search *x, const struct segment *s, uint32_t set,
    struct score *ret_score)
{
	unsigned i, found = SEGMENT_PARTS;
	struct score score, most = x->best;
	double least = not_above(&most);
	int c;

	for (; set != 0; set &= set - 1) {
		i = (unsigned)__builtin_ctz(set);
		score = score_of(x, &s->part[i]);
		if ((double)score.age < least * score.total ||
		    score.total == UINT32_MAX)
			continue;
		c = score_order(&score, &most);
		if (c < 0 || (c == 0 && found != SEGMENT_PARTS))
			continue;
		most = score;
		least = not_above(&most);
		found = i;
	}
	*ret_score = most;
	return found;
}

static uint32_t
parts_from(const struct segment *s, unsigned from)
{
	return (((uint32_t)1 << s->n) - 1) >> from << from;
}

static void
ask_shelf(struct search *x, const struct segment_part *p)
{
	x->oldest = p->since < x->now ? p->since : x->now;
	index_best(&p->below->shelf->index, x);
}

static bool
may_have_best(const struct search *x, const struct segment_part *p)
{
	struct score score = score_of(x, p);

	return score.total != UINT32_MAX &&
	    (double)score.age >= not_above(&x->best) * score.total;
}

static void look_at(struct search *x, const struct segment *s, uint32_t left);

static void
look_below(struct search *x, const struct segment_part *p)
{
	const struct segment *s = p->below;

	if (shelf_is_whole(s->shelf))
		ask_shelf(x, p);
	else
		look_at(x, s, parts_from(s, 0));
}

/* The best promise comes first: mostly nothing else has to be looked at then.
 * As deep as the tree is high. */
static void
look_at(struct search *x, const struct segment *s, uint32_t left)
{
	struct score score;
	unsigned i = most_promising(x, s, left, &score);

	if (i == SEGMENT_PARTS)
		return;
	if (s->leaf) {
		search_offer(x, s->part[i].job, score);
		return;
	}
	look_below(x, &s->part[i]);
	for (left &= ~((uint32_t)1 << i); left != 0; left &= left - 1) {
		i = (unsigned)__builtin_ctz(left);
		if (may_have_best(x, &s->part[i]))
			look_below(x, &s->part[i]);
	}
}

static void
search_segments(struct search *x, const struct job *current)
{
	const struct job *next = segment_next_job(current);
	const struct segment *s;
	unsigned from;

	if (next == NULL)
		return;
	from = segment_place_of_job(next);
	/* Up to where a part of the node is not behind the current job. */
	for (s = next->segment; from == 0 && s->up != NULL; s = s->up)
		from = segment_place(s);
	for (;; s = s->up) {
		look_at(x, s, parts_from(s, from));
		if (s->up == NULL)
			break;
		from = segment_place(s) + 1;
	}
}

/* Every job behind the current one: after a clock went back, scores are no
 * lines. */
static void
search_list(struct search *x, const struct job *current)
{
	struct order_node *n = TAILQ_NEXT(&current->order, link);
	struct job *job;

	for (; n != NULL; n = TAILQ_NEXT(n, link)) {
		job = ORDER_OF(n, struct job, order);
		if (job_needed(job) > 0 && job_needed(job) <= x->most &&
		    !job_has_children(job))
			search_offer(x, job, search_score(x, job));
	}
}

/* The first job behind the current one that never moved, or NULL. */
static const struct job *
first_unmoved(const struct job *current)
{
	struct job *job = RB_ROOT(&current->transport->by_arrival);
	const struct job *found = NULL;

	while (job != NULL)
		if (job->order.label > current->order.label) {
			found = job;
			job = RB_LEFT(job, arrival);
		} else {
			job = RB_RIGHT(job, arrival);
		}
	return found;
}

static void
search_index(struct search *x, const struct job *current)
{
	const struct job *first = current;

	if (current->moved)
		first = first_unmoved(current);
	if (first == NULL)
		return;
	x->from = first->message->number + (first == current);
	x->oldest = first->message->arrival;
	index_search(&current->transport->unmoved, x);
}

struct job *
candidate_best(
    const struct job *current, uint32_t most, usec_t now, double *ret_score)
{
	const struct message_list *all = &current->transport->sched->messages;
	struct search x = {
		.most = most, .now = now, .best = { 0, UINT32_MAX }
	};

	if (TAILQ_LAST(all, message_list)->arrival > now) {
		search_list(&x, current);
	} else {
		x.is_latest = now >= current->transport->searched;
		if (x.is_latest)
			current->transport->searched = now;
		index_settle(current->transport);
		search_index(&x, current);
		if (current->transport->segments != NULL) {
			search_segments(&x, current);
			shelf_work(current->transport);
		}
	}
	if (x.job != NULL)
		*ret_score = (double)x.best.age / x.best.total / USEC_PER_SEC;
	return x.job;
}
