/* sched/hull_parts.h - nodes, keys and lines of a hull: inside of hull.c and
 * hull_search.c. */
#ifndef SCHED_HULL_PARTS_H
#define SCHED_HULL_PARTS_H

#include "sched/parts.h"

/* Times stay below, so that differences do not overflow. */
#define FOREVER (INT64_MAX / 2)
#define NEVER   (-FOREVER)
#define NOWHERE (-1) /* no bit */

/* An age times a total. */
__extension__ typedef __int128 product;

/* ---- references ---- */

static inline bool
is_node(struct hull_ref r)
{
	return (r.bits & 1) == 0;
}

static inline struct hull_node *
node_of(struct hull_ref r)
{
	return (struct hull_node *)r.bits;
}

static inline struct job *
job_of(struct hull_ref r)
{
	return (struct job *)(r.bits - 1);
}

static inline struct hull_ref
of_node(struct hull_node *node)
{
	return (struct hull_ref){ (uintptr_t)node };
}

static inline struct hull_ref
of_job(struct job *job)
{
	return (struct hull_ref){ (uintptr_t)job + 1 };
}

/* ---- keys ---- */

struct key {
	uint64_t number;
	uint32_t block;
};

static inline struct key
key_of(const struct hull *h, const struct job *job)
{
	return (struct key){ job->message->number,
		h->shift == 32 ? 0 : job->indexed.needed >> h->shift };
}

static inline unsigned
key_bit(const struct key *key, unsigned bit)
{
	if (bit < HULL_BLOCK)
		return (unsigned)(key->number >> bit) & 1;
	return key->block >> (bit - HULL_BLOCK) & 1;
}

/* The highest bit in which they differ, or NOWHERE. */
static inline int
key_differ(const struct key *a, const struct key *b)
{
	if (a->block != b->block)
		return HULL_BLOCK + 31 - __builtin_clz(a->block ^ b->block);
	if (a->number != b->number)
		return 63 - __builtin_clzll(a->number ^ b->number);
	return NOWHERE;
}

/* A job that has as many bits of the key as possible. */
static inline struct job *
sample(struct hull_ref r, const struct key *key)
{
	while (is_node(r))
		r = node_of(r)->below[key_bit(key, node_of(r)->bit)];
	return job_of(r);
}

/* ---- lines ---- */

static inline uint32_t
least_of(struct hull_ref r)
{
	return is_node(r) ? node_of(r)->least : job_of(r)->indexed.total;
}

/* When the score of the job is 0. */
static inline usec_t
zero_of(const struct job *job)
{
	return job->message->arrival - USEC_PER_SEC;
}

static inline struct job *
best_at(struct hull_ref r, usec_t now)
{
	while (is_node(r))
		r = node_of(r)->below[now > node_of(r)->until];
	return job_of(r);
}

static inline bool
is_earlier(const struct job *a, const struct job *b)
{
	return a->order.label < b->order.label;
}

/* a, the older one, is the better one of the two. If both arrived together that
 * does not depend on the time; else it is true until the score of b is above 0.
 * So there is one order of all jobs at any time, and each pair changes places
 * once at most. */
static inline bool
is_better(const struct job *a, const struct job *b, usec_t now)
{
	usec_t from = zero_of(a), to = zero_of(b);
	product x = b->indexed.total, y = a->indexed.total;

	if (now > to) {
		x *= now - from;
		y *= now - to;
	} else if (from != to) {
		return true;
	}
	return x > y || (x == y && is_earlier(a, b));
}

#endif
