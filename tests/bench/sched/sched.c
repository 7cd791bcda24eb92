/* tests/bench/sched/sched.c - what a decision of the scheduler costs.
 *
 *	sched [CASE]
 *
 * A decision is one selection with its completion: sched_select(),
 * sched_done(), and the end of the message if that was its last. Each case is
 * set up in four sizes; setting up is not timed, but in `stream`, where mail
 * arrives between the decisions. Sizes alternate, the median of the rounds is
 * printed: case, size, decisions, ns per decision. The line `memory` has bytes
 * per recipient.
 */
#include "sched/sched.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS    3
#define DECISIONS 1000000 /* at least, for each size and round */

struct bench {
	struct local *sites;
	struct sched *s;
	struct sched_entry **flying; /* ring, in the order of selection */
	uint32_t agents, first, count;
	usec_t now;
	uint64_t left; /* decisions still wanted */
	uint32_t next_id;
};

struct policy {
	uint32_t agents, rcpts_per_entry, window, cost;
};

static void *
need(void *p)
{
	if (p == NULL) {
		fprintf(stderr, "sched: out of memory\n");
		exit(111);
	}
	return p;
}

static void
check(int r)
{
	if (r < 0) {
		fprintf(stderr, "sched: %s\n", strerror(-r));
		exit(111);
	}
}

static void
open_bench(struct bench *b, const struct policy *p)
{
	const struct site_params site = {
		.initial_destination_concurrency = p->window,
		.destination_concurrency_limit = p->window,
		.positive = { 1, WINDOW_FIXED },
		.negative = { 1, WINDOW_FIXED },
		.failed_cohort_limit = 1,
	};
	const struct site_backoff backoff = { 300 * USEC_PER_SEC,
		4000 * USEC_PER_SEC, 10 };
	const struct sched_params params = { UINT32_MAX, 10, 20000 };
	const struct sched_transport_params transport = {
		.process_limit = p->agents,
		.destination_recipient_limit = p->rcpts_per_entry,
		.delivery_slot_cost = p->cost,
		.delivery_slot_discount = 50,
		.delivery_slot_loan = 3,
		.minimum_delivery_slots = 3,
		.recipient_limit = 20000,
		.extra_recipient_limit = 1000,
		.recipient_refill_limit = 100,
		.recipient_refill_delay = 5 * USEC_PER_SEC,
	};

	memset(b, 0, sizeof(*b));
	b->agents = p->agents;
	b->flying = need(calloc(p->agents, sizeof(struct sched_entry *)));
	check(local_new(&site, 1, &backoff, 1000, 1, &b->sites));
	check(sched_new(&params, &transport, 1, local_table(b->sites), &b->s));
}

/* One decision more; false when nothing can be decided. */
static bool
start(struct bench *b)
{
	struct sched_entry *e = sched_select(b->s, b->now);

	if (e == NULL)
		return false;
	b->flying[(b->first + b->count++) % b->agents] = e;
	return true;
}

static void
finish(struct bench *b)
{
	struct sched_entry *e = b->flying[b->first];
	struct sched_message *m = e->message;

	b->first = (b->first + 1) % b->agents;
	b->count--;
	sched_done(b->s, e, SITE_DELIVERED, NULL, b->now);
	if (sched_message_waiting(m) == 0 && sched_message_running(m) == 0)
		sched_message_free(&m);
	b->now += 100;
}

static void
drain(struct bench *b)
{
	while (b->left > 0) {
		if (b->count < b->agents && start(b))
			b->left--;
		else if (b->count > 0)
			finish(b);
		else
			break;
	}
}

static void
close_bench(struct bench *b)
{
	b->left = UINT64_MAX;
	drain(b);
	sched_free(&b->s);
	local_free(&b->sites);
	free(b->flying);
}

static struct sched_message *
mail(struct bench *b, const char *prefix, uint32_t rcpts, uint32_t first,
    uint32_t destinations)
{
	struct sched_message *m = NULL;
	struct sched_rcpt rcpt = { 0 };
	char name[64];
	uint32_t i;

	b->next_id++;
	check(sched_message_new(b->s, NULL, b->now, &m));
	for (i = 0; i < rcpts; i++) {
		rcpt.index = i;
		snprintf(name, sizeof(name), "mx%u.%s.example",
		    (first + i) % destinations, prefix);
		check(sched_rcpt_add(m, 0, name, "user@example.org", &rcpt));
	}
	sched_batch_end(m, true, b->now);
	return m;
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

	open_bench(b, &p);
	mail(b, "bulk", n, 0, at_least(n / 10, 1));
}

static void
personal(struct bench *b, uint32_t n)
{
	const struct policy p = { 100, 2, 20, 5 };

	open_bench(b, &p);
	mail(b, "bulk", n, 0, n);
}

static void
singles(struct bench *b, uint32_t n)
{
	const struct policy p = { 100, 50, 20, 5 };
	uint32_t i;

	open_bench(b, &p);
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

	open_bench(b, &p);
	for (i = 0; i < 2 * n; i++)
		mail(b, "full", 1, i, n);
	for (i = 0; i < n; i++)
		if (!start(b))
			abort();
	/* These never end while the rest is timed. */
	b->flying = need(
	    realloc(b->flying, 2 * (n + 1) * sizeof(struct sched_entry *)));
	for (i = 0; i < 100000; i++)
		mail(b, "free", 1, 0, 1);
}

static void
drain_free(struct bench *b)
{
	struct bench one = *b;

	one.flying = b->flying + b->agents;
	one.agents = 1;
	one.first = one.count = 0;
	one.left = b->left < 90000 ? b->left : 90000;
	while (one.left > 0) {
		drain(&one);
		if (one.count > 0)
			finish(&one);
	}
	b->now = one.now;
	b->left = 0;
}

static void
slow(struct bench *b, uint32_t n)
{
	const struct policy p = { 55, 50, 5, 5 };
	uint32_t i;

	open_bench(b, &p);
	for (i = 0; i < n; i++)
		mail(b, "slow", 1, 0, 1);
	for (i = 0; i < 5; i++)
		if (!start(b))
			abort();
	for (i = 0; i < 100000; i++)
		mail(b, "busy", 1, i, 10);
}

/* The slow destination ends a delivery for every hundred others. */
static void
drain_slow(struct bench *b)
{
	uint32_t others = 0;
	struct sched_entry *e;

	b->left = b->left < 90000 ? b->left : 90000;
	while (b->left > 0) {
		if (b->count < b->agents && start(b)) {
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
		finish(b);
	}
}

static void
stream(struct bench *b, uint32_t n)
{
	const struct policy p = { 20, 50, 20, 5 };

	open_bench(b, &p);
	mail(b, "bulk", n, 0, at_least(n / 10, 1));
}

/* A mail of one to three recipients arrives for each five decisions. */
static void
drain_stream(struct bench *b)
{
	uint32_t turn = 0;

	while (b->left > 0) {
		if (b->count < b->agents && start(b)) {
			b->left--;
			if (++turn % 5 == 0)
				mail(b, "small", 1 + turn % 3, turn, 1000);
		} else if (b->count > 0) {
			finish(b);
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

	open_bench(b, &p);
	mail(b, "bulk", n, 0, n);
	for (i = 0; made < n; i++) {
		b->now += 1000;
		mail(b, "mixed", 1 + i * 7 % 40, i, at_least(n / 20, 50));
		made += 1 + i * 7 % 40;
	}
}

static const struct bench_case {
	const char *name, *what;
	void (*setup)(struct bench *b, uint32_t n);
	void (*drain)(struct bench *b);
} cases[] = {
	{ "bulk", "1 message of N recipients, 10 to an entry", bulk, drain },
	{ "personal", "1 message of N recipients, each its own destination",
	    personal, drain },
	{ "singles", "N messages of one recipient", singles, drain },
	{ "full", "N destinations with full windows and one free", full,
	    drain_free },
	{ "slow", "N jobs blocked behind one slow destination, ten others busy",
	    slow, drain_slow },
	{ "stream",
	    "small mail past bulk mail of N recipients, arrivals "
	    "included",
	    stream, drain_stream },
	{ "mixed", "mail of 1 to 40 recipients, N in all, past bulk mail of N",
	    mixed, drain },
};
static const uint32_t sizes[] = { 1000, 10000, 100000, 1000000 };
#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Set up and drained until there are decisions enough; ns per decision. */
static double
measure(const struct bench_case *c, uint32_t n)
{
	uint64_t done = 0, wanted = DECISIONS / 4, before;
	double spent = 0, began;
	struct bench b;

	while (done < wanted) {
		c->setup(&b, n);
		before = b.left = wanted - done;
		began = seconds();
		c->drain(&b);
		spent += seconds() - began;
		done += c->drain == drain_free || c->drain == drain_slow
		    ? (before < 90000 ? before : 90000)
		    : before - b.left;
		close_bench(&b);
	}
	return spent * 1e9 / (double)done;
}

static int
by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void
run(const struct bench_case *c)
{
	double ns[NSIZES][ROUNDS];
	size_t i, round;

	for (round = 0; round < ROUNDS; round++)
		for (i = 0; i < NSIZES; i++)
			ns[i][round] = measure(c, sizes[i]);
	for (i = 0; i < NSIZES; i++) {
		qsort(ns[i], ROUNDS, sizeof(double), by_value);
		printf("%s\t%u\t%.1f\t%s\n", c->name, sizes[i],
		    ns[i][ROUNDS / 2], c->what);
	}
	fflush(stdout);
}

static size_t
in_use(void)
{
	struct mallinfo2 now = mallinfo2();

	return now.uordblks + now.hblkhd;
}

static void
memory(const char *name, void (*setup)(struct bench *b, uint32_t n))
{
	size_t before = in_use(), bytes;
	struct bench b;

	setup(&b, 1000000);
	bytes = in_use() - before;
	printf("memory\t%s\t%.1f\n", name, (double)bytes / 1e6);
	close_bench(&b);
}

int
main(int argc, char *argv[])
{
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (argc < 2 || strcmp(argv[1], cases[i].name) == 0)
			run(&cases[i]);
	if (argc < 2 || strcmp(argv[1], "memory") == 0) {
		memory("1000000 recipients in 100000 entries", bulk);
		memory("1000000 messages of one recipient", singles);
	}
	return 0;
}
