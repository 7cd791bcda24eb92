/* Steps of a decision: basic blocks of the scheduler and its table that run,
 * and memory that is cleared or moved, 64 bytes to a step. Unlike times they
 * are the same in each run, on each machine. The compiler calls the function
 * below in each block of what is built for `steps` (tests/bench/rules.mk). */
#include "bench.h"

#include <stdlib.h>

static uint64_t steps;

void __sanitizer_cov_trace_pc(void);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_calloc(size_t n, size_t size);

void
__sanitizer_cov_trace_pc(void)
{
	steps++;
}

void *
__wrap_realloc(void *p, size_t size)
{
	steps += size / 64;
	return __real_realloc(p, size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	steps += n * size / 64;
	return __real_calloc(n, size);
}

uint64_t
bench_steps(void)
{
	return steps;
}
