#include "sites/parts.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* A lock is held for well under a microsecond: mostly it is free again before
 * the kernel could be asked. */
#define SPINS 64

int
lock_init(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;
	int r = pthread_mutexattr_init(&attr);

	if (r != 0)
		return -r;
	r = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (r == 0)
		r = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	memset(lock, 0, sizeof(*lock));
	if (r == 0)
		r = pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
	return -r;
}

/* Given a mutex of another kind, which somebody must have written over this
 * one, the C library aborts. */
static bool
is_one_of_ours(const struct shared *s, const pthread_mutex_t *lock)
{
	return __atomic_load_n(&lock->__data.__kind, __ATOMIC_RELAXED) ==
	    s->lock_kind;
}

/* ThreadSanitizer does not see pthread_mutex_clocklock(). */
#if defined(__SANITIZE_THREAD__)
#define LOCK_CLOCK              CLOCK_REALTIME
#define lock_until(lock, limit) pthread_mutex_timedlock(lock, limit)
#else
#define LOCK_CLOCK              CLOCK_MONOTONIC
#define lock_until(lock, limit) pthread_mutex_clocklock(lock, LOCK_CLOCK, limit)
#endif

static struct timespec
limit_from_now(void)
{
	struct timespec t;

	clock_gettime(LOCK_CLOCK, &t);
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

static uint32_t
passed(const struct set *set)
{
	return __atomic_load_n(&set->passed, __ATOMIC_RELAXED);
}

/* Its owner is stopped if nobody at all has let go of it for LOCK_LIMIT; where
 * many want it, and few of them run, it may take longer. */
static int
lock_within_limit(struct set *set)
{
	struct timespec limit;
	uint32_t before;
	int i, r = EBUSY;

	for (i = 0; i < LOCK_TURNS; i++) {
		before = passed(set);
		limit = limit_from_now();
		r = lock_until(&set->lock, &limit);
		if (r != ETIMEDOUT || passed(set) == before)
			break;
	}
	return r;
}

/* Where it was not to be had lately it is not waited for, but the moment that
 * it is free it is taken. */
static int
lock(struct shared *s, struct set *set, bool alone)
{
	int r;

	if (!is_one_of_ours(s, &set->lock))
		return EINVAL;
	r = try_for_a_moment(&set->lock);
	return r != EBUSY || alone ? r : lock_within_limit(set);
}

bool
set_lock(struct shared *s, uint32_t set, usec_t now)
{
	struct set *shared = segment_set(&s->seg, set);
	struct local_set *local = &s->sets[set];
	int r = lock(s, shared, local->alone_until > now);

	if (r == EOWNERDEAD) {
		table_mend(&s->seg, shared);
		r = pthread_mutex_consistent(&shared->lock);
		s->figures.recovered++;
	}
	if (r == 0) {
		local->alone_until = local->alone_for = 0;
		return true;
	}
	if (local->alone_until <= now) {
		local->alone_for = local->alone_for == 0 ? LOCK_ALONE_LEAST
		    : local->alone_for < LOCK_ALONE_MOST / 2
		    ? 2 * local->alone_for
		    : LOCK_ALONE_MOST;
		local->alone_until = now + local->alone_for;
		s->figures.stuck++;
	}
	return false;
}

void
set_unlock(struct shared *s, uint32_t set)
{
	struct set *shared = segment_set(&s->seg, set);

	__atomic_store_n(&shared->passed, shared->passed + 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&shared->lock);
}
