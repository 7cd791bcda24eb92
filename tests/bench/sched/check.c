/* tests/bench/sched/check.c - the most steps that a decision may take, in every
 * case, and by how much it may grow with the queue; then in a mix of messages
 * that is searched for.
 *
 *	steps [TRIES [SEED [N]]]
 *
 * With TRIES only a search as long as that, with N messages. A line for each
 * case: steps in the mean and of the longest, for N = 1000 and for N = 100000;
 * growth of the mean. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#define SMALL      1000
#define LARGE      100000
#define DECISIONS  40000
#define SEARCHED   1000 /* messages of the mix */
#define TRIES      300
/* As measured, and a fifth more. */
#define STEPS_MOST 20000
#define GROWTH     1.65

static unsigned passed, failed;
static uint32_t messages;

static void
must(bool ok, const char *name, const char *what, double is, double most)
{
	if (ok)
		passed++;
	else
		failed++;
	if (!ok)
		printf("FAILED %s: %s is %.1f, more than %.1f\n", name, what,
		    is, most);
}

static double
measure(const struct bench_case *c, uint32_t n, double *ret_mean)
{
	static uint32_t laps[DECISIONS];
	struct bench_spent spent = bench_spend(c, n, DECISIONS, laps);
	uint32_t worst = 0;
	uint64_t i;

	*ret_mean = spent.spent / (double)spent.decisions;
	for (i = 0; i < spent.decisions; i++)
		worst = laps[i] > worst ? laps[i] : worst;
	return worst;
}

static void
check_case(const struct bench_case *c)
{
	double small, large, small_worst, large_worst, growth;

	small_worst = measure(c, SMALL, &small);
	large_worst = measure(c, LARGE, &large);
	growth = large / small;
	printf("%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f\n", c->name, small,
	    small_worst, large, large_worst, growth);
	must(large_worst <= STEPS_MOST, c->name, "the longest decision",
	    large_worst, STEPS_MOST);
	must(growth <= GROWTH, c->name, "growth of the mean", growth, GROWTH);
	fflush(stdout);
}

static uint32_t
cost_of_mix(void)
{
	double mean;

	return (uint32_t)measure(&bench_mix, messages, &mean);
}

/* Steps are the same in each run, so the search is, too. */
static void
search(uint32_t tries, uint64_t seed)
{
	uint32_t most = bench_search(tries, seed, cost_of_mix);

	printf("search\t%u\n", most);
	must(most <= STEPS_MOST, bench_mix.name, "the longest decision", most,
	    STEPS_MOST);
}

static uint64_t
number(int argc, char *argv[], int at, uint64_t otherwise)
{
	return argc > at ? strtoull(argv[at], NULL, 10) : otherwise;
}

int
main(int argc, char *argv[])
{
	size_t i;

	bench_clock = bench_steps;
	for (i = 0; argc < 2 && i < bench_nusual; i++)
		check_case(&bench_usual[i]);
	for (i = 0; argc < 2 && i < bench_nhard; i++)
		check_case(&bench_hard[i]);
	messages = (uint32_t)number(argc, argv, 3, SEARCHED);
	search(
	    (uint32_t)number(argc, argv, 1, TRIES), number(argc, argv, 2, 1));
	printf("%u passed, %u failed\n", passed, failed);
	return failed > 0;
}
