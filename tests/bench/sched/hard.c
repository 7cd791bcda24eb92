/* Queues that are hard to decide about: many jobs that may not preempt, or may
 * not go, so that what looks at one after the other takes long. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY 2 /* recipients */

static uint32_t
mail_to_own(struct bench *b, uint32_t i, uint32_t entries, uint32_t total)
{
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "own%u", i);
	(void)bench_mail(b, prefix, entries * ENTRY, 0, 1, total);
	return entries;
}

static void
start_all(struct bench *b, uint32_t count)
{
	for (; count > 0; count--)
		if (!bench_start(b))
			abort();
}

/* Each is full: what ends is what is selected next. */
static void
drain_in_turn(struct bench *b)
{
	while (b->left > 0) {
		bench_finish(b);
		if (!bench_start(b))
			break;
		b->left--;
	}
}

/* ---- begun messages ---- */

/* Each message has a destination of its own, and is half delivered. */
static void
half(struct bench *b, uint32_t n)
{
	const struct policy p = { n + 1, ENTRY, 1, 5 };
	uint32_t i;

	bench_open(b, &p);
	for (i = 0; i < n; i++) {
		b->now += 1000;
		mail_to_own(b, i, 8, 30 + i);
	}
	start_all(b, n);
	b->left = 2 * (uint64_t)n;
	drain_in_turn(b);
}

/* The current job can pay for 10000 entries; each of the others has begun, can
 * go, and needs some more. */
static void
dear(struct bench *b, uint32_t n)
{
	const struct policy p = { n + 20, ENTRY, 20, 5 };
	uint32_t i;

	bench_open(b, &p);
	(void)bench_mail(b, "bulk", 50000 * ENTRY, 0, 1, 0);
	for (i = 0; i < n; i++) {
		b->now += 1000;
		mail_to_own(b, i, 2, 10010 + i % 6000);
	}
	start_all(b, n + 20);
	while (b->count > 10)
		bench_finish(b);
	sched_set_process_limit(b->s, 0, 10);
}

/* Messages of 12 entries that need 11 stand among messages of 20 that need 8;
 * the current one can pay for 10: each part of the list seems to offer more
 * than the best job does. */
static void
misled(struct bench *b, uint32_t n)
{
	const struct policy p = { 13 * n / 2 + 20, ENTRY, 20, 5 };
	uint32_t i;

	bench_open(b, &p);
	(void)bench_mail(b, "bulk", 50 * ENTRY, 0, 1, 0);
	b->now += 1000 * USEC_PER_SEC;
	for (i = 0; i < n; i++)
		mail_to_own(b, i, i % 2 == 0 ? 1 : 12, i % 2 == 0 ? 12 : 20);
	start_all(b, n / 2 * 13 + 20);
	b->now += 1000 * USEC_PER_SEC;
}

/* Each of N begun messages has the best score at some time, the older and
 * larger ones first: their totals grow as the squares of their ages. All can
 * go, and each decision is one of theirs or of the bulk mail's. */
static void
even(struct bench *b, uint32_t n)
{
	const struct policy p = { 2 * n + 20, ENTRY, 20, 5 };
	uint64_t age;
	uint32_t i;

	bench_open(b, &p);
	(void)bench_mail(b, "bulk", 50000 * ENTRY, 0, 1, 0);
	for (i = 0; i < n; i++) {
		b->now += 1000;
		age = n - i;
		mail_to_own(b, i, 4, (uint32_t)(40 + age * age / n * 4));
	}
	start_all(b, n + 20);
	b->now += 20 * USEC_PER_SEC;
}

/* As long as the bulk mail is current. */
static void
drain_misled(struct bench *b)
{
	uint64_t rest = b->left < 20 ? 0 : b->left - 20;

	b->left -= rest;
	drain_in_turn(b);
	b->left += rest;
}

/* The messages and the bulk mail in turn. */
static void
drain_even(struct bench *b)
{
	uint64_t most = b->left < 40000 ? b->left : 40000;
	uint64_t rest = b->left - most;

	b->left = most;
	drain_in_turn(b);
	b->left += rest;
}

static void
drain_dear(struct bench *b)
{
	uint64_t rest = b->left < 45000 ? 0 : b->left - 45000;

	b->left -= rest;
	bench_drain(b);
	b->left += rest;
}

/* ---- blocked messages ---- */

#define HELD 5 /* deliveries that do not end */

/* The destination `slow` is full, and there is bulk mail of 20000 entries. */
static void
open_slow(struct bench *b)
{
	const struct policy p = { HELD + 50, ENTRY, HELD, 5 };
	uint32_t i;

	bench_open(b, &p);
	for (i = 0; i < HELD; i++)
		(void)bench_mail(b, "slow", 1, 0, 1, 0);
	start_all(b, HELD);
	(void)bench_mail(b, "bulk", 20000 * ENTRY, 0, 10, 5000000);
}

static void
blocked(struct bench *b, uint32_t n)
{
	uint32_t i;

	open_slow(b);
	for (i = 0; i < n; i++) {
		b->now += 1000;
		(void)bench_mail(b, "slow", 1, 0, 1, 15 + i);
	}
}

static void
first(struct bench *b, uint32_t n)
{
	uint32_t i;

	open_slow(b);
	for (i = 0; i < n; i++)
		(void)bench_mail(b, "slow", 1 + i % 5, 0, 5, 0);
}

static void
drain_up_to(struct bench *b, uint64_t most)
{
	struct bench one = *b;
	uint64_t wanted = b->left < most ? b->left : most;

	one.agents = b->agents - HELD;
	one.flying =
	    bench_need(calloc(one.agents, sizeof(struct sched_entry *)));
	one.first = one.count = 0;
	one.left = wanted;
	bench_drain(&one);
	b->left -= wanted - one.left;
	one.laps = NULL;
	while (one.count > 0)
		bench_finish(&one);
	b->now = one.now;
	free(one.flying);
}

static void
drain_bulk(struct bench *b)
{
	drain_up_to(b, 20000);
}

static void
drain_first(struct bench *b)
{
	drain_up_to(b, 500);
}

/* ---- messages that have preempted ---- */

static void
decide(struct bench *b, uint32_t count)
{
	for (; count > 0; count--) {
		start_all(b, 1);
		bench_finish(b);
	}
}

/* Deliveries of so many entries run on until they are asked to end. */
static void
hold(struct bench *b, struct sched_entry *held[HELD])
{
	uint32_t i;

	for (i = 0; i < HELD; i++) {
		start_all(b, 1);
		held[i] = b->flying[(b->first + --b->count) % b->agents];
	}
}

/* The message preempts the current one and waits for `slow`; the current one
 * has paid for it in the end. */
static void
pass_current(struct bench *b, struct sched_message *m, uint32_t needed)
{
	bench_fill(b, m, &(struct bench_rcpts){ "slow", 1, 0, 1 }, needed);
	decide(b, 2 * needed);
}

/* The price of a slot becomes 10000 entries: candidates are looked for, and
 * found, at each selection, but may not preempt for long. */
static void
make_dear(struct bench *b)
{
	const struct sched_params params = { UINT32_MAX, 10, 20000 };
	const struct sched_transport_params transport = {
		.process_limit = b->agents,
		.destination_recipient_limit = ENTRY,
		.delivery_slot_cost = 10000,
		.delivery_slot_discount = 50,
		.delivery_slot_loan = 1,
		.recipient_limit = 20000,
		.recipient_refill_limit = 100,
	};

	bench_check(sched_configure(b->s, &params, &transport, 1, b->now));
	(void)bench_mail(b, "slow", 1, 0, 1, 0); /* could be paid for */
}

/* Old messages of 12 entries and more alternate with young ones of 3 and more:
 * each part of the list seems to offer four times as much as the best message
 * does. All but one stand behind a large message, the only one that can go. */
static void
preempted(struct bench *b, uint32_t n)
{
	const struct policy p = { 2 * HELD + 20, ENTRY, HELD, 2 };
	struct sched_message **old =
	    bench_need(calloc(n / 2, sizeof(struct sched_message *)));
	struct sched_entry *slow[HELD], *front[HELD];
	uint32_t i;

	bench_open(b, &p);
	(void)bench_mail(b, "slow", HELD * ENTRY, 0, 1, 0);
	hold(b, slow);
	(void)bench_mail(b, "front", 30000 * ENTRY, 0, 1, 10000000);
	decide(b, 100);
	pass_current(b, bench_message(b), 3);
	hold(b, front);
	(void)bench_mail(b, "bulk", (18 * n + 200) * ENTRY, 0, 10, 40000000);
	for (i = 0; i < n / 2; i++)
		old[i] = bench_message(b);
	b->now += 3000 * USEC_PER_SEC;
	decide(b, 100);
	for (i = 0; i < n / 2; i++) {
		pass_current(b, old[i], 12 + i % 4);
		pass_current(b, bench_message(b), 3 + i % 2);
	}
	b->now += 1000 * USEC_PER_SEC;
	make_dear(b);
	free(old);
	memcpy(b->flying, front, sizeof(front));
	memcpy(b->flying + b->agents - HELD, slow, sizeof(slow));
	b->first = 0;
}

/* Decisions as long as no candidate can be paid for. */
static void
drain_preempted(struct bench *b)
{
	struct bench one = *b;
	uint64_t wanted = b->left < 9000 ? b->left : 9000;

	one.agents = one.count = HELD;
	one.left = wanted;
	drain_in_turn(&one);
	b->left -= wanted - one.left;
	b->now = one.now;
	/* Deliveries that were held end as well. */
	b->first = b->agents - HELD;
	b->count = 2 * HELD;
}

/* ---- two messages in turn ---- */

/* The older one has one slow destination, the other one N, of which nine tenths
 * are full. */
static void
in_turn(struct bench *b, uint32_t n)
{
	const struct policy p = { n + 1, ENTRY, 1, 5 };

	bench_open(b, &p);
	(void)bench_mail(b, "slow", 2 * n * ENTRY, 0, 1, 0);
	b->now += 1000;
	(void)bench_mail(b, "many", 6 * n * ENTRY, 0, n, 0);
	start_all(b, n + 1);
}

static void
drain_two(struct bench *b)
{
	uint32_t n = b->agents - 1, i;
	struct bench older = *b, other;

	/* The ring: the older message, then those of the other one. */
	ASSERT(b->first == 0 && b->count == n + 1);
	older.agents = older.count = 1;
	other = older;
	other.agents = other.count = n / 10;
	other.flying = b->flying + b->agents - other.agents;
	for (i = 0; b->left > 0 && i < n / 10 * 4; i++, b->left--) {
		struct bench *one = i % 2 == 0 ? &older : &other;
		const struct bench *last = i % 2 == 0 ? &other : &older;

		one->now = last->now;
		one->nlaps = last->nlaps;
		one->lap_began = last->lap_began;
		bench_finish(one);
		start_all(one, 1);
	}
	b->now += USEC_PER_SEC;
}

/* ---- a table of destinations that grows and shrinks ---- */

/* Each message has a destination of its own: N / 2 to begin with. */
static void
sites(struct bench *b, uint32_t n)
{
	const struct policy p = { n, 1, 20, 5 };

	bench_open(b, &p);
	(void)bench_mail(b, "site", n / 2, 0, 2 * n, 0);
}

static void
new_sites(struct bench *b, uint32_t next, uint32_t messages)
{
	uint32_t n = b->agents;

	bench_arrival_begin(b);
	for (; messages > 0; messages--, next += 2)
		(void)bench_mail(b, "site", 2, next, 2 * n, 0);
	bench_arrival_end(b);
}

/* Two more destinations for each that goes, then none. */
static void
drain_sites(struct bench *b)
{
	uint64_t turns = b->left < b->agents ? b->left : b->agents, i;
	uint32_t next = b->agents / 2, batch = bench_batch(64);

	for (i = 0; i < turns; i++) {
		if (i < turns / 2 && i % batch == 0)
			new_sites(b, next + 2 * (uint32_t)i, batch);
		start_all(b, 1);
		bench_finish(b);
		b->left--;
	}
}

const struct bench_case bench_hard[] = {
	{ "half", "N messages half delivered, all full, all totals different",
	    half, drain_in_turn, 100000, 0 },
	{ "blocked", "N messages blocked, all totals different, beside bulk",
	    blocked, drain_bulk, 100000, 0 },
	{ "dear",
	    "N messages begun, each needs more than the current one can pay",
	    dear, drain_dear, 100000, 0 },
	{ "misled",
	    "N messages begun, half of them need too much and promise more",
	    misled, drain_misled, 100000, 20 },
	{ "even", "N messages begun, each the best candidate at some time",
	    even, drain_even, 100000, 0 },
	{ "two",
	    "a message at a slow site in turn with one of N sites, nine tenths "
	    "full",
	    in_turn, drain_two, 100000, 0 },
	{ "preempted",
	    "N messages that have preempted and wait, old and large ones "
	    "beside young and small ones",
	    preempted, drain_preempted, 100000, 20000 },
	{ "first", "the first decisions beside N blocked messages", first,
	    drain_first, 100000, 2000 },
	{ "sites",
	    "N / 2 destinations, one more for each decision, then one less",
	    sites, drain_sites, 0, 0 },
};
const size_t bench_nhard = sizeof(bench_hard) / sizeof(bench_hard[0]);
