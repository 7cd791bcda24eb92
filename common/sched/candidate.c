/* Candidates for preemption: docs/SCHEDULING.md, rule 5.
 *
 * The search goes over the job list behind the current job, segment by segment
 * (segment.c): those that promise most come first, and those that promise no
 * more than the best job found so far are left out. */
#include "sched/parts.h"

/* An age times a total. */
__extension__ typedef unsigned __int128 product;

/* age / total: of a job, or the most that a part of the list can offer. */
struct score {
	uint64_t age;
	uint32_t total; /* UINT32_MAX: there is none */
};

struct search {
	uint32_t most; /* entries that the current job can pay for */
	usec_t now;
	struct job *job; /* the best so far, or NULL */
	struct score best;
};

static const struct score no_score = { 0, UINT32_MAX };

static int
compare(const struct score *a, const struct score *b)
{
	product x = (product)a->age * b->total, y = (product)b->age * a->total;

	return (x > y) - (x < y);
}

/* A total is at least what is needed. A clock that went back makes nobody
 * younger than new. */
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

/* Of the parts in the set, the first of those that offer most, if that is more
 * than the best so far, or as much and in a part that wins ties; else
 * SEGMENT_PARTS. Most parts fail the first comparison, which is quick. */
static unsigned
most_promising(const struct search *x, const struct segment *s, uint32_t set,
    unsigned win_ties, struct score *ret_score)
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
		c = compare(&score, &most);
		if (c < 0 ||
		    (c == 0 && (i >= win_ties || found != SEGMENT_PARTS)))
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

/* As deep as the tree is high. tied: the segment stands before the best job so
 * far, so an equal score in it is better. */
static void
look_at(struct search *x, const struct segment *s, uint32_t left, bool tied)
{
	unsigned win_ties = tied ? SEGMENT_PARTS : 0, i;
	const struct segment *below;
	const struct job *before;
	struct score score;

	while ((i = most_promising(x, s, left, win_ties, &score)) <
	    SEGMENT_PARTS) {
		if (s->leaf) {
			x->job = s->part[i].job;
			x->best = score;
			return;
		}
		left &= ~((uint32_t)1 << i);
		below = s->part[i].below;
		before = x->job;
		look_at(x, below, parts_from(below, 0), i < win_ties);
		if (x->job != before)
			win_ties = i;
	}
}

struct job *
candidate_best(
    const struct job *current, uint32_t most, usec_t now, double *ret_score)
{
	struct search x = { most, now, NULL, no_score };
	const struct job *next = segment_next_job(current);
	const struct segment *s;
	unsigned from;

	if (next == NULL)
		return NULL;
	from = segment_place_of_job(next);
	for (s = next->segment;; s = s->up) {
		look_at(&x, s, parts_from(s, from), false);
		if (s->up == NULL)
			break;
		from = segment_place(s) + 1;
	}
	*ret_score = (double)x.best.age / x.best.total / USEC_PER_SEC;
	return x.job;
}
