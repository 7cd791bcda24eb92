/* tests/bench/sched/decide.c - what a decision of the scheduler costs.
 *
 *	decide [CASE [N]]
 *
 * A decision is one selection with its completion: sched_select(),
 * sched_done(), and the end of the message if that was its last. Each case is
 * set up in its sizes; setting up is not timed, but in `stream`, where mail
 * arrives between the decisions. Sizes alternate. Medians of the rounds are
 * printed, in ns of the thread's processor time: case, size, the mean of a
 * decision, its 99.9th percentile and the maximum. The last two are of runs of
 * their own, in which the clock is read for each decision; that is in them. The
 * line `memory` has bytes per recipient.
 */
#include "bench.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS    3
#define DECISIONS 250000 /* at least, for each size and round */
#define LAPS      100000

static const uint32_t sizes[] = { 1000, 10000, 100000, 1000000 };
#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

enum column {
	MEAN,
	SLOW,
	WORST,
	COLUMNS
};

static int
by_lap(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void
measure(const struct bench_case *c, uint32_t n, double ret_ns[COLUMNS])
{
	uint32_t *laps = bench_need(calloc(LAPS, sizeof(*laps)));
	uint64_t done;

	ret_ns[MEAN] = (double)bench_spend(c, n, DECISIONS, NULL, &done);
	ret_ns[MEAN] /= (double)done;
	(void)bench_spend(c, n, LAPS, laps, &done);
	qsort(laps, done, sizeof(*laps), by_lap);
	ret_ns[SLOW] = laps[done - 1 - done / 1000];
	ret_ns[WORST] = laps[done - 1];
	free(laps);
}

static int
by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void
print_row(const struct bench_case *c, uint32_t n, double ns[ROUNDS][COLUMNS])
{
	double of_rounds[ROUNDS];
	size_t column, round;

	printf("%s\t%u", c->name, n);
	for (column = 0; column < COLUMNS; column++) {
		for (round = 0; round < ROUNDS; round++)
			of_rounds[round] = ns[round][column];
		qsort(of_rounds, ROUNDS, sizeof(double), by_value);
		printf("\t%.1f", of_rounds[ROUNDS / 2]);
	}
	printf("\t%s\n", c->what);
	fflush(stdout);
}

/* only: of the sizes; 0: all of the case. */
static void
run(const struct bench_case *c, uint32_t only)
{
	double ns[NSIZES][ROUNDS][COLUMNS];
	size_t i, round, from = 0, to = NSIZES;

	while (to > 0 &&
	    sizes[to - 1] > (only > 0                ? only
				    : c->largest > 0 ? c->largest
						     : UINT32_MAX))
		to--;
	while (only > 0 && from < to && sizes[from] < only)
		from++;
	for (round = 0; round < ROUNDS; round++)
		for (i = from; i < to; i++)
			measure(c, sizes[i], ns[i][round]);
	for (i = from; i < to; i++)
		print_row(c, sizes[i], ns[i]);
}

static size_t
in_use(void)
{
	struct mallinfo2 now = mallinfo2();

	return now.uordblks + now.hblkhd;
}

static void
memory(const char *name, const char *of)
{
	const struct bench_case *c = bench_usual;
	size_t before = in_use(), bytes;
	struct bench b;

	while (strcmp(c->name, of) != 0)
		c++;
	c->setup(&b, 1000000);
	bytes = in_use() - before;
	printf("memory\t%s\t%.1f\n", name, (double)bytes / 1e6);
	bench_close(&b);
}

static void
run_those(
    const struct bench_case *c, size_t count, const char *name, uint32_t only)
{
	for (; count > 0; c++, count--)
		if (name == NULL || strcmp(name, c->name) == 0)
			run(c, only);
}

int
main(int argc, char *argv[])
{
	const char *name = argc < 2 ? NULL : argv[1];
	uint32_t n = argc < 3 ? 0 : (uint32_t)strtoul(argv[2], NULL, 10);

	run_those(bench_usual, bench_nusual, name, n);
	run_those(bench_hard, bench_nhard, name, n);
	run_those(&bench_mix, 1, name, n);
	if (name == NULL || strcmp(name, "memory") == 0) {
		memory("1000000 recipients in 100000 entries", "bulk");
		memory("1000000 messages of one recipient", "singles");
	}
	return 0;
}
