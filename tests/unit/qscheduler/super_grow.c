/* Queues that come and go, with the supervisor whole. */
#include <criterion/criterion.h>

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
#include "ipc/ask.h"
#include "ipc/bell.h"
#include "ipc/names.h"
#include "ipc/page.h"
#include "qscheduler/super.h"

TestSuite(super_grow, .init = stage_init, .fini = stage_done, .timeout = 100);

#define QUICK                     \
	"queue_grow_time = 0\n"   \
	"queue_shrink_time = 0\n" \
	"queue_change_interval = 0\n"

static struct sched_page page;

static uint32_t
state_of(uint32_t queue)
{
	size_t i;

	stage_page(&page);
	for (i = 0; i < PAGE_QUEUES_MAX; i++)
		if (page.rows[i].queue == queue)
			return page.rows[i].state;
	return QUEUE_STATE_NONE;
}

static void
wait_state(uint32_t queue, uint32_t state)
{
	const usec_t end = clock_mono() + 30 * USEC_PER_SEC;

	while (state_of(queue) != state) {
		const struct timespec between = { 0, 5 * 1000 * 1000 };

		cr_assert(clock_mono() < end, "queue %u is %u, not %u\n%s",
		    queue, state_of(queue), state,
		    stage_logged("") ? stage()->logged : "");
		nanosleep(&between, NULL);
	}
}

static const char *
path_of(const char *rest)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", stage()->base, rest);
	return path;
}

static void
put_file(const char *rest)
{
	int fd = open(path_of(rest), O_WRONLY | O_CREAT, 0600);

	cr_assert(fd >= 0, "%s: %s", rest, strerror(errno));
	close(fd);
}

static bool
is_there(const char *rest)
{
	return access(path_of(rest), F_OK) == 0;
}

static int
request(struct msg *msg, char text[SCHED_ANSWER_SIZE])
{
	static uint32_t nonce;
	int code = 1;

	/* The same two fields stand first in all of them. */
	msg->u.COUNT.pid = (uint32_t)getpid();
	msg->u.COUNT.nonce = ++nonce;
	cr_assert_eq(ask_request(stage()->instance, msg, nonce,
			 20 * USEC_PER_SEC, &code, text),
	    0);
	return code;
}

static int
set_count(uint32_t count)
{
	struct msg msg = { .type = MSG_COUNT, .u.COUNT = { .count = count } };
	char text[SCHED_ANSWER_SIZE];

	return request(&msg, text);
}

static int
set_load(int32_t queue, uint32_t pct)
{
	struct msg msg = { .type = MSG_SET_LOAD,
		.u.SET_LOAD = {
		    .queue = queue, .local_used = pct, .local_limit = 100 } };
	char text[SCHED_ANSWER_SIZE];

	return request(&msg, text);
}

static int
disable(int32_t queue)
{
	struct msg msg = { .type = MSG_DISABLE,
		.u.DISABLE = { .queue = queue, .reason = MSG_S("a test") } };
	char text[SCHED_ANSWER_SIZE];

	return request(&msg, text);
}

static void
start(const char *option, const char *conf)
{
	char text[400];

	snprintf(text, sizeof(text), QUICK "%s", conf);
	stage_conf(text);
	stage_start(option);
	stage_wait_ready();
}

static size_t
count_descriptors(void)
{
	char path[64];
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)stage()->pid);
	dir = opendir(path);
	cr_assert_not_null(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

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
	cr_expect_eq(count_descriptors(), before);
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

/* ---- the end of a queue ---- */

Test(super_grow, what_is_left_is_handed_over_after_the_time)
{
	start("-d", "queue_max = 3\nqueue_drain_time = 0\n");
	cr_assert_eq(set_count(3), 0);
	wait_state(3, QUEUE_STATE_OPEN);
	put_file("queue3/hold/4");
	cr_assert_eq(set_count(2), 0);
	stage_hear("queue-send HAND_OVER 1 2 of");
	stage_page(&page);
	cr_expect_eq(page.rows[2].state, QUEUE_STATE_CLOSING);
	cr_expect(page.rows[2].flags & SCHED_ROW_GIVING);
	cr_expect_str_eq(page.rows[2].reason, "2 wanted by setqload");
	/* The list is another one. */
	cr_assert_eq(set_count(1), 0);
	stage_hear("queue-send HAND_OVER 1 of");
	/* Another queue-send has to be told, too. */
	kill((pid_t)page.rows[2].pid, SIGKILL);
	stage_hear("queue-send HAND_OVER 1 of");
	cr_assert_eq(unlink(path_of("queue3/hold/4")), 0);
	wait_state(3, QUEUE_STATE_NONE);
	cr_expect_eq(stage_stop(), 0);
}

/* What the first one moved and had not told lies there unheard of. */
Test(super_grow, P1_a_queue_send_that_died_giving_had_moved_files)
{
	start("-d", "queue_max = 3\nqueue_drain_time = 0\n");
	cr_assert_eq(set_count(2), 0);
	wait_state(2, QUEUE_STATE_OPEN);
	put_file("queue2/hold/4");
	cr_assert_eq(set_count(1), 0);
	stage_hear("queue-send HAND_OVER 1 of");
	stage_page(&page);
	/* It is told also while nobody is to choose it. */
	cr_assert_eq(disable(1), 0);
	kill((pid_t)page.rows[1].pid, SIGKILL);
	stage_hear("queue-send RESCAN");
	cr_assert_eq(unlink(path_of("queue2/hold/4")), 0);
	wait_state(2, QUEUE_STATE_NONE);
	cr_expect_eq(stage_stop(), 0);
}

Test(super_grow, one_that_is_closing_is_opened_again_when_it_is_wanted)
{
	uint32_t generation;

	start("-d", "queue_max = 3\nqueue_drain_time = 0\n");
	cr_assert_eq(set_count(2), 0);
	wait_state(2, QUEUE_STATE_OPEN);
	generation = page.rows[1].generation;
	put_file("queue2/maildrop/4");
	cr_assert_eq(set_count(1), 0);
	cr_expect_eq(state_of(2), QUEUE_STATE_CLOSING);
	cr_expect_gt(page.rows[1].generation, generation);
	generation = page.rows[1].generation;
	stage_hear("queue-send HAND_OVER 1 of");
	cr_assert_eq(set_count(2), 0);
	cr_expect_eq(state_of(2), QUEUE_STATE_OPEN, "at once");
	cr_expect_gt(page.rows[1].generation, generation);
	stage_hear("queue-send HAND_OVER of");
	stage_wait_log("queue 2 opened again: 2 wanted by setqload; 2 queues");
	cr_expect_eq(stage_stop(), 0);
}

/* Somebody had chosen it before it closed, and took long. */
Test(super_grow, mail_that_comes_while_it_is_sealed_is_found)
{
	stage_mode("todo-proc", "late-mail");
	start("-d", "queue_max = 2\n");
	cr_assert_eq(set_count(2), 0);
	stage_hear("todo-proc waits");
	stage_hear("todo-proc waits");
	cr_assert_eq(set_count(1), 0);
	stage_hear("todo-proc late");
	stage_wait_log("queue 2 got mail while it was sealed: it is run again");
	stage_hear("queue-send start");
	cr_expect_eq(state_of(2), QUEUE_STATE_CLOSING);
	cr_assert_eq(unlink(path_of("queue2/incoming/0/2")), 0);
	wait_state(2, QUEUE_STATE_NONE);
	cr_expect(is_there("queue2/closed"));
	cr_expect_eq(stage_stop(), 0);
}

static size_t
count_logged(const char *part)
{
	const char *at = stage()->logged;
	size_t n = 0;

	(void)stage_logged(part);
	while ((at = strstr(at, part)) != NULL) {
		at += strlen(part);
		n++;
	}
	return n;
}

/* So many ticks of the supervisor. */
static void
wait_ticks(int ticks)
{
	const struct timespec between = { 0, 20 * 1000 * 1000 };
	int64_t end;

	stage_page(&page);
	end = page.head.beat_mono + ticks * SUPER_TICK;
	while (page.head.beat_mono < end) {
		nanosleep(&between, NULL);
		stage_page(&page);
	}
}

/* Its disk does not take the mark: its processes are not driven in a circle. */
Test(super_grow, D1_a_queue_that_cannot_be_sealed_runs_on)
{
	start("-d", "queue_max = 2\n");
	cr_assert_eq(set_count(2), 0);
	wait_state(2, QUEUE_STATE_OPEN);
	stage_hear("queue-send start");
	stage_hear("queue-send start");
	cr_assert_eq(symlink("nowhere", path_of("queue2/closed")), 0);
	cr_assert_eq(set_count(1), 0);
	stage_wait_log("queue 2 could not be sealed");
	stage_hear("queue-send start");
	wait_ticks(4);
	cr_expect_eq(state_of(2), QUEUE_STATE_CLOSING);
	cr_expect_eq(page.rows[1].pid, stage_pid(stage()->said));
	cr_expect_eq(stage_stop(), 0);
}

Test(super_grow, D9_a_queue_that_cannot_be_run_again_is_no_flood)
{
	start("-d", "queue_max = 2\n");
	cr_assert_eq(set_count(2), 0);
	wait_state(2, QUEUE_STATE_OPEN);
	cr_assert_eq(mkdir(path_of("queue2/closed"), 0700), 0);
	cr_assert_eq(set_count(1), 0);
	stage_wait_log("ALERT: queue 2 cannot be run again");
	wait_ticks(3);
	cr_expect_eq(count_logged("queue 2 cannot be run again"), 1);
	cr_expect_eq(state_of(2), QUEUE_STATE_CLOSING);
	cr_expect_eq(stage_stop(), 0);
}

Test(super_grow, a_retired_one_is_taken_again_without_its_mark)
{
	start("-d", "queue_max = 2\n");
	cr_assert_eq(set_count(2), 0);
	wait_state(2, QUEUE_STATE_OPEN);
	cr_assert_eq(set_count(1), 0);
	wait_state(2, QUEUE_STATE_NONE);
	cr_assert_eq(set_count(2), 0);
	wait_state(2, QUEUE_STATE_OPEN);
	cr_expect_not(is_there("queue2/closed"));
	cr_expect_eq(stage_stop(), 0);
}

Test(super_grow, mail_in_a_retired_directory_is_found)
{
	start("-d", "queue_max = 2\n");
	cr_assert_eq(set_count(2), 0);
	wait_state(2, QUEUE_STATE_OPEN);
	cr_assert_eq(set_count(1), 0);
	wait_state(2, QUEUE_STATE_NONE);
	put_file("queue2/deferred/0/4"); /* a backup */
	kill(stage()->pid, SIGHUP);
	wait_state(2, QUEUE_STATE_CLOSING);
	stage_hear("todo-proc start");
	stage_hear("todo-proc start");
	stage_hear("todo-proc start");
	cr_expect_not(is_there("queue2/closed"));
	cr_assert_eq(unlink(path_of("queue2/deferred/0/4")), 0);
	wait_state(2, QUEUE_STATE_NONE);
	cr_expect_eq(stage_stop(), 0);
}

/* ---- a supervisor that died in the midst of it ---- */

Test(super_grow, P2_a_mark_that_was_set_means_nothing_at_the_start)
{
	start("-s", "queue_count = 4\nqueue_max = 4\n");
	cr_assert_eq(stage_stop(), 0);
	put_file("queue1/closed"); /* wanted */
	put_file("queue2/closed"); /* wanted, with mail */
	put_file("queue2/incoming/0/4");
	put_file("queue3/closed"); /* not wanted, with mail */
	put_file("queue3/incoming/0/4");
	put_file("queue4/closed"); /* retired */
	start("-s", "queue_count = 2\nqueue_max = 4\n");
	cr_expect_eq(state_of(1), QUEUE_STATE_OPEN);
	cr_expect_eq(state_of(2), QUEUE_STATE_OPEN);
	cr_expect_eq(state_of(3), QUEUE_STATE_CLOSING);
	cr_expect_eq(state_of(4), QUEUE_STATE_NONE);
	cr_expect_not(is_there("queue1/closed"));
	cr_expect_not(is_there("queue2/closed"));
	cr_expect_not(is_there("queue3/closed"));
	cr_expect(is_there("queue4/closed"));
	cr_expect_eq(stage_stop(), 0);
}

/* A backup that was put back over it, say: nobody could submit. */
Test(super_grow, a_mark_in_a_queue_that_is_open_is_taken_away)
{
	start("-s", "");
	put_file("queue1/closed");
	kill(stage()->pid, SIGHUP);
	stage_wait_log("queue 1: it is open, and was marked closed on disk");
	cr_expect_not(is_there("queue1/closed"));
	cr_expect_eq(state_of(1), QUEUE_STATE_OPEN);
	cr_expect_eq(stage_stop(), 0);
}

/* -d: what a load had made is there for the load. */
Test(super_grow, a_restart_in_a_load_keeps_the_queues_that_have_mail)
{
	start("-d", "queue_max = 4\n");
	cr_assert_eq(set_count(4), 0);
	wait_state(4, QUEUE_STATE_OPEN);
	put_file("queue3/incoming/0/4");
	cr_assert_eq(stage_stop(), 0);
	start("-d", "queue_max = 4\n");
	cr_expect_eq(state_of(2), QUEUE_STATE_NONE);
	cr_expect_eq(state_of(3), QUEUE_STATE_OPEN);
	cr_expect_eq(state_of(4), QUEUE_STATE_NONE);
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
	cr_expect(stage_logged("was made once and is not there"));
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
	cr_expect_eq(count_descriptors(), before);
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

/* The directory is ready when all are on their way out. */
Test(super_grow, P10_a_queue_that_comes_too_late_is_not_begun)
{
	int lock;

	stage_mode("queue-send", "hang");
	start("-d", "queue_max = 2\nstop_time_limit = 1s\n");
	/* The list cannot be written meanwhile. */
	lock = open(stage()->base, O_RDONLY | O_DIRECTORY);
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
	cr_expect_eq(count_descriptors(), before);
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
	cr_expect_eq(count_descriptors(), before);
	limit(RLIMIT_MSGQUEUE, 819200);
	wait_state(2, QUEUE_STATE_OPEN);
	cr_expect_eq(stage_stop(), 0);
}
