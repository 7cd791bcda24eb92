/* qscheduler/ground/ground.h - what every floor of the supervisor stands on:
 * the instance that runs, and workers.
 *
 *	supervisor   how many queues, requests, signals, the page, systemd
 *	queues       a queue: state, objects, override, quarantine, retirement
 *	children     a child: process, channel, heartbeat, group, lock
 *	ground       worker.c, segment.c
 *
 * A floor includes and calls those below it (qscheduler/LAYERS). It calls up
 * only through a struct of functions that the upper floor fills.
 *
 * After start-up nothing ends this process but TERM: what fails is logged and
 * tried again later. What children send is judged as a stranger's. */
#ifndef QSCHEDULER_GROUND_GROUND_H
#define QSCHEDULER_GROUND_GROUND_H

#include "base/buf.h"
#include "config/conf.h"
#include "daemon/daemon.h"

#include <sys/queue.h>

#define EVERY_TICK   (1 * USEC_PER_SEC)
#define EVERY_HEALTH (60 * USEC_PER_SEC) /* IPC objects */

struct event_base;

/* The one instance that this process supervises. */
struct instance {
	struct conf *conf;     /* in force; a reload replaces it */
	const char *conf_path; /* of the command line; NULL: the default */
	struct daemon_users users;
	char *name; /* as it was at the start */
	struct event_base *loop;
};

/* ---- segment.c ---- */
/* The segment of fd still has its name. True also when that cannot be known
 * for want of memory or descriptors. */
bool segment_is_same(const char *name, int fd);

/* ---- worker.c ----
 * A worker is a process that asks a disk something, or writes to it, and may
 * wait for it; the loop does not.
 *
 * There is one at a time for each number, and WORKERS_MAX young ones together.
 * A worker that takes longer than disk_time_limit is answered for with
 * -ETIMEDOUT. Its number stays taken until the disk lets go of it; then its own
 * answer comes, late. So an answer of 0 or more, or another error, is always
 * true. A worker has no lock of ours, and ends with us. */

#define WORKERS_MAX      32
/* A worker older than this makes room for others: disks that hang do not keep
 * those that answer from being asked. */
#define WORKER_YOUNG     (1 * USEC_PER_SEC)

/* Numbers of workers that are not about one queue. */
#define WORKER_ALL       0 /* directories of queues that do not run */
#define WORKER_OVERRIDES (CONF_QUEUE_NUM_MAX + 1)
#define WORKER_CONF      (CONF_QUEUE_NUM_MAX + 2)
#define WORKER_DAYS      (CONF_QUEUE_NUM_MAX + 3)

struct worker_result {
	int r;          /* of what was asked, or why it was not asked */
	char text[320]; /* words to a negative r */
};

/* All that a worker has, in its own process. */
struct worker_call {
	void *ctx;
	uint32_t number;
	/* Shared with the supervisor: the queue that is asked now, of a worker
	 * that asks many; 0: `number`. */
	volatile uint32_t *at;
	struct buf *error; /* words to a negative result */
	struct buf *more;  /* bytes to add to the result */
};
struct worker_task {
	const char *name; /* for the log */
	int (*run)(const struct worker_call *call);
	/* In the supervisor. `more` may be taken. */
	void (*done)(void *ctx, uint32_t number,
	    const struct worker_result *result, struct buf *more);
};

/* In a process that was just forked: default actions, nothing blocked. */
void signals_reset(void);

struct worker;
struct workers {
	const struct instance *instance;
	const char *path; /* QUEUE_BASE, for words */
	int keep; /* the descriptor that workers have beside their own */
	int lock; /* of QUEUE_BASE: closed in a worker, since one that
		   * hangs would outlive the supervisor with it */
	LIST_HEAD(worker_list, worker) list;
};

/* -EBUSY: one of this number runs; -EAGAIN: too many do; -errno: fork … */
int worker_start(struct workers *all, const struct worker_task *task,
    uint32_t number, void *ctx);
bool worker_runs(const struct workers *all, uint32_t number);
/* End all; nothing is called any more. */
void workers_close(struct workers *all);
/* Tests set it: called in a worker, before anything is asked; days.c calls it
 * behind each queue, too. */
extern void (*worker_seam)(const char *task, uint32_t number);

#endif
