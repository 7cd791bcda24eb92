/* tests/bench/sched/decide.c - what a decision of the scheduler costs.
 *
 *	decide [CASE|all [N [REPETITIONS]]]
 *
 * A decision is one selection with its completion: sched_select(),
 * sched_done(), and the end of the message if that was its last, with the
 * destinations and windows that go with it. Each case is set up in its sizes;
 * setting up is not timed. Sizes alternate. A line for each case and size, its
 * columns parted by tabs, in ns of the thread's processor time, medians of the
 * rounds:
 *
 *	case, size
 *	decision   in the mean, without what arrives between the decisions
 *	arrival    of one recipient, with its share of its message: making the
 *	           message, job, peer, entry, destination and window, and the
 *	           search for them; in `stream`, `sites` and `worst` of the
 *	           mail that arrives between the decisions, in batches of 16,
 *	           64 and one messages; elsewhere of the setup, with all it does
 *	combined   all that was done, arrivals too, for each decision
 *	99.9th percentile and maximum of a decision, without arrivals; they are
 *	           of runs of their own, in which the clock is read for each
 *	           decision; that is in them
 *	what the case is
 *
 * With repetitions the case runs so many times, each time from the same state
 * of memory, with the same input, and takes the same decisions. Of what each
 * decision took the least counts: what other work of the machine added, it does
 * not add each time. Then the columns are case, size, the mean of these, their
 * 99.9th percentile, the maximum, and the number of the decision that it was;
 * reading the clock is in them.
 *
 * The line `memory` has bytes per recipient that become resident.
 */
#include "bench.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS    3
#define DECISIONS 250000 /* at least, for each size and round */
#define LAPS      100000

static const uint32_t sizes[] = { 1000, 10000, 100000, 1000000 };
#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

enum column {
	DECISION,
	ARRIVAL,
	COMBINED,
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
	struct bench_spent all = bench_spend(c, n, DECISIONS, NULL);
	uint64_t done;

	ret_ns[COMBINED] = all.spent / (double)all.decisions;
	ret_ns[ARRIVAL] = all.arrival;
	ret_ns[DECISION] = (all.spent - all.arrivals) / (double)all.decisions;
	done = bench_spend(c, n, LAPS, laps).decisions;
	qsort(laps, done, sizeof(*laps), by_lap);
	ret_ns[SLOW] = laps[done - 1 - done / 1000];
	ret_ns[WORST] = laps[done - 1];
	free(laps);
}

/* ---- repetitions ---- */

/* What all repetitions of a case have in common. */
struct repeated {
	uint64_t done;
	uint32_t laps[LAPS], least[LAPS];
};

static pid_t
begin_child(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	bench_check(pid < 0 ? -errno : 0);
	return pid;
}

static void
wait_child(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status != 0)
		abort();
}

/* A process of its own begins with the same memory each time. */
static void
repeat_once(const struct bench_case *c, uint32_t n, struct repeated *r)
{
	pid_t pid = begin_child();

	if (pid == 0) {
		r->done = bench_spend(c, n, LAPS, r->laps).decisions;
		_exit(0);
	}
	wait_child(pid);
}

static void
print_least(const struct bench_case *c, uint32_t n, struct repeated *r)
{
	uint64_t i, worst = 0, done = r->done;
	double sum = 0;

	for (i = 0; i < done; i++) {
		sum += r->least[i];
		worst = r->least[i] > r->least[worst] ? i : worst;
	}
	qsort(r->least, done, sizeof(*r->least), by_lap);
	printf("%s\t%u\t%.1f\t%u\t%u\t%lu\n", c->name, n, sum / (double)done,
	    r->least[done - 1 - done / 1000], r->least[done - 1],
	    (unsigned long)worst);
	fflush(stdout);
}

static void
repeat(const struct bench_case *c, uint32_t n, uint32_t repetitions)
{
	struct repeated *r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t i;

	bench_check(r == MAP_FAILED ? -errno : 0);
	memset(r->laps, 0, sizeof(r->laps));
	memset(r->least, 0xff, sizeof(r->least));
	for (; repetitions > 0; repetitions--) {
		repeat_once(c, n, r);
		for (i = 0; i < r->done; i++)
			if (r->laps[i] < r->least[i])
				r->least[i] = r->laps[i];
	}
	print_least(c, n, r);
	munmap(r, sizeof(*r));
}

/* ---- rounds ---- */

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

static uint32_t
largest(const struct bench_case *c)
{
	return c->largest > 0 ? c->largest : UINT32_MAX;
}

/* only: of the sizes; 0: all of the case. */
static void
run(const struct bench_case *c, uint32_t only)
{
	double ns[NSIZES][ROUNDS][COLUMNS];
	uint32_t most = only > 0 ? only : largest(c);
	size_t i, round, from = 0, to = NSIZES;

	while (to > 0 && sizes[to - 1] > most)
		to--;
	while (only > 0 && from < to && sizes[from] < only)
		from++;
	for (round = 0; round < ROUNDS; round++)
		for (i = from; i < to; i++)
			measure(c, sizes[i], ns[i][round]);
	for (i = from; i < to; i++)
		print_row(c, sizes[i], ns[i]);
}

/* ---- memory ---- */

/* Resident bytes of this process. */
static size_t
resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long size, pages;

	if (f == NULL || fscanf(f, "%lu %lu", &size, &pages) != 2)
		abort();
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void
print_memory(const char *name, const char *of)
{
	const struct bench_case *c = bench_usual;
	size_t before;
	struct bench b;

	while (strcmp(c->name, of) != 0)
		c++;
	malloc_trim(0);
	before = resident();
	c->setup(&b, 1000000);
	printf("memory\t%s\t%.1f\n", name, (double)(resident() - before) / 1e6);
}

/* In a process of its own, in which nothing was freed before. */
static void
memory(const char *name, const char *of)
{
	pid_t pid = begin_child();

	if (pid == 0) {
		print_memory(name, of);
		fflush(stdout);
		_exit(0);
	}
	wait_child(pid);
}

/* What the command line asks for. */
struct asked {
	const char *name;     /* NULL: all cases */
	uint32_t n;           /* 0: all sizes */
	uint32_t repetitions; /* 0: rounds */
};

static void
run_those(const struct bench_case *c, size_t count, const struct asked *asked)
{
	for (; count > 0; c++, count--)
		if (asked->name != NULL && strcmp(asked->name, c->name) != 0 &&
		    strcmp(asked->name, "all") != 0)
			continue;
		else if (asked->repetitions == 0)
			run(c, asked->n);
		else if (asked->n <= largest(c))
			repeat(c, asked->n, asked->repetitions);
}

static uint32_t
number(int argc, char *argv[], int at)
{
	return argc > at ? (uint32_t)strtoul(argv[at], NULL, 10) : 0;
}

int
main(int argc, char *argv[])
{
	const struct asked asked = { argc < 2 ? NULL : argv[1],
		number(argc, argv, 2), number(argc, argv, 3) };

	run_those(bench_usual, bench_nusual, &asked);
	run_those(bench_hard, bench_nhard, &asked);
	run_those(&bench_mix, 1, &asked);
	if (asked.name == NULL || strcmp(asked.name, "memory") == 0) {
		memory("1000000 recipients in 100000 entries", "bulk");
		memory("1000000 messages of one recipient", "singles");
	}
	return 0;
}
