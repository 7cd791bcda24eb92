/* The cases of the usual kinds, and how one is measured. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
mail(struct bench *b, const char *prefix, uint32_t rcpts, uint32_t first,
    uint32_t destinations)
{
	(void)bench_mail(b, prefix, rcpts, first, destinations, 0);
}

static uint32_t
at_least(uint32_t n, uint32_t least)
{
	return n < least ? least : n;
}

/* ---- the cases: set up; what is timed is draining `left` decisions ---- */

static void
bulk(struct bench *b, uint32_t n)
{
	const struct policy p = { 100, 10, 20, 5 };

	bench_open(b, &p);
	mail(b, "bulk", n, 0, at_least(n / 10, 1));
}

static void
personal(struct bench *b, uint32_t n)
{
	const struct policy p = { 100, 2, 20, 5 };

	bench_open(b, &p);
	mail(b, "bulk", n, 0, n);
}

static void
singles(struct bench *b, uint32_t n)
{
	const struct policy p = { 100, 50, 20, 5 };
	uint32_t i;

	bench_open(b, &p);
	for (i = 0; i < n; i++)
		mail(b, "single", 1, i, at_least(n / 100, 1));
}

/* Each full destination has its delivery, and mail that waits and is older
 * than all that can go. */
static void
full(struct bench *b, uint32_t n)
{
	const struct policy p = { n + 1, 50, 1, 0 };
	uint32_t i;

	bench_open(b, &p);
	for (i = 0; i < 2 * n; i++)
		mail(b, "full", 1, i, n);
	for (i = 0; i < n; i++)
		if (!bench_start(b))
			abort();
	/* These never end while the rest is timed. */
	b->flying = bench_need(
	    realloc(b->flying, 2 * (n + 1) * sizeof(struct sched_entry *)));
	for (i = 0; i < 100000; i++)
		mail(b, "free", 1, 0, 1);
}

static void
drain_free(struct bench *b)
{
	struct bench one = *b;
	uint64_t wanted = b->left < 90000 ? b->left : 90000;

	one.flying = b->flying + b->agents;
	one.agents = 1;
	one.first = one.count = 0;
	one.left = wanted;
	while (one.left > 0) {
		bench_drain(&one);
		if (one.count > 0)
			bench_finish(&one);
	}
	b->now = one.now;
	b->left -= wanted;
}

static void
slow(struct bench *b, uint32_t n)
{
	const struct policy p = { 55, 50, 5, 5 };
	uint32_t i;

	bench_open(b, &p);
	for (i = 0; i < n; i++)
		mail(b, "slow", 1, 0, 1);
	for (i = 0; i < 5; i++)
		if (!bench_start(b))
			abort();
	for (i = 0; i < 100000; i++)
		mail(b, "busy", 1, i, 10);
}

/* The slow destination ends a delivery for every hundred others. */
static void
drain_slow(struct bench *b)
{
	uint64_t rest = b->left < 90000 ? 0 : b->left - 90000;
	uint32_t others = 0;
	struct sched_entry *e;

	b->left -= rest;
	while (b->left > 0) {
		if (b->count < b->agents && bench_start(b)) {
			b->left--;
			continue;
		}
		e = b->flying[b->first];
		if (strstr(e->destination, "slow") != NULL &&
		    ++others % 100 != 0) { /* goes on: to the end of the ring */
			b->first = (b->first + 1) % b->agents;
			b->flying[(b->first + b->count - 1) % b->agents] = e;
			e = b->flying[b->first];
			if (strstr(e->destination, "slow") != NULL)
				continue;
		}
		bench_finish(b);
	}
	b->left += rest;
}

static void
stream(struct bench *b, uint32_t n)
{
	const struct policy p = { 20, 50, 20, 5 };

	bench_open(b, &p);
	mail(b, "bulk", n, 0, at_least(n / 10, 1));
}

/* The mail that has come in the last so many turns. */
static void
arrive(struct bench *b, uint32_t turn, uint32_t turns)
{
	uint32_t t;

	bench_arrival_begin(b);
	for (t = turn - turns + 5; t <= turn; t += 5)
		mail(b, "small", 1 + t % 3, t, 1000);
	bench_arrival_end(b);
}

/* A mail of one to three recipients arrives for each five decisions, in batches
 * that are there before the bulk mail of 1000 recipients is through. */
static void
drain_stream(struct bench *b)
{
	uint32_t turn = 0, turns = 5 * bench_batch(16);

	while (b->left > 0) {
		if (b->count < b->agents && bench_start(b)) {
			b->left--;
			if (++turn % turns == 0)
				arrive(b, turn, turns);
		} else if (b->count > 0) {
			bench_finish(b);
		} else {
			break;
		}
	}
}

/* Mail of 1 to 40 recipients waits behind bulk mail: who passes? */
static void
mixed(struct bench *b, uint32_t n)
{
	const struct policy p = { 20, 50, 20, 5 };
	uint32_t i, made = 0;

	bench_open(b, &p);
	mail(b, "bulk", n, 0, n);
	for (i = 0; made < n; i++) {
		b->now += 1000;
		mail(b, "mixed", 1 + i * 7 % 40, i, at_least(n / 20, 50));
		made += 1 + i * 7 % 40;
	}
}

const struct bench_case bench_usual[] = {
	{ "bulk", "1 message of N recipients, 10 to an entry", bulk,
	    bench_drain, 0, 0 },
	{ "personal", "1 message of N recipients, each its own destination",
	    personal, bench_drain, 0, 0 },
	{ "singles", "N messages of one recipient", singles, bench_drain, 0,
	    0 },
	{ "full",
	    "N destinations with full windows and one free, 100000 at most",
	    full, drain_free, BENCH_SITES_MOST, 0 },
	{ "slow", "N jobs blocked behind one slow destination, ten others busy",
	    slow, drain_slow, 0, 0 },
	{ "stream",
	    "small mail past bulk mail of N recipients, arrivals "
	    "included",
	    stream, drain_stream, 0, 0 },
	{ "mixed", "mail of 1 to 40 recipients, N in all, past bulk mail of N",
	    mixed, bench_drain, 0, 0 },
};
const size_t bench_nusual = sizeof(bench_usual) / sizeof(bench_usual[0]);

void
bench_close(struct bench *b)
{
	b->laps = NULL;
	b->left = UINT64_MAX;
	bench_drain(b);
	sched_free(&b->s);
	shared_free(&b->sites);
	free(b->flying);
}

struct bench_spent
bench_spend(
    const struct bench_case *c, uint32_t n, uint64_t wanted, uint32_t *laps)
{
	struct bench_spent sum = { 0 };
	struct bench_arrivals all = { 0 };
	uint64_t done = 0, before, began;
	double setup = 0, setup_rcpts = 0;
	struct bench b;

	if (c->decisions > 0 && wanted > c->decisions)
		wanted = c->decisions;
	while (done < wanted) {
		began = bench_clock();
		c->setup(&b, n);
		setup += (double)(bench_clock() - began);
		setup_rcpts += (double)b.arrivals.rcpts;
		b.arrivals = (struct bench_arrivals){ 0 };
		before = b.left = wanted - done;
		b.laps = laps == NULL ? NULL : laps + done;
		began = b.lap_began = bench_clock();
		c->drain(&b);
		sum.spent += (double)(bench_clock() - began);
		done += before - b.left;
		all.rcpts += b.arrivals.rcpts;
		all.ns += b.arrivals.ns;
		bench_close(&b);
	}
	sum.decisions = done;
	sum.arrivals = (double)all.ns;
	sum.arrival = all.rcpts > 0 ? (double)all.ns / (double)all.rcpts
				    : setup / setup_rcpts;
	return sum;
}
