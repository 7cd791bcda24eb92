/* Queues that come, with the supervisor whole. */
#include <criterion/criterion.h>
#include <poll.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "fake.h"
#include "fake_queues.h"
#include "ipc/ask.h"
#include "ipc/bell.h"
#include "ipc/names.h"
#include "ipc/page.h"
#include "qscheduler/supervisor/supervisor.h"

/* A worker ends a moment after its answer; one may have been there when `want`
 * was counted. */
static void
wait_descriptors(size_t want)
{
	while (count_descriptors() > want)
		(void)poll(NULL, 0, 10);
}

TestSuite(super_grow, .init = stage_init, .fini = stage_done, .timeout = 100);

/* ---- by load ---- */

Test(super_grow, a_load_adds_queues_up_to_the_last)
{
	start("-d", "queue_max = 3\n");
	cr_assert_eq(set_load(1, 95), 0);
	wait_state(2, QUEUE_STATE_OPEN);
	wait_state(3, QUEUE_STATE_OPEN);
	stage_wait_log("queue 3 added: mean load 95 % for 0 s (threshold 90 "
		       "%), 0 waiting; 3 queues");
	stage_page(&page);
	cr_expect_eq(page.qcount, 3);
	cr_expect_eq(page.qconf, 3);
	cr_expect_eq(page.changes, 2);
	cr_expect_gt(page.change_wall, 0);
	cr_expect_eq(page.mean_load_pct, 95);
	cr_expect_eq(page.queue_count, 1);
	cr_expect_eq(strncmp(page.change, "queue 3 added", 13), 0);
	cr_assert_eq(set_load(1, 0), 0);
	cr_assert_eq(set_load(2, 0), 0);
	cr_assert_eq(set_load(3, 0), 0);
	wait_state(3, QUEUE_STATE_NONE);
	wait_state(2, QUEUE_STATE_NONE);
	cr_expect_eq(state_of(1), QUEUE_STATE_OPEN);
	cr_expect(is_there("queue2/closed"));
	cr_expect(is_there("queue3/closed"));
	cr_expect_eq(stage_stop(), 0);
}

Test(super_grow, a_fixed_number_is_fixed)
{
	start("-s", "queue_max = 3\n");
	cr_assert_eq(set_load(1, 95), 0);
	stage_page(&page);
	while (page.mean_load_pct != 95)
		stage_page(&page);
	cr_expect_eq(page.changes, 0);
	cr_expect_eq(state_of(2), QUEUE_STATE_NONE);
	cr_expect_eq(stage_stop(), 0);
}

/* ---- known failings of the old design ---- */

Test(super_grow, shrinking_kills_the_supervisor)
{
	int i;

	start("-d", "queue_max = 4\n");
	for (i = 0; i < 3; i++) {
		cr_assert_eq(set_count(4), 0);
		wait_state(4, QUEUE_STATE_OPEN);
		cr_assert_eq(set_count(1), 0);
		wait_state(4, QUEUE_STATE_NONE);
		wait_state(3, QUEUE_STATE_NONE);
		wait_state(2, QUEUE_STATE_NONE);
		cr_expect_not(stage_object_there("queue2"));
		cr_expect_not(stage_object_there("queue4"));
	}
	cr_expect_eq(state_of(1), QUEUE_STATE_OPEN);
	cr_expect_eq(stage_stop(), 0);
}

Test(super_grow, growing_writes_past_a_table_and_leaks_descriptors)
{
	size_t before;

	start("-d", "queue_max = 4\n");
	cr_assert_eq(set_count(2), 0);
	wait_state(2, QUEUE_STATE_OPEN);
	cr_assert_eq(set_count(1), 0);
	wait_state(2, QUEUE_STATE_NONE);
	before = count_descriptors();
	cr_expect_eq(set_count(5), -ERANGE);
	cr_expect_eq(set_count(0), -ERANGE);
	cr_expect_eq(set_count(UINT32_MAX), -ERANGE);
	cr_assert_eq(set_count(4), 0);
	wait_state(4, QUEUE_STATE_OPEN);
	cr_assert_eq(set_count(1), 0);
	wait_state(2, QUEUE_STATE_NONE);
	wait_state(3, QUEUE_STATE_NONE);
	wait_state(4, QUEUE_STATE_NONE);
	wait_descriptors(before);
	cr_expect_eq(stage_stop(), 0);
}

Test(super_grow, an_unchecked_queue_number_from_the_message_queue)
{
	static const uint32_t numbers[] = { 0, 2, 256, 257, 4096, 1u << 31,
		UINT32_MAX };
	char name[IPC_NAME_MAX];
	size_t i;
	mqd_t mq;

	start("-d", "");
	ipc_name_scheduler(stage()->instance, name);
	mq = mq_open(name, O_WRONLY);
	cr_assert(mq >= 0);
	for (i = 0; i < ARRAY_LEN(numbers); i++) {
		const struct load_report report = { getpid(), numbers[i], 99 };

		cr_assert_eq(load_report_put(mq, &report), 0);
	}
	mq_close(mq);
	do
		stage_page(&page);
	while (page.bad_requests < ARRAY_LEN(numbers));
	cr_expect_eq(page.bad_requests, ARRAY_LEN(numbers));
	cr_expect_eq(stage_stop(), 0);
}

Test(super_grow, D20_a_queue_abandoned_with_mail_in_it)
{
	start("-d", "queue_max = 3\n");
	cr_assert_eq(set_count(3), 0);
	wait_state(3, QUEUE_STATE_OPEN);
	put_file("queue3/deferred/0/4");
	cr_assert_eq(set_count(1), 0);
	wait_state(2, QUEUE_STATE_NONE);
	cr_expect_eq(state_of(3), QUEUE_STATE_CLOSING);
	cr_expect_eq(stage_stop(), 0);
	cr_expect_not(is_there("queue3/closed"));

	/* -s: not wanted, but run until it is empty. */
	start("-s", "queue_max = 3\n");
	cr_expect_eq(state_of(3), QUEUE_STATE_CLOSING);
	cr_assert_eq(unlink(path_of("queue3/deferred/0/4")), 0);
	wait_state(3, QUEUE_STATE_NONE);
	cr_expect(is_there("queue3/closed"));
	cr_expect_eq(stage_stop(), 0);
}

Test(super_grow, D20_QUEUE_START_other_than_1_strands_no_mail)
{
	start("-s", "queue_count = 3\nqueue_start = 1\n");
	cr_assert_eq(stage_stop(), 0);
	put_file("queue1/incoming/0/4");
	put_file("queue2/hold/4");
	start("-s", "queue_count = 2\nqueue_start = 5\n");
	cr_expect_eq(state_of(1), QUEUE_STATE_CLOSING);
	cr_expect_eq(state_of(2), QUEUE_STATE_CLOSING);
	cr_expect_eq(state_of(3), QUEUE_STATE_NONE);
	cr_expect_eq(state_of(5), QUEUE_STATE_OPEN);
	cr_expect_eq(state_of(6), QUEUE_STATE_OPEN);
	cr_expect_eq(stage_stop(), 0);
}

/* ---- what cannot be had ---- */

Test(super_grow, D19_a_number_whose_directory_is_lost_is_not_made_anew)
{
	char aside[128];

	start("-d", "queue_max = 3\n");
	cr_assert_eq(set_count(2), 0);
	wait_state(2, QUEUE_STATE_OPEN);
	cr_assert_eq(set_count(1), 0);
	wait_state(2, QUEUE_STATE_NONE);
	snprintf(aside, sizeof(aside), "%s/aside", stage()->dir);
	cr_assert_eq(rename(path_of("queue2"), aside), 0);
	cr_assert_eq(set_count(2), 0);
	stage_wait_log("queue 2 could not be added");
	cr_expect(stage_logged("its directory is not there"));
	cr_expect_not(stage_object_there("queue2"));
	wait_state(3, QUEUE_STATE_OPEN); /* another number does as well */
	cr_expect_not(is_there("queue2"));
	cr_expect_eq(stage_stop(), 0);
}

Test(super_grow, D1_a_queue_that_cannot_be_made_leaves_nothing)
{
	size_t before;

	start("-d", "queue_max = 2\n");
	before = count_descriptors();
	put_file("queue2"); /* in the way */
	cr_assert_eq(set_count(2), 0);
	stage_wait_log("queue 2 could not be added");
	cr_expect_not(stage_object_there("queue2"));
	wait_descriptors(before);
	cr_expect_eq(state_of(1), QUEUE_STATE_OPEN);
	cr_assert_eq(unlink(path_of("queue2")), 0);
	wait_state(3, QUEUE_STATE_OPEN);
	cr_expect_eq(stage_stop(), 0);
}

Test(super_grow, a_stop_while_queues_come_and_go)
{
	start("-d", "queue_max = 6\n");
	cr_assert_eq(set_count(6), 0);
	wait_state(3, QUEUE_STATE_OPEN);
	cr_assert_eq(set_count(1), 0);
	cr_assert_eq(set_count(4), 0);
	cr_expect_eq(stage_stop(), 0);
	cr_expect_not(stage_object_there("queue2"));
	cr_expect_not(stage_object_there("queue6"));
}

/* Of a queue that the next one does not run. */
Test(super_grow, P2_I15_a_supervisor_that_was_killed_leaves_no_objects)
{
	start("-d", "queue_max = 2\n");
	cr_assert_eq(set_count(2), 0);
	wait_state(2, QUEUE_STATE_OPEN);
	kill(stage()->pid, SIGKILL);
	cr_assert_eq(stage_finish(), -SIGKILL);
	cr_assert(stage_object_there("queue2"));
	start("-d", "queue_max = 2\n");
	cr_expect_eq(state_of(2), QUEUE_STATE_NONE);
	cr_expect_not(stage_object_there("queue2"));
	cr_expect(stage_object_there("queue1"));
	cr_expect_eq(stage_stop(), 0);
}

/* The directory is ready when all are on their way out. */
Test(super_grow, P10_a_queue_that_comes_too_late_is_not_begun)
{
	int lock;

	stage_mode("queue-send", "hang");
	start("-d", "queue_max = 2\nstop_time_limit = 1s\n");
	/* The list cannot be written meanwhile. */
	lock = open(path_of("queues.lock"), O_RDONLY);
	cr_assert(lock >= 0);
	cr_assert_eq(flock(lock, LOCK_EX), 0);
	cr_assert_eq(set_count(2), 0);
	kill(stage()->pid, SIGTERM);
	stage_wait_log("stopping");
	close(lock);
	cr_expect_eq(stage_finish(), 0);
	cr_expect_not(stage_logged("queue 2 added"));
	cr_expect_not(stage_object_there("queue2"));
}

/* ---- limits ---- */

static void
limit(__rlimit_resource_t resource, rlim_t n)
{
	struct rlimit now;

	cr_assert_eq(prlimit(stage()->pid, resource, NULL, &now), 0);
	now.rlim_cur = n;
	cr_assert_eq(prlimit(stage()->pid, resource, &now, NULL), 0, "%s",
	    strerror(errno));
}

Test(super_grow, P12_a_queue_without_descriptors_is_not_begun)
{
	size_t before;

	start("-d", "queue_max = 2\n");
	before = count_descriptors();
	limit(RLIMIT_NOFILE, before + 6);
	cr_assert_eq(set_count(2), 0);
	stage_wait_log("queue 2 could not be added: Too many open files; "
		       "tried again after 5 s");
	cr_expect_not(stage_object_there("queue2"));
	cr_expect_not(is_there("queue2"));
	wait_descriptors(before);
	limit(RLIMIT_NOFILE, before + 500);
	wait_state(2, QUEUE_STATE_OPEN);
	cr_expect_eq(stage_stop(), 0);
}

Test(super_grow, I3_a_queue_without_a_message_queue_is_not_begun)
{
	size_t before;

	start("-d", "queue_max = 2\n");
	before = count_descriptors();
	limit(RLIMIT_MSGQUEUE, 0);
	cr_assert_eq(set_count(2), 0);
	stage_wait_log("queue 2 could not be added");
	cr_expect_not(stage_object_there("queue2"));
	cr_expect_not(is_there("queue2"));
	wait_descriptors(before);
	limit(RLIMIT_MSGQUEUE, 819200);
	wait_state(2, QUEUE_STATE_OPEN);
	cr_expect_eq(stage_stop(), 0);
}
