/* Work that threads do in place of the loop. */
#include "daemon/executor.h"

#include "daemon/daemon.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	KIND_LOOP,
	KIND_THREAD,
	KIND_SHARED,
	KIND_ELSEWHERE,
	NKINDS
};

static struct executor_kind kinds[NKINDS] = {
	[KIND_LOOP] = { 0, 1, 1, false },
	[KIND_THREAD] = { 1, 1, 1, false },
	[KIND_SHARED] = { 2, 8, 8, false },
	[KIND_ELSEWHERE] = { 1, 1, 1, true },
};

static struct event_base *base;
static struct executor *x;
static int gate[2];
static atomic_int begun;
static unsigned nended, nwoken;
static pthread_t loop, worker;

static void
woken(void *arg)
{
	cr_assert_eq(arg, &nwoken);
	nwoken++;
}

static int
new_executor(void)
{
	const struct executor_owner owner = { base, &spool_sys_real, &nwoken,
		woken };

	return executor_new(&owner, kinds, NKINDS, &x);
}

static void
start(void)
{
	loop = pthread_self();
	base = daemon_loop_new(false);
	cr_assert_not_null(base);
	cr_assert_eq(pipe2(gate, O_CLOEXEC), 0);
	cr_assert_eq(new_executor(), 0);
}

TestSuite(daemon_executor, .init = start, .timeout = 60);

static int
note_thread(struct sync_task *task UNUSED)
{
	worker = pthread_self();
	atomic_fetch_add(&begun, 1);
	return -EILSEQ;
}

static int
wait_at_gate(struct sync_task *task UNUSED)
{
	char c;

	atomic_fetch_add(&begun, 1);
	(void)!read(gate[0], &c, 1);
	return 0;
}

static void
ended(void *owner, struct sync_task *task)
{
	cr_assert_eq(owner, &nwoken);
	cr_assert(pthread_equal(pthread_self(), loop));
	nended++;
	sync_task_free(task);
}

static void
put(unsigned kind, int (*work)(struct sync_task *))
{
	struct sync_task *task = sync_task_new(ended);

	cr_assert_not_null(task);
	task->work = work;
	executor_do(x, kind, task);
}

static void
await_begun(int n)
{
	while (atomic_load(&begun) < n)
		sched_yield();
}

/* mutation: common/daemon/executor.c: executor_do() does not call ended(). */
Test(daemon_executor, work_without_threads_is_done_at_once)
{
	put(KIND_LOOP, note_thread);
	cr_expect_eq(nended, 1);
	cr_expect_eq(nwoken, 0, "the caller is awake");
	cr_expect(pthread_equal(worker, loop));
	cr_expect_eq(executor_under_way(x), 0);
	cr_expect_not(executor_has_threads(x, KIND_LOOP));
	cr_expect_eq(executor_oldest(x, KIND_LOOP), 0);
	cr_expect_eq(executor_slow_at(x, KIND_LOOP, 1), 0);
	cr_expect(executor_free(&x));
}

/* mutation: common/daemon/executor.c: take() does not count under_way down. */
Test(daemon_executor, D43_a_thread_works_and_the_loop_hears_of_the_end)
{
	put(KIND_THREAD, note_thread);
	cr_expect_eq(executor_under_way(x), 1);
	while (nended == 0)
		event_base_loop(base, EVLOOP_ONCE);
	cr_expect_eq(nwoken, 1);
	cr_expect_not(pthread_equal(worker, loop));
	cr_expect_eq(executor_under_way(x), 0);
	cr_expect(executor_free(&x));
	cr_expect_null(x);
}

/* mutation: common/daemon/executor.c: executor_look() takes nothing. */
Test(daemon_executor, D41_what_has_ended_waits_for_no_task_that_hangs)
{
	put(KIND_SHARED, note_thread);
	await_begun(1);
	put(KIND_SHARED, wait_at_gate);
	await_begun(2);
	while (nended == 0)
		(void)executor_look(x, 1);
	cr_expect_eq(executor_under_way(x), 1);
	cr_expect_gt(executor_oldest(x, KIND_SHARED), 0);
	close(gate[1]);
	cr_expect(executor_free(&x));
}

/* A kind has threads of its own.
 * mutation: common/daemon/executor.c: executor_do() puts all into one lane. */
Test(daemon_executor, D43_work_of_a_kind_waits_for_no_other_kind)
{
	put(KIND_THREAD, wait_at_gate);
	await_begun(1);
	put(KIND_SHARED, note_thread);
	while (nended == 0)
		event_base_loop(base, EVLOOP_ONCE);
	close(gate[1]);
	cr_expect(executor_free(&x));
}

/* mutation: common/daemon/executor.c: executor_free() is always true. */
Test(daemon_executor, D25_a_thread_that_hangs_is_left_behind_and_told)
{
	put(KIND_THREAD, wait_at_gate);
	await_begun(1);
	cr_expect_not(executor_free(&x));
}

/* mutation: common/daemon/executor.c: executor_free() does not ask elsewhere.
 */
Test(daemon_executor, D31_a_thread_that_hangs_elsewhere_keeps_no_lock)
{
	put(KIND_ELSEWHERE, wait_at_gate);
	await_begun(1);
	cr_expect(executor_free(&x));
}

/* mutation: common/spool/sync_pool.c: sync_pool_new() starts no thread. */
Test(daemon_executor, without_threads_nothing_starts)
{
	struct rlimit before, none;

	cr_assert(executor_free(&x));
	if (geteuid() == 0)
		cr_assert_eq(setresuid(65534, 65534, 65534), 0);
	cr_assert_eq(getrlimit(RLIMIT_NPROC, &before), 0);
	none = before;
	none.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_NPROC, &none), 0);
	cr_expect_eq(new_executor(), -EAGAIN);
	cr_expect_null(x);
	cr_assert_eq(setrlimit(RLIMIT_NPROC, &before), 0);
}
