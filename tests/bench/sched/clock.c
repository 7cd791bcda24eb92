/* What decisions cost, and what the arrival of mail between them. The clock of
 * the thread is a call of the kernel, as dear as an arrival: so mail arrives in
 * batches. Steps are counted for nothing, and each message comes alone. */
#include "bench.h"

#include <time.h>

uint64_t (*bench_clock)(void) = bench_cpu_ns;

uint64_t
bench_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool
is_time(void)
{
	return bench_clock == bench_cpu_ns;
}

uint32_t
bench_batch(uint32_t most)
{
	return is_time() ? most : 1;
}

void
bench_arrival_begin(struct bench *b)
{
	if (is_time())
		b->arrivals.began = bench_cpu_ns();
}

/* A lap has no arrivals in it, but for steps. */
void
bench_arrival_end(struct bench *b)
{
	uint64_t took;

	if (!is_time())
		return;
	took = bench_cpu_ns() - b->arrivals.began;
	b->arrivals.ns += took;
	b->lap_began += took;
}
