/* The lock of a set: a word with the number of the thread that has it, as the
 * kernel wants it of a robust futex. The robust mutex of the C library is not
 * used: it keeps pointers in the shared memory itself and follows them, so that
 * a write over them ends the process. Here the kernel alone learns which word a
 * thread may have, from memory of the thread.
 */
#include "site/shared_parts.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* A lock is held for well under a microsecond: mostly it is free again before
 * the kernel could be asked. */
#define SPINS 64

/* ---- the robust list of this thread ---- */

/* A thread has one lock at a time, so "pending" is enough of the list. */
static _Thread_local struct {
	struct robust_list_head head;
	uint32_t tid; /* 0: the kernel knows nothing yet */
} robust;

/* The kernel forgets the list of a process at fork. */
static void
forget_thread(void)
{
	robust.tid = 0;
}

static void
watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, forget_thread);
}

uint32_t
shared_lock_thread(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (robust.tid != 0)
		return robust.tid;
	(void)pthread_once(&once, watch_forks);
	robust.head =
	    (struct robust_list_head){ .list.next = &robust.head.list };
	(void)syscall(SYS_set_robust_list, &robust.head, sizeof(robust.head));
	robust.tid = (uint32_t)syscall(SYS_gettid);
	return robust.tid;
}

/* Set before the thread can own the word, cleared after it cannot any more. */
static void
set_pending(uint32_t *word)
{
	__atomic_store_n(
	    &robust.head.list_op_pending, (void *)word, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* ---- the word ---- */

static bool
change(uint32_t *word, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(
	    word, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* 0, EOWNERDEAD: the lock is ours; EBUSY. waiters: FUTEX_WAITERS, when others
 * may sleep at the word. */
static int
try_once(uint32_t *word, uint32_t waiters)
{
	uint32_t old = __atomic_load_n(word, __ATOMIC_RELAXED);

	if ((old & FUTEX_TID_MASK) != 0 ||
	    !change(word, old,
		shared_lock_thread() | waiters | (old & FUTEX_WAITERS)))
		return EBUSY;
	return (old & FUTEX_OWNER_DIED) != 0 ? EOWNERDEAD : 0;
}

static int
try_for_a_moment(uint32_t *word)
{
	int i, r = try_once(word, 0);

	for (i = 0; r == EBUSY && i < SPINS; i++) {
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#endif
		r = try_once(word, 0);
	}
	return r;
}

static void
sleep_at(uint32_t *word, usec_t left)
{
	const struct timespec limit = { .tv_nsec = left * 1000 };
	uint32_t old = __atomic_load_n(word, __ATOMIC_RELAXED);

	if ((old & FUTEX_TID_MASK) == 0)
		return;
	if ((old & FUTEX_WAITERS) == 0 &&
	    !change(word, old, old | FUTEX_WAITERS))
		return;
	(void)syscall(
	    SYS_futex, word, FUTEX_WAIT, old | FUTEX_WAITERS, &limit, NULL, 0);
}

static int
lock_until(uint32_t *word, usec_t limit)
{
	usec_t left;
	int r;

	while ((r = try_once(word, FUTEX_WAITERS)) == EBUSY) {
		left = limit - clock_mono();
		if (left <= 0)
			return ETIMEDOUT;
		sleep_at(word, left);
	}
	return r;
}

/* False: the word was not ours. */
static bool
give_back(uint32_t *word)
{
	uint32_t old = __atomic_exchange_n(word, 0, __ATOMIC_RELEASE);

	if ((old & FUTEX_WAITERS) != 0)
		(void)syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
	set_pending(NULL);
	return (old & FUTEX_TID_MASK) == robust.tid;
}

/* ---- the lock of a set ---- */

static uint32_t
passed(const struct shared_set *set)
{
	return __atomic_load_n(&set->passed, __ATOMIC_RELAXED);
}

/* An owner counts as stopped when no thread has given the lock back for
 * LOCK_LIMIT; where many threads want it and few run, it may take longer. */
static int
lock_within_limit(struct shared_set *set)
{
	uint32_t before;
	int i, r = EBUSY;

	for (i = 0; i < LOCK_ROUNDS; i++) {
		before = passed(set);
		r = lock_until(&set->lock, clock_mono() + LOCK_LIMIT);
		if (r != ETIMEDOUT || passed(set) == before)
			break;
	}
	return r;
}

/* A lock that could not be taken lately is not waited for, but taken when it is
 * found free. */
static int
lock(struct shared_set *set, bool alone)
{
	int r;

	(void)shared_lock_thread();
	set_pending(&set->lock);
	r = try_for_a_moment(&set->lock);
	if (r == EBUSY && !alone)
		r = lock_within_limit(set);
	if (r != 0 && r != EOWNERDEAD)
		set_pending(NULL);
	return r;
}

static void
avoid(struct shared *s, uint32_t set, usec_t now)
{
	struct shared_set_state *local = &s->sets[set];

	if (local->avoid_until > now)
		return;
	local->avoid_for = local->avoid_for == 0     ? LOCK_AVOID_LEAST
	    : local->avoid_for < LOCK_AVOID_MOST / 2 ? 2 * local->avoid_for
						     : LOCK_AVOID_MOST;
	local->avoid_until = now + local->avoid_for;
	s->figures.stuck++;
	if (!shared_lock_is_possible(&s->seg,
		__atomic_load_n(
		    &shared_segment_set(&s->seg, set)->lock, __ATOMIC_RELAXED)))
		shared_lose(s, "a lock was written over");
}

bool
shared_set_lock(struct shared *s, uint32_t set, usec_t now)
{
	struct shared_set *shared = shared_segment_set(&s->seg, set);
	struct shared_set_state *local = &s->sets[set];
	int r = lock(shared, local->avoid_until > now);

	if (r != 0 && r != EOWNERDEAD) {
		avoid(s, set, now);
		return false;
	}
	local->avoid_until = local->avoid_for = 0;
	if (!shared_set_is_sealed(&s->seg, set)) {
		shared_lose(s, "a set was written over");
		shared_set_unlock(s, set);
		return false;
	}
	if (r == EOWNERDEAD) {
		shared_set_mend(&s->seg, shared);
		s->figures.recovered++;
	}
	return true;
}

void
shared_set_unlock(struct shared *s, uint32_t set)
{
	struct shared_set *shared = shared_segment_set(&s->seg, set);

	__atomic_store_n(&shared->passed, shared->passed + 1, __ATOMIC_RELAXED);
	if (!give_back(&shared->lock))
		shared_lose(s, "a lock was written over");
}
