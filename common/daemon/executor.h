/* daemon/executor.h - work that waits for a disk, done by threads in place of
 * the loop of a process.
 *
 * A process has one executor. Each kind of work has threads of its own, so that
 * slow work (a sync, a removal) holds up no quick work. A task has a copy of
 * all that it needs, but for the descriptors of the queue and for what its
 * owner keeps alive until the task has ended.
 *
 * Soft: -errno. Ownership: a task is the executor's from executor_do() until
 * its ended() is called; a task that the process ends before is freed.
 */
#ifndef DAEMON_EXECUTOR_H
#define DAEMON_EXECUTOR_H

#include "spool/sync_pool.h"

#define EXECUTOR_KINDS_MAX 16

/* The remedy where a thread cannot be started (-EAGAIN). */
#define EXECUTOR_REMEDY \
	"raise the limit on processes (TasksMax= of the unit, or ulimit -u)"

/* A task of a kind that is no sync shows by this that the disk is slow. */
#define EXECUTOR_SLOW (50 * USEC_PER_MSEC)

struct event_base;
struct executor;

struct executor_kind {
	unsigned threads; /* bound on threads; 0: the loop does the work */
	/* Bounds on tasks for each wake-up of a thread. Work that takes a few
	 * microseconds has more than one. */
	unsigned share_least, share_most;
	bool elsewhere; /* the work uses no file of this queue */
};

struct executor_owner {
	struct event_base *base;
	const struct spool_sys *sys;
	void *arg;
	/* Called before ended() of tasks that threads have done: reads the
	 * clocks, and has the loop make a turn. */
	void (*woken)(void *arg);
};

/* Starts the first thread of each kind that has threads, so that executor_do()
 * cannot fail. kinds: n of them, copied. -errno; -EAGAIN: a thread cannot be
 * started (EXECUTOR_REMEDY). */
int executor_new(const struct executor_owner *owner,
    const struct executor_kind kinds[], unsigned n, struct executor **ret);
/* False: a thread that hangs with files of this queue was left behind
 * (sync_pool_free()). NULL is fine. */
bool executor_free(struct executor **executor);
/* The one place that decides who works: a thread calls task->work(), and the
 * loop calls task->ended(arg, task) later. Where the kind has no threads the
 * loop does both before this returns. */
void executor_do(struct executor *x, unsigned kind, struct sync_task *task);
/* The number of tasks that have not ended. */
uint32_t executor_under_way(const struct executor *x);
/* Do threads do this kind of work? */
bool executor_has_threads(const struct executor *x, unsigned kind);
/* Calls ended() of what is done, of one kind. */
void executor_take(struct executor *x, unsigned kind);
/* At the end of a turn: executor_take() of all kinds with a share above 1,
 * since the loop is told of a share at a time; sync_pool_press() for what waits
 * behind a task that hangs. Returns when to look again. */
usec_t executor_look(struct executor *x, usec_t now);
/* sync_pool_slow_at() and sync_pool_oldest(); 0 without threads. */
usec_t executor_slow_at(const struct executor *x, unsigned kind, usec_t now);
usec_t executor_oldest(const struct executor *x, unsigned kind);
/* The descriptor that is readable when a task of the kind has ended. For tests.
 */
int executor_fd(const struct executor *x, unsigned kind);

#endif
