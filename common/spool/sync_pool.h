/* spool/sync_pool.h - files synced by threads, so that a loop never waits for
 * a disk. Several syncs at once share one commit of the journal. Other work
 * that waits for a disk is done by such a pool, too.
 *
 * A task is descriptors and an answer; threads share nothing else with their
 * owner. A finished task makes the descriptor of sync_pool_fd() readable.
 * Threads block all signals, and stay. All but the first are started when there
 * is work for them.
 *
 * Soft: -errno. Ownership: a task is the pool's from sync_pool_put() until
 * sync_pool_take() gives it back; its descriptors are closed by then.
 */
#ifndef SPOOL_SYNC_POOL_H
#define SPOOL_SYNC_POOL_H

#include "base/base.h"
#include "spool/sys.h"

#include <sys/queue.h>

#define SYNC_JOB_FDS 2

struct sync_task {
	STAILQ_ENTRY(sync_task) link;
	int fds[SYNC_JOB_FDS]; /* synced in this order; -1: none */
	bool whole;            /* the file systems that they are on */
	/* Another task: done by this function, in place of the syncs, with its
	 * -errno as the error. The task stands first in what is its own, which
	 * is one piece of memory. */
	int (*work)(struct sync_task *task);
	void (*drop)(struct sync_task *task); /* other memory of it; NULL */
	/* Called by the loop of the owner behind the work (daemon/executor.h),
	 * and frees the task. */
	void (*ended)(void *owner, struct sync_task *task);
	int error;       /* of the first that failed: -errno */
	uint32_t serial; /* these two are the owner's */
	uint64_t inode;
};

STAILQ_HEAD(sync_tasks, sync_task);

struct sync_pool;

/* At most this many threads, at least one. The first thread is started here, so
 * that no task is without one. -errno: no descriptor, no memory, or -EAGAIN: no
 * thread. */
int sync_pool_new(
    const struct spool_sys *sys, unsigned threads, struct sync_pool **ret_pool);
/* A thread is woken, or started, for each so many tasks, which is its share: 1,
 * unless it was set, before the first task. More for short ones, which come
 * many at a time, since a wake-up costs as much as such a task. The share is as
 * many as a thread does in a millisecond, going by the last tasks, within these
 * limits. The owner is told when so many are done, or when none waits for a
 * thread. Each thread takes one task at a time, from the one list. */
void sync_pool_set_share(struct sync_pool *pool, unsigned least, unsigned most);
/* Waits a second for the running threads. False: a thread that hangs was left
 * behind, and uses what its task refers to. */
bool sync_pool_free(struct sync_pool **pool);
/* Readable while a task is done and not taken, and the owner is to know. */
int sync_pool_fd(const struct sync_pool *pool);
/* A task that takes longer than that is slow: set before the first one. */
void sync_pool_set_slow(struct sync_pool *pool, usec_t limit);
/* When the last slow task ended, by clock_mono(); now: one is under way; 0:
 * there was none. */
usec_t sync_pool_slow_at(struct sync_pool *pool, usec_t now);
/* When the oldest task that is under way began, by clock_mono(); 0: none is. */
usec_t sync_pool_oldest(struct sync_pool *pool);
/* The task is the pool's. */
void sync_pool_put(struct sync_pool *pool, struct sync_task *task);
/* Does the task here, without a pool. */
void sync_task_run(const struct spool_sys *sys, struct sync_task *task);
/* A thread whose task takes longer than 5 ms has no share: what waits behind
 * that task gets another thread. now: of clock_mono(). Returns when to look
 * again, behind a sync_pool_take() of all: USEC_NEVER with a share of 1, since
 * then nothing waits for a thread that there is, or when no task is under way
 * but those that are known to take longer. */
usec_t sync_pool_press(struct sync_pool *pool, usec_t now);
/* A finished task, for free(); NULL: none. */
struct sync_task *sync_pool_take(struct sync_pool *pool);
/* A new task, without descriptors, that work() does. */
void sync_task_init(struct sync_task *task, int (*work)(struct sync_task *task),
    void (*drop)(struct sync_task *task),
    void (*ended)(void *owner, struct sync_task *task));
/* A task without descriptors; NULL: no memory. */
struct sync_task *
sync_task_new(void (*ended)(void *owner, struct sync_task *task));
/* A task that was never put, or was taken. */
void sync_task_free(struct sync_task *task);

#endif
