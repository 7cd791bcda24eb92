/* What the cases of the scheduler's benchmark are made of: see sched.c. */
#ifndef TESTS_BENCH_SCHED_BENCH_H
#define TESTS_BENCH_SCHED_BENCH_H

#include "sched/sched.h"
#include "site/shared.h"

/* Destinations that have deliveries at the same time: more would take a
 * gigabyte of shared memory. */
#define BENCH_SITES_MOST 100000

/* Mail that has arrived: see clock.c. */
struct bench_arrivals {
	uint64_t rcpts, ns, began;
};

struct bench {
	struct shared *sites;
	struct sched *s;
	struct sched_entry **flying; /* ring, in the order of selection */
	uint32_t agents, first, count;
	usec_t now;
	uint64_t left; /* decisions still wanted */
	uint32_t next_id;
	/* What each decision took by bench_clock; NULL: only the sum is
	 * wanted. */
	uint32_t *laps;
	uint64_t nlaps, lap_began;
	bool finished; /* a delivery, in this lap */
	struct bench_arrivals arrivals;
};

struct policy {
	uint32_t agents, rcpts_per_entry, window, cost;
};

struct bench_case {
	const char *name, *what;
	void (*setup)(struct bench *b, uint32_t n);
	void (*drain)(struct bench *b);
	uint32_t largest;   /* N; 0: all sizes */
	uint64_t decisions; /* that are enough; 0: the usual number */
};
extern const struct bench_case bench_usual[], bench_hard[];
extern const size_t bench_nusual, bench_nhard;
extern const struct bench_case bench_mix;

/* What is measured: ns of the thread's processor time, or steps (steps.c). */
extern uint64_t (*bench_clock)(void);
uint64_t bench_cpu_ns(void);
uint64_t bench_steps(void);

/* clock.c: mail arrives between decisions in batches of so many messages, at
 * most that, between these two. */
uint32_t bench_batch(uint32_t most);
void bench_arrival_begin(struct bench *b);
void bench_arrival_end(struct bench *b);

/* What decisions took. Of sums, in ns: `spent` has what arrived between the
 * decisions in it, which took `arrivals`. arrival: of one recipient with its
 * share of its message, of those, or, where none came then, of all that the
 * setup has done. */
struct bench_spent {
	uint64_t decisions;
	double spent, arrivals, arrival;
};
/* The case with so many is set up and drained until there are decisions enough;
 * what all of them took by bench_clock, and each, unless laps is NULL. Laps in
 * ns are without arrivals, laps in steps are with them. */
struct bench_spent bench_spend(
    const struct bench_case *c, uint32_t n, uint64_t wanted, uint32_t *laps);
/* The mix becomes one that costs more: tries changes of one. The most. */
uint32_t bench_search(uint32_t tries, uint64_t seed, uint32_t (*cost)(void));
void *bench_need(void *p);
void bench_check(int r);
/* *b is cleared, but for the laps. */
void bench_open(struct bench *b, const struct policy *p);
/* One decision more; false when nothing can be decided. */
bool bench_start(struct bench *b);
/* The delivery that began first ends, and its message if that was its last. */
void bench_finish(struct bench *b);
void bench_drain(struct bench *b);
/* All is delivered, and freed. */
void bench_close(struct bench *b);
/* Recipients of one entry each, from the first of so many destinations on. */
struct bench_rcpts {
	const char *prefix; /* of their names */
	uint32_t n, first, destinations;
};
/* A message that has arrived now, and its recipients, which may come later;
 * total: entries in all, of which the others are never read; 0: no more. */
struct sched_message *bench_message(struct bench *b);
void bench_fill(struct bench *b, struct sched_message *m,
    const struct bench_rcpts *rcpts, uint32_t total);
/* Both. rcpts of one entry each, from the given one of so many destinations on;
 * total: entries in all, of which the others are never read; 0: no more. */
struct sched_message *bench_mail(struct bench *b, const char *prefix,
    uint32_t rcpts, uint32_t first, uint32_t destinations, uint32_t total);

#endif
