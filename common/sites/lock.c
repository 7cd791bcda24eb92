#include "sites/parts.h"

#include <errno.h>
#include <time.h>

/* A lock is held for well under a microsecond: mostly it is free again before
 * the kernel could be asked. */
#define SPINS 64

static struct timespec
limit_from_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += LOCK_LIMIT * 1000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	return t;
}

static int
try_for_a_moment(pthread_mutex_t *lock)
{
	int i, r = pthread_mutex_trylock(lock);

	for (i = 0; r == EBUSY && i < SPINS; i++) {
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#endif
		r = pthread_mutex_trylock(lock);
	}
	return r;
}

/* Where it was not to be had lately it is not waited for, but the moment that
 * it is free it is taken. */
static int
lock_within_limit(pthread_mutex_t *lock, bool alone)
{
	struct timespec limit;
	int r = try_for_a_moment(lock);

	if (r != EBUSY || alone)
		return r;
	limit = limit_from_now();
	return pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &limit);
}

bool
set_lock(struct shared *s, uint32_t set, usec_t now)
{
	struct set *shared = segment_set(&s->seg, set);
	struct local_set *local = &s->sets[set];
	int r = lock_within_limit(&shared->lock, local->alone_until > now);

	if (r == EOWNERDEAD) {
		table_mend(&s->seg, shared);
		r = pthread_mutex_consistent(&shared->lock);
		s->figures.recovered++;
	}
	if (r == 0) {
		local->alone_until = 0;
		return true;
	}
	if (local->alone_until <= now) {
		local->alone_until = now + LOCK_ALONE;
		s->figures.stuck++;
	}
	return false;
}

void
set_unlock(struct shared *s, uint32_t set)
{
	pthread_mutex_unlock(&segment_set(&s->seg, set)->lock);
}
