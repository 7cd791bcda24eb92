/* sched/hull.h - the best job of many, at any time: private to common/sched.
 *
 * With its message's arrival a and its total w, a job has the score
 * (t - a + 1 s) / w at the time t: a line. A hull holds jobs in the order of
 * their messages, as the leaves of a binary tree. Of two jobs the older one may
 * be better for some time, then the younger one, if its total is less; never
 * the other way round. Of two that are as good the earlier one in the list is
 * the better one. So it is with the best of two halves of a row: one time
 * in each node says which half has the best job, and nothing has to be done
 * when time passes.
 *
 * Nodes part the numbers of messages at one bit, as in a radix tree: the height
 * is at most the number of bits in which the numbers differ, and no node ever
 * turns. Above those bits stand the ones of a block: a hull holds any number of
 * blocks, each of them the jobs whose need has the same bits from `shift` up.
 *
 * Costs, h being the height, 20 for a million messages that arrive one after
 * the other: the best of all jobs of a block O(h), of those behind a message
 * O(h * h) at most. A job that comes or goes changes those times above it at
 * which it is, or was, the best: O(h) to find them, O(h * h) at most for each.
 */
#ifndef SCHED_HULL_H
#define SCHED_HULL_H

#include "base/base.h"
#include "base/slab.h"

struct job;

/* A node, or a job with the lowest bit set; 0: nothing. */
struct hull_ref {
	uintptr_t bits;
};

struct hull {
	struct hull_ref root;
	struct job *best; /* of hull_best(), of that block, or NULL */
	usec_t until;     /* the last time at which that is so */
	uint32_t block;
	uint8_t shift; /* 32: one block */
	bool moved;    /* jobs that may stand in another order in the list */
};

struct hull_node {
	struct hull_ref below[2]; /* the older half, the younger one */
	usec_t until;   /* the last time at which the older one has the best */
	uint32_t least; /* total */
	/* Keys below differ there, and nowhere above: of the number, from
	 * HULL_BLOCK on of the block. */
	uint8_t bit;
};
#define HULL_BLOCK  64
/* So many nodes stand above each other at most. */
#define HULL_HEIGHT (HULL_BLOCK + 32)

/* Scores compare as age / total. */
struct score {
	uint64_t age;
	uint32_t total; /* UINT32_MAX: there is none */
};

/* A search for the best job in several hulls. */
struct search {
	uint32_t most; /* entries that the current job can pay for */
	usec_t now;
	uint64_t from;   /* number of the first message that counts */
	usec_t oldest;   /* the arrival of that one, or before */
	bool is_latest;  /* no search was made at a later time */
	struct job *job; /* the best so far, or NULL */
	struct score best;
};

/* By job->indexed. False: no memory, nothing changed. */
bool hull_insert(struct hull *h, struct job *job, struct slab *nodes);
void hull_remove(struct hull *h, struct job *job, struct slab *nodes);
/* The best job of the block becomes x->job, if it is better than that one. */
void hull_search(struct hull *h, uint32_t block, struct search *x);
/* The same of all jobs of the block, wherever they stand: O(h), O(1) as long as
 * the best is the same. */
void hull_best(struct hull *h, uint32_t block, struct search *x);
/* Nodes go, *budget of them at most, which is less then: no job is looked at.
 * When some of it is left, the hull is empty. */
void hull_clear(struct hull *h, unsigned *budget, struct slab *nodes);
/* The job with that score becomes x->job, if it is better. Of two that are as
 * good the earlier one in the list is. */
void search_offer(struct search *x, struct job *job, struct score score);
/* Of a job at the time of the search. */
struct score search_score(const struct search *x, const struct job *job);
int score_order(const struct score *a, const struct score *b);
/* Walk the hull and ASSERT that its times are right: how many jobs it has. */
size_t hull_check(const struct hull *h);

#endif
