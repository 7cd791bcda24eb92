/* Queues that go, with the supervisor whole. */
#include <criterion/criterion.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
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

TestSuite(super_retire, .init = stage_init, .fini = stage_done, .timeout = 100);

Test(super_retire, what_is_left_is_handed_over_after_the_time)
{
	start("-d", "queue_max = 3\nqueue_drain_time = 0\n");
	cr_assert_eq(set_count(3), 0);
	wait_state(3, QUEUE_STATE_OPEN);
	put_file("queue3/hold/4");
	cr_assert_eq(set_count(2), 0);
	stage_hear("queue-send HAND_OVER 1 2 of");
	stage_page(&page);
	cr_expect_eq(page.rows[2].state, QUEUE_STATE_CLOSING);
	cr_expect(page.rows[2].flags & SCHED_ROW_EVACUATING);
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
Test(super_retire, P1_a_queue_send_that_died_giving_had_moved_files)
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

Test(super_retire, P1_queues_look_for_files_that_an_operator_moved)
{
	start("-d", "queue_max = 3\n");
	cr_assert_eq(set_count(2), 0);
	wait_state(2, QUEUE_STATE_OPEN);
	/* The next queue-send of 1 says so, and the other queue is told. */
	stage_mode("queue-send", "moved");
	stage_page(&page);
	kill((pid_t)page.rows[0].pid, SIGKILL);
	stage_hear("queue-send RESCAN");
	cr_expect_eq(stage_stop(), 0);
}

Test(super_retire, one_that_is_closing_is_opened_again_when_it_is_wanted)
{
	uint32_t generation;

	start("-d", "queue_max = 3\nqueue_drain_time = 0\n");
	cr_assert_eq(set_count(2), 0);
	wait_state(2, QUEUE_STATE_OPEN);
	generation = page.rows[1].generation;
	put_file("queue2/gate/maildrop/4.0123456789abcdef");
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
Test(super_retire, mail_that_comes_while_it_is_sealed_is_found)
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
	end = page.head.beat_mono + ticks * EVERY_TICK;
	while (page.head.beat_mono < end) {
		nanosleep(&between, NULL);
		stage_page(&page);
	}
}

/* Its disk does not take the mark: its processes are not driven in a circle. */
Test(super_retire, D1_a_queue_that_cannot_be_sealed_runs_on)
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
	cr_expect_eq((pid_t)page.rows[1].pid, stage_pid(stage()->said));
	cr_expect_eq(stage_stop(), 0);
}

Test(super_retire, D9_a_queue_that_cannot_be_run_again_is_no_flood)
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

Test(super_retire, a_retired_one_is_taken_again_without_its_mark)
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

Test(super_retire, mail_in_a_retired_directory_is_found)
{
	start("-d", "queue_max = 2\n");
	cr_assert_eq(set_count(2), 0);
	wait_state(2, QUEUE_STATE_OPEN);
	/* One that is closed at once may be ended before it can say a word. */
	stage_hear("todo-proc start");
	stage_hear("todo-proc start");
	cr_assert_eq(set_count(1), 0);
	wait_state(2, QUEUE_STATE_NONE);
	put_file("queue2/deferred/0/4"); /* a backup */
	kill(stage()->pid, SIGHUP);
	wait_state(2, QUEUE_STATE_CLOSING);
	stage_hear("todo-proc start");
	cr_expect_not(is_there("queue2/closed"));
	cr_assert_eq(unlink(path_of("queue2/deferred/0/4")), 0);
	wait_state(2, QUEUE_STATE_NONE);
	cr_expect_eq(stage_stop(), 0);
}

/* mutation: qscheduler/queues/disk.c: disk_sweep() passes by what cannot be
 * opened. */
Test(super_retire, P20_a_retired_directory_of_another_layout_is_seen)
{
	char aside[128];

	start("-d", "queue_max = 2\n");
	cr_assert_eq(set_count(2), 0);
	wait_state(2, QUEUE_STATE_OPEN);
	cr_assert_eq(set_count(1), 0);
	wait_state(2, QUEUE_STATE_NONE);
	snprintf(aside, sizeof(aside), "%s", path_of("aside"));
	cr_assert_eq(rename(path_of("queue2/deleted"), aside), 0);
	kill(stage()->pid, SIGHUP);
	stage_wait_log("/queue2: there is no directory deleted/; nothing was");
	wait_state(2, QUEUE_STATE_DISABLED);
	cr_expect_not(is_there("queue2/deleted"), "nothing was made");
	cr_assert_eq(rename(aside, path_of("queue2/deleted")), 0);
	kill(stage()->pid, SIGHUP);
	stage_wait_log("queue 2 is retired");
	wait_state(2, QUEUE_STATE_NONE);
	cr_expect_eq(stage_stop(), 0);
}

/* mutation: qscheduler/queues/inventory.c: settle() does not ask wanted. */
Test(super_retire, P20_a_queue_that_is_not_wanted_is_drained_after_its_fault)
{
	char aside[128];

	start("-s", "queue_count = 2\nqueue_max = 2\n");
	cr_assert_eq(stage_stop(), 0);
	snprintf(aside, sizeof(aside), "%s", path_of("aside"));
	cr_assert_eq(rename(path_of("queue2/prepared"), aside), 0);
	start("-s", "queue_count = 1\nqueue_max = 2\n");
	wait_state(2, QUEUE_STATE_DISABLED);
	cr_assert_eq(rename(aside, path_of("queue2/prepared")), 0);
	kill(stage()->pid, SIGHUP);
	stage_wait_log("queue 2 is retired");
	wait_state(2, QUEUE_STATE_NONE);
	cr_expect_eq(stage_stop(), 0);
}

/* ---- a supervisor that died in the midst of it ---- */

Test(super_retire, P2_a_mark_that_was_set_means_nothing_at_the_start)
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
Test(super_retire, a_mark_in_a_queue_that_is_open_is_taken_away)
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
Test(super_retire, a_restart_in_a_load_keeps_the_queues_that_have_mail)
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

/* A file as queue-send makes it. */
static void
put_own(const char *rest, time_t mtime)
{
	const struct timespec times[2] = { { mtime, 0 }, { mtime, 0 } };
	struct stat st;
	uid_t owner;

	cr_assert_eq(stat(path_of("queue1/deleted"), &st), 0);
	owner = st.st_uid;
	put_file(rest);
	cr_assert_eq(chown(path_of(rest), owner, (gid_t)-1), 0);
	cr_assert_eq(utimensat(AT_FDCWD, path_of(rest), times, 0), 0);
}

/* Deleted messages: 4, whose day is over, and 5, whose day goes on. */
static void
put_deleted(uint32_t queue)
{
	char rest[64];
	int i;

	for (i = 4; i <= 5; i++) {
		snprintf(rest, sizeof(rest), "queue%u/deleted/%d", queue, i);
		put_own(rest, 1);
		snprintf(
		    rest, sizeof(rest), "queue%u/defer/%d/%d", queue, i % 2, i);
		put_own(rest, i == 4 ? 1 : time(NULL) + 3600);
	}
}

static void
wait_gone(const char *rest)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000000 };

	while (is_there(rest))
		(void)nanosleep(&pause, NULL);
}

/* ---- a worker for many disks ---- */

#define HALF_LIMIT_MS 1000 /* of disk_time_limit = 2s */

static struct runs {
	_Atomic uint32_t n;
	pid_t pid[64]; /* the worker */
} * runs;

/* Each queue takes as long as a run may. */
static void
take_long(const char *task, uint32_t number UNUSED)
{
	const struct timespec took = { .tv_sec = HALF_LIMIT_MS / 1000,
		.tv_nsec = HALF_LIMIT_MS % 1000 * 1000000 };

	if (strcmp(task, "queue") != 0 || runs->n >= ARRAY_LEN(runs->pid))
		return;
	runs->pid[runs->n++] = getpid();
	(void)nanosleep(&took, NULL);
}

/* Each run does a queue, and the next run another one. */
Test(super_retire, A12_slow_disks_of_many_queues_are_no_hung_disk)
{
	static const char *const day[] = { "queue2/deleted/4",
		"queue3/deleted/4", "queue4/deleted/4" };
	uint32_t i;

	runs = mmap(NULL, sizeof(*runs), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(runs, MAP_FAILED);
	worker_seam = take_long;
	start("-d",
	    "queue_max = 4\nqueue_drain_time = 0\ndisk_time_limit = 2s\n");
	cr_assert_eq(set_count(4), 0);
	wait_state(4, QUEUE_STATE_OPEN);
	cr_assert_eq(set_count(1), 0);
	for (i = 2; i <= 4; i++)
		wait_state(i, QUEUE_STATE_NONE);
	for (i = 2; i <= 4; i++)
		put_deleted(i);
	while (is_there(day[0]) || is_there(day[1]) || is_there(day[2])) {
		const struct timespec pause = { .tv_nsec = 300 * 1000000 };

		kill(stage()->pid, SIGHUP);
		(void)nanosleep(&pause, NULL);
	}
	cr_expect_eq(stage_stop(), 0);
	for (i = 1; i < runs->n; i++)
		cr_expect_neq(runs->pid[i], runs->pid[i - 1], "run %u", i);
	cr_expect_not(stage_logged("ALERT"));
}

Test(super_retire, A12_the_day_of_deleted_mail_ends_without_a_queue_send)
{
	int lock;

	start("-d", "queue_max = 3\nqueue_drain_time = 0\n");
	cr_assert_eq(set_count(3), 0);
	wait_state(3, QUEUE_STATE_OPEN);
	cr_assert_eq(set_count(1), 0);
	wait_state(2, QUEUE_STATE_NONE);
	wait_state(3, QUEUE_STATE_NONE);
	put_deleted(1);
	put_deleted(2);
	put_deleted(3);
	put_own("queue3/bounce/0/6", 1); /* of no message */
	put_own("queue2/lock/queue-send", 1);
	lock = open(path_of("queue2/lock/queue-send"), O_RDONLY | O_CLOEXEC);
	cr_assert_geq(lock, 0);
	cr_assert_eq(flock(lock, LOCK_EX), 0);
	kill(stage()->pid, SIGHUP);
	wait_gone("queue3/bounce/0/6");
	cr_expect_not(is_there("queue3/deleted/4"));
	cr_expect_not(is_there("queue3/defer/0/4"));
	cr_expect(is_there("queue3/deleted/5"), "its day goes on");
	cr_expect(is_there("queue3/defer/1/5"));
	cr_expect(is_there("queue1/deleted/4"), "it runs");
	cr_expect(is_there("queue2/deleted/4"), "another process acts on it");
	close(lock);
	stage_wait_log("reloaded");
	kill(stage()->pid, SIGHUP);
	wait_gone("queue2/deleted/4");
	cr_expect_eq(stage_stop(), 0);
}
