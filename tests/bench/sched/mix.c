/* Queues made from a few numbers, and a search for those numbers that make one
 * decision cost most: it changes one at a time and keeps what costs more. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY  2 /* recipients */
#define GROUPS 2

/* Message i is of group i % GROUPS. */
struct mix {
	uint8_t window, cost, agents, front, behind, busy, arrivals;
	struct mix_group {
		uint8_t entries, least, step, spread, sites, gap;
	} group[GROUPS];
};
#define GENES sizeof(struct mix)

/* The dearest that the search has found. */
static struct mix mix = {
	.window = 12,
	.cost = 41,
	.agents = 16,
	.front = 156,
	.behind = 104,
	.busy = 44,
	.arrivals = 125,
	.group = { { 79, 119, 240, 148, 159, 230 },
	    { 255, 8, 196, 2, 122, 2 } },
};

static uint32_t
at_least_one(uint32_t x)
{
	return x == 0 ? 1 : x;
}

/* Few kinds of destinations: one for all, some, or one for each message. */
static uint32_t
destinations(uint8_t gene, uint32_t n)
{
	const uint32_t kinds[] = { 1, 10, n / 10 + 1, n };

	return kinds[gene % ARRAY_LEN(kinds)];
}

static void
add_message(struct bench *b, uint32_t i, uint32_t n)
{
	static const char *const prefix[GROUPS] = { "one", "two" };
	const struct mix_group *g = &mix.group[i % GROUPS];
	uint32_t entries = at_least_one(g->entries % 8), total;

	total = entries + g->least * 8u;
	total += i * g->step % (1u << g->spread % 16);
	b->now += (usec_t)g->gap * g->gap * 100;
	(void)bench_mail(b, prefix[i % GROUPS], entries * ENTRY, i,
	    destinations(g->sites, n), total);
}

static void
setup_mix(struct bench *b, uint32_t n)
{
	/* Deliveries of the setup, and the limit that is set after it. */
	const struct policy p = { 2 * n + 1 + UINT8_MAX, ENTRY,
		at_least_one(mix.window % 32), 2 + mix.cost % 30 };
	uint32_t i, began = (uint32_t)((uint64_t)n * mix.busy / 128);

	bench_open(b, &p);
	for (i = 0; i < n * (mix.front % 4) / 4; i++)
		add_message(b, i, n);
	(void)bench_mail(
	    b, "bulk", 2000 * ENTRY, 0, at_least_one(mix.behind), 1000000);
	for (; i < n; i++)
		add_message(b, i, n);
	while (began-- > 0 && bench_start(b))
		continue;
	sched_set_process_limit(b->s, 0, b->count + 1 + mix.agents);
}

static void
drain_mix(struct bench *b)
{
	uint64_t turn = 0, most = b->left < 1500 ? b->left : 1500;
	uint64_t rest = b->left - most;

	for (b->left = most; b->left > 0;) {
		if (bench_start(b)) {
			b->left--;
			if (mix.arrivals > 0 && turn++ % mix.arrivals == 0) {
				bench_arrival_begin(b);
				add_message(b, b->next_id, 1000);
				bench_arrival_end(b);
			}
		} else if (b->count > 0)
			bench_finish(b);
		else
			break;
	}
	b->left += rest;
}

const struct bench_case bench_mix = { "worst",
	"N messages of the dearest mix that a search found, beside bulk",
	setup_mix, drain_mix, 100000, 1500 };

/* ---- the search ---- */

static uint64_t dice = 1;

static uint32_t
roll(uint32_t sides)
{
	dice = dice * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)(dice >> 33) % sides;
}

static void
change_one(struct mix *m)
{
	uint8_t *genes = (uint8_t *)m;
	size_t at = roll(GENES);

	genes[at] = roll(2) == 0 ? (uint8_t)roll(256)
				 : (uint8_t)(genes[at] + roll(2) * 2 - 1);
}

static void
print_mix(uint32_t cost)
{
	const uint8_t *genes = (const uint8_t *)&mix;
	size_t i;

	printf("search\t%u", cost);
	for (i = 0; i < GENES; i++)
		printf("%s%u", i == 0 ? "\t" : " ", genes[i]);
	printf("\n");
	fflush(stdout);
}

uint32_t
bench_search(uint32_t tries, uint64_t seed, uint32_t (*cost)(void))
{
	struct mix best = mix;
	uint32_t most = cost(), now, i;

	dice = seed;
	for (i = 0; i < tries; i++) {
		mix = best;
		do {
			change_one(&mix);
		} while (roll(2) == 0);
		now = cost();
		if (now < most)
			continue;
		if (now > most)
			print_mix(now);
		most = now;
		best = mix;
	}
	mix = best;
	return most;
}
