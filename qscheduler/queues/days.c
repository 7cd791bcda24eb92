/* The end of the day in deleted/ of queues that do not run: queue-send ends
 * that of the others, by the same rule. */
#include "qscheduler/queues/queues.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/io.h"
#include "log/log.h"
#include "spool/act.h"
#include "spool/reason.h"

#define DAYS_EVERY (3600 * USEC_PER_SEC) /* as the walks of queue-send */
/* Of all queues together. A queue-send that starts waits for the lock. */
#define TIME_LIMIT (5 * USEC_PER_SEC)
#define MORE_AFTER (60 * USEC_PER_SEC)

/* ---- in the worker, which has the user of queue-send ---- */

static int
end_day(const struct spool *sp, const struct spool_item *item)
{
	const usec_t now_wall = clock_wall();
	int r;

	if (!act_day_may_be_over(item->mtime_wall, now_wall))
		return 0;
	r = act_end_day(sp, item->inode, now_wall);
	return r < 0 ? r : 0;
}

/* A crash may have left reasons whose message had gone. */
static int
clear_lost(const struct spool *sp, const struct spool_item *item)
{
	reason_clear_lost(sp, item->inode);
	return 0;
}

static const struct {
	enum spool_dir dir;
	int (*end)(const struct spool *sp, const struct spool_item *item);
} steps[] = {
	{ SPOOL_DELETED, end_day },
	{ SPOOL_BOUNCE, clear_lost },
};

/* 1: the time is over before the end. The first error comes last. */
static int
look_through(const struct spool *sp, size_t step, usec_t until)
{
	struct spool_scan scan;
	struct spool_item item;
	int r, error = 0;

	spool_scan_begin(&scan, sp, steps[step].dir);
	while ((r = spool_scan_next(&scan, true, &item)) != 0 &&
	    clock_mono() < until) {
		if (r == 1 && item.inode != 0)
			r = steps[step].end(sp, &item);
		error = error == 0 && r < 0 ? r : error;
	}
	spool_scan_done(&scan);
	return error < 0 ? error : r != 0;
}

static int
clean(const struct spool *sp, usec_t until)
{
	int r, error = 0, more = 0;
	size_t i;

	for (i = 0; i < ARRAY_LEN(steps); i++) {
		r = look_through(sp, i, until);
		error = error == 0 && r < 0 ? r : error;
		more |= r == 1;
	}
	return error < 0 ? error : more;
}

/* A queue-send that runs all the same, or an operator's act on a queue that
 * does not run, has the lock: later. */
static int
clean_queue(const struct worker_call *call, uint32_t number, usec_t until)
{
	const struct queues *all = call->ctx;
	struct spool sp;
	int lock, r;

	*call->at = number;
	r = spool_open(&sp, &spool_sys_real, all->base->path, number);
	if (r < 0) /* maybe not mounted */
		return 0;
	lock = spool_lock(&sp, "queue-send", false);
	r = lock >= 0 ? clean(&sp, until) : lock == -EAGAIN ? 0 : lock;
	if (r < 0)
		(void)buf_printf(
		    call->error, "%s/deleted: %s", sp.path, strerror(-r));
	io_close(&lock);
	spool_close(&sp);
	if (worker_seam != NULL)
		worker_seam("queue", number);
	return r;
}

static bool
does_not_run(const struct queues *all, uint32_t number)
{
	const struct queue *q = queue_find(all, number);

	return (q == NULL || group_is_down(&q->group)) &&
	    !worker_runs(all->workers, number);
}

/* A worker that works for disk_time_limit is taken for one that waits. */
static usec_t
time_limit(const struct queues *all)
{
	const usec_t half = all->instance->conf->disk_time_limit / 2;

	return half < TIME_LIMIT ? half : TIME_LIMIT;
}

/* 1: queues behind the limit, or the rest of one, wait for the next run. */
static int
clean_queues(
    const struct worker_call *call, const uint32_t *numbers, uint32_t n)
{
	const struct queues *all = call->ctx;
	const usec_t until = clock_mono() + time_limit(all);
	uint32_t i, number;
	int one, more = 0, r = 0;

	for (i = 0; i < n; i++) {
		number = numbers[(all->days_run + i) % n];
		if (!does_not_run(all, number))
			continue;
		one =
		    clock_mono() < until ? clean_queue(call, number, until) : 1;
		more |= one == 1;
		r = r == 0 && one < 0 ? one : r;
	}
	return r < 0 ? r : more;
}

static int
disk_days(const struct worker_call *call)
{
	const struct queues *all = call->ctx;
	uint32_t disk[QUEUE_NUM_MAX];
	int n, r = daemon_become(&all->instance->users, DAEMON_AS_QMAILS);

	if (r < 0)
		return r;
	/* A change of the user ends what the worker began with. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	n = spool_list(all->base->path, disk, ARRAY_LEN(disk));
	return n < 0 ? n : clean_queues(call, disk, (uint32_t)n);
}

/* ---- in the supervisor ---- */

static void
on_days(void *ctx, uint32_t number UNUSED, const struct worker_result *result,
    struct buf *more UNUSED)
{
	struct queues *all = ctx;
	const usec_t now = clock_mono();

	if (result->r == 1 && all->days_at > now + MORE_AFTER)
		all->days_at = now + MORE_AFTER;
	if (result->r < 0 && result->r != -ETIMEDOUT)
		log_warning("%s: deleted mail of a queue that does not run is "
			    "kept longer than a day: tried again in an hour, "
			    "or by a reload",
		    result->text);
}

static const struct worker_task ending = { "end of the day in deleted/",
	disk_days, on_days };

void
days_tick(struct queues *all, usec_t now)
{
	if (all->stopping || now < all->days_at)
		return;
	all->days_at = now + DAYS_EVERY;
	all->days_run++;
	if (worker_start(all->workers, &ending, WORKER_DAYS, all) < 0)
		all->days_at = now + MORE_AFTER;
}
