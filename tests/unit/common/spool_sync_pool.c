/* Files synced by threads: each job once, its descriptors closed, the first
 * error kept, and no job lost. */
#include "spool/sync_pool.h"

#include "base/clock.h"
#include "base/io.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define JOBS 200

static atomic_int files, wholes, begun;
static int failing = -1, gate[2] = { -1, -1 };

static int
count_fsync(int fd)
{
	char c;

	atomic_fetch_add(&begun, 1);
	if (gate[0] >= 0)
		(void)!read(gate[0], &c, 1);
	atomic_fetch_add(&files, 1);
	if (fd != failing)
		return 0;
	errno = EIO;
	return -1;
}

static int
count_syncfs(int fd UNUSED)
{
	atomic_fetch_add(&wholes, 1);
	return 0;
}

static const struct spool_sys sys = { .fsync = count_fsync,
	.syncfs = count_syncfs };

static struct sync_pool *
new_pool(unsigned threads)
{
	struct sync_pool *p;

	cr_assert_eq(sync_pool_new(&sys, threads, &p), 0);
	return p;
}

static struct sync_task *
make_job(uint32_t serial, bool both)
{
	struct sync_task *job = sync_task_new(NULL);

	cr_assert_not_null(job);
	job->serial = serial;
	job->fds[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (both)
		job->fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return job;
}

static struct sync_task *
take_one(struct sync_pool *p)
{
	struct pollfd ready = { .fd = sync_pool_fd(p), .events = POLLIN };
	struct sync_task *job;

	while ((job = sync_pool_take(p)) == NULL)
		cr_assert_eq(poll(&ready, 1, 120000), 1, "no job ends");
	return job;
}

static void
all_jobs(unsigned threads)
{
	struct sync_pool *p = new_pool(threads);
	struct pollfd ready = { .events = POLLIN };
	bool seen[JOBS] = { false };
	struct sync_task *job;
	uint32_t i;

	for (i = 0; i < JOBS; i++) {
		job = make_job(i, i % 2 == 0);
		job->whole = i % 10 == 9;
		sync_pool_put(p, job);
	}
	for (i = 0; i < JOBS; i++) {
		job = take_one(p);
		cr_assert_not(seen[job->serial]);
		seen[job->serial] = true;
		cr_assert_eq(job->error, 0);
		cr_assert(job->fds[0] < 0 && job->fds[1] < 0);
		sync_task_free(job);
	}
	cr_expect_null(sync_pool_take(p));
	ready.fd = sync_pool_fd(p);
	cr_expect_eq(poll(&ready, 1, 0), 0, "the loop would turn for nothing");
	sync_pool_free(&p);
	cr_expect_null(p);
	cr_expect_eq(atomic_load(&files), JOBS / 2 * 3 - JOBS / 10);
	cr_expect_eq(atomic_load(&wholes), JOBS / 10);
}

/* mutations: common/spool/sync_pool.c: run_thread() leaves the job in the list;
 * sync_pool_take() leaves the descriptor readable. */
Test(spool_sync_pool, D32_each_job_is_done_once_by_threads, .timeout = 60)
{
	all_jobs(4);
}

/* mutation: common/spool/sync_pool.c: run_job() keeps the last error. */
Test(spool_sync_pool, D7_the_first_error_is_kept_and_ends_the_job)
{
	struct sync_pool *p = new_pool(1);
	struct sync_task *job = make_job(1, true);

	failing = job->fds[0];
	sync_pool_put(p, job);
	job = take_one(p);
	cr_expect_eq(job->error, -EIO);
	cr_expect(job->fds[0] < 0 && job->fds[1] < 0);
	cr_expect_eq(atomic_load(&files), 1);
	sync_task_free(job);
	sync_pool_free(&p);
}

/* mutation: common/spool/sync_pool.c: join_threads() joins without a limit. */
Test(spool_sync_pool, D25_a_sync_that_hangs_holds_up_no_end, .timeout = 60)
{
	struct sync_pool *p;

	cr_assert_eq(pipe2(gate, O_CLOEXEC), 0);
	p = new_pool(2);
	sync_pool_put(p, make_job(1, false));
	sync_pool_put(p, make_job(2, false));
	cr_assert_null(sync_pool_take(p));
	sync_pool_free(&p);
	cr_expect_null(p);
	cr_expect_eq(atomic_load(&files), 0);
	close(gate[1]);
}

/* mutation: common/spool/sync_pool.c: is_one_more_wanted() is true. */
Test(spool_sync_pool, D40_a_thread_has_its_share_before_the_next_begins,
    .timeout = 60)
{
	struct sync_pool *p;
	uint32_t i;

	cr_assert_eq(pipe2(gate, O_CLOEXEC), 0);
	p = new_pool(4);
	sync_pool_set_share(p, 4, 4);
	for (i = 0; i < 5; i++)
		sync_pool_put(p, make_job(i, false));
	while (atomic_load(&begun) < 2)
		sched_yield();
	for (i = 5; i < 8; i++)
		sync_pool_put(p, make_job(i, false));
	cr_expect_eq(atomic_load(&begun), 2);
	close(gate[1]);
	for (i = 0; i < 8; i++)
		sync_task_free(take_one(p));
	cr_expect_eq(atomic_load(&begun), 8);
	/* Threads that sleep are woken. */
	for (i = 0; i < 8; i++) {
		sync_pool_put(p, make_job(i, false));
		sync_task_free(take_one(p));
	}
	sync_pool_free(&p);
}

/* ---- shares, of tasks that are quick or slow ---- */

static int
do_nothing(struct sync_task *task UNUSED)
{
	atomic_fetch_add(&begun, 1);
	return 0;
}

static int
wait_at_gate(struct sync_task *task UNUSED)
{
	char c;

	atomic_fetch_add(&begun, 1);
	(void)!read(gate[0], &c, 1);
	return 0;
}

static int
take_two_ms(struct sync_task *task UNUSED)
{
	const usec_t began = clock_mono();

	while (clock_mono() - began < 2 * USEC_PER_MSEC)
		;
	return 0;
}

static void
put_work(struct sync_pool *p, uint32_t serial, int (*work)(struct sync_task *))
{
	struct sync_task *task = sync_task_new(NULL);

	cr_assert_not_null(task);
	task->serial = serial;
	task->work = work;
	sync_pool_put(p, task);
}

static void
await_begun(int n)
{
	while (atomic_load(&begun) < n)
		sched_yield();
}

static uint32_t
take_serial(struct sync_pool *p)
{
	struct sync_task *task = take_one(p);
	const uint32_t serial = task->serial;

	sync_task_free(task);
	return serial;
}

/* mutation: common/spool/sync_pool.c: is_one_more_wanted() counts late threads;
 * sync_pool_press() looks while any task runs. */
Test(spool_sync_pool, D42_what_waits_behind_a_task_that_hangs_goes_on,
    .timeout = 60)
{
	struct sync_pool *p = new_pool(4);
	const usec_t an_hour = 3600 * USEC_PER_SEC;
	uint32_t i;

	cr_assert_eq(pipe2(gate, O_CLOEXEC), 0);
	sync_pool_set_share(p, 8, 8);
	cr_expect_eq(sync_pool_press(p, 7), USEC_NEVER, "nothing is under way");
	put_work(p, 0, wait_at_gate);
	await_begun(1);
	for (i = 1; i < 4; i++)
		put_work(p, i, do_nothing);
	cr_expect_eq(sync_pool_press(p, 7), 7 + 5 * USEC_PER_MSEC);
	cr_expect_eq(atomic_load(&begun), 1, "one thread has its share");
	(void)sync_pool_press(p, clock_mono() + an_hour);
	for (i = 1; i < 4; i++)
		cr_expect_eq(take_serial(p), i);
	/* Later ones need no press. */
	put_work(p, 4, do_nothing);
	cr_expect_eq(take_serial(p), 4);
	cr_expect_eq(sync_pool_press(p, clock_mono()), USEC_NEVER,
	    "nothing is behind the one that hangs");
	close(gate[1]);
	cr_expect_eq(take_serial(p), 0);
	cr_expect_eq(sync_pool_press(p, 7), USEC_NEVER);
	sync_pool_free(&p);
}

/* mutation: common/spool/sync_pool.c: share_of() is the most. */
Test(spool_sync_pool, D42_slow_tasks_have_a_thread_each, .timeout = 60)
{
	struct sync_pool *p = new_pool(4);
	uint32_t i;

	cr_assert_eq(pipe2(gate, O_CLOEXEC), 0);
	sync_pool_set_share(p, 1, 8);
	for (i = 0; i < 32; i++) {
		put_work(p, i, take_two_ms);
		cr_expect_eq(take_serial(p), i);
	}
	for (i = 0; i < 3; i++)
		put_work(p, i, wait_at_gate);
	await_begun(3);
	close(gate[1]);
	for (i = 0; i < 3; i++)
		(void)take_serial(p);
	sync_pool_free(&p);
}
