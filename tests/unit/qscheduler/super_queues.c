/* Which queues are run, and their objects, with the supervisor whole. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake.h"
#include "ipc/ask.h"
#include "ipc/bell.h"
#include "ipc/names.h"
#include "ipc/page.h"
#include "qscheduler/ground/ground.h"

TestSuite(super_queues, .init = stage_init, .fini = stage_done, .timeout = 100);

static struct sched_page page;

/* A row of no queue when there is none. */
static const struct sched_row *
row_of(uint32_t queue)
{
	static const struct sched_row none;
	size_t i;

	stage_page(&page);
	for (i = 0; i < PAGE_QUEUES_MAX; i++)
		if (page.rows[i].queue == queue)
			return &page.rows[i];
	return &none;
}

static bool
has_row(uint32_t queue)
{
	return row_of(queue)->queue == queue;
}

static const char *
path_of(const char *rest)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", stage()->base, rest);
	return path;
}

static void
run_once(void)
{
	stage_start("-s");
	stage_wait_ready();
	cr_assert_eq(stage_stop(), 0);
}

Test(super_queues, D19_a_queue_that_vanished_is_disabled_and_comes_back)
{
	char aside[128];
	struct stat st;

	stage_conf("queue_count = 2");
	run_once();
	snprintf(aside, sizeof(aside), "%s/aside", stage()->dir);
	cr_assert_eq(rename(path_of("queue2"), aside), 0);

	stage_start("-s");
	stage_wait_ready();
	cr_expect(
	    stage_logged("ALERT: queue 2 is disabled"), "%s", stage()->logged);
	cr_expect_eq(row_of(1)->state, QUEUE_STATE_OPEN);
	cr_expect_eq(row_of(2)->state, QUEUE_STATE_DISABLED);
	cr_expect_eq(stat(path_of("queue2"), &st), -1);

	cr_assert_eq(rename(aside, path_of("queue2")), 0);
	kill(stage()->pid, SIGHUP);
	stage_wait_log("queue 2 is enabled again");
	cr_expect_eq(stage_stop(), 0);
}

Test(super_queues, D19_a_directory_without_marker_is_not_filled)
{
	stage_conf("queue_count = 2");
	run_once();
	cr_assert_eq(unlink(path_of("queue1/queue")), 0);
	stage_start("-s");
	stage_wait_ready();
	cr_expect_eq(row_of(1)->state, QUEUE_STATE_DISABLED);
	cr_expect_eq(row_of(2)->state, QUEUE_STATE_OPEN);
	cr_expect_eq(access(path_of("queue1/queue"), F_OK), -1);
	cr_expect_eq(stage_stop(), 0);
}

Test(super_queues, D19_a_queue_that_vanishes_while_it_runs)
{
	char aside[128];

	stage_conf("queue_count = 2");
	stage_start("-s");
	stage_wait_ready();
	snprintf(aside, sizeof(aside), "%s/aside", stage()->dir);
	cr_assert_eq(rename(path_of("queue2"), aside), 0);
	kill(stage()->pid, SIGHUP);
	stage_wait_log("ALERT: queue 2 is disabled: its directory is gone");
	cr_expect_eq(stage_stop(), 0);
}

/* mutation: qscheduler/queues/health.c: on_check() passes by -EMEDIUMTYPE. */
Test(super_queues, P20_a_queue_that_loses_a_directory_while_it_runs)
{
	char aside[128];

	stage_conf("queue_count = 2");
	stage_start("-s");
	stage_wait_ready();
	snprintf(aside, sizeof(aside), "%s/aside", stage()->dir);
	cr_assert_eq(rename(path_of("queue2/prepared"), aside), 0);
	kill(stage()->pid, SIGHUP);
	stage_wait_log("/queue2: there is no directory prepared/; nothing was");
	cr_expect_eq(access(path_of("queue2/prepared"), F_OK), -1);
	cr_expect_eq(stage_stop(), 0);
}

static void
write_list(const char *text)
{
	FILE *f = fopen(path_of("queues"), "w");

	cr_assert(f != NULL);
	fputs(text, f);
	cr_assert_eq(fclose(f), 0);
}

Test(super_queues, D19_a_line_taken_out_is_a_queue_made_anew)
{
	char aside[128];

	stage_conf("queue_count = 2");
	run_once();
	snprintf(aside, sizeof(aside), "%s/aside", stage()->dir);
	cr_assert_eq(rename(path_of("queue2"), aside), 0);
	write_list("# the second is gone for good\n1\n");
	stage_start("-s");
	stage_wait_ready();
	cr_expect_eq(row_of(2)->state, QUEUE_STATE_OPEN);
	cr_expect_eq(access(path_of("queue2/queue"), F_OK), 0);
	cr_expect_eq(stage_stop(), 0);
}

/* More than are looked at together. */
Test(super_queues, D19_the_last_of_many_that_are_lost_comes_back)
{
	const int last = WORKERS_MAX + 4;
	char conf[60], list[200] = "", told[40];
	size_t before = 0, n = 0;
	int i;

	run_once();
	for (i = 1; i <= last; i++) {
		before = n;
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%d\n", i);
	}
	write_list(list);
	snprintf(
	    conf, sizeof(conf), "queue_count = %d\nqueue_max = %d", last, last);
	stage_conf(conf);
	stage_start("-s");
	stage_wait_ready();
	cr_expect_eq(row_of((uint32_t)last)->state, QUEUE_STATE_DISABLED);
	list[before] = '\0';
	write_list(list);
	kill(stage()->pid, SIGHUP);
	snprintf(told, sizeof(told), "queue %d is enabled again", last);
	stage_wait_log(told);
	cr_expect_eq(stage_stop(), 0);
}

Test(super_queues, a_damaged_list_stops_the_start)
{
	run_once();
	write_list("1\n2x\n");
	stage_start("-s");
	cr_expect_eq(stage_finish(), EXIT_PERMANENT);
	cr_expect(stage_logged("queues:2: not a queue number"), "%s",
	    stage()->logged);
}

static void
put_file(const char *where)
{
	int fd = open(where, O_WRONLY | O_CREAT, 0600);

	cr_assert(fd >= 0);
	close(fd);
}

Test(super_queues, D20_a_queue_with_mail_is_run_whatever_the_count)
{
	stage_conf("queue_count = 4");
	run_once();
	put_file(path_of("queue3/deferred/1/4711"));
	put_file(path_of("queue4/hold/4711"));
	put_file(path_of("queue2/corrupt/4711")); /* that is for a person */
	stage_conf("queue_count = 1");
	stage_start("-s");
	stage_wait_ready();
	cr_expect_eq(row_of(1)->state, QUEUE_STATE_OPEN);
	cr_expect_not(has_row(2));
	cr_assert(has_row(3));
	cr_expect_eq(row_of(3)->state, QUEUE_STATE_CLOSING);
	cr_expect_eq(row_of(4)->state, QUEUE_STATE_CLOSING);
	cr_expect_eq(page.qcount, 1);
	cr_expect_eq(page.qconf, 4);
	cr_expect_eq(stage_stop(), 0);
}

Test(super_queues, keep_runs_what_is_there)
{
	stage_conf("queue_count = 3");
	run_once();
	stage_conf("queue_count = 1");
	stage_start("-n");
	stage_wait_ready();
	cr_assert(has_row(3));
	cr_expect_eq(row_of(3)->state, QUEUE_STATE_OPEN);
	cr_expect_eq(stage_stop(), 0);
}

/* mutation: is_there() does not look at the mark. */
Test(super_queues, keep_runs_no_queue_that_was_retired)
{
	stage_conf("queue_count = 4");
	run_once();
	put_file(path_of("queue2/closed"));
	put_file(path_of("queue3/closed"));
	put_file(path_of("queue3/deferred/1/4711"));
	stage_start("-n");
	stage_wait_ready();
	cr_expect_eq(row_of(1)->state, QUEUE_STATE_OPEN);
	cr_expect_not(has_row(2));
	cr_assert(has_row(3));
	cr_expect_eq(row_of(3)->state, QUEUE_STATE_CLOSING);
	cr_expect_eq(row_of(4)->state, QUEUE_STATE_OPEN);
	cr_expect_eq(stage_stop(), 0);
}

/* mutation: is_any_there() does not look at the mark. */
Test(super_queues, keep_makes_queue_count_where_all_were_retired)
{
	stage_conf("queue_count = 2");
	run_once();
	put_file(path_of("queue1/closed"));
	put_file(path_of("queue2/closed"));
	stage_start("-n");
	stage_wait_ready();
	cr_assert(has_row(2));
	cr_expect_eq(row_of(1)->state, QUEUE_STATE_OPEN);
	cr_expect_eq(row_of(2)->state, QUEUE_STATE_OPEN);
	cr_expect_eq(stage_stop(), 0);
}

Test(super_queues, keep_makes_queue_count_at_first)
{
	stage_conf("queue_count = 2\nqueue_start = 5");
	stage_start("-n");
	stage_wait_ready();
	cr_expect(has_row(5));
	cr_expect(has_row(6));
	cr_expect_not(has_row(7));
	cr_expect_eq(stage_stop(), 0);
}

Test(super_queues, I8_an_unlinked_bell_is_made_again_and_linked)
{
	char name[IPC_NAME_MAX];

	stage_start("-s");
	stage_wait_ready();
	stage_hear("todo-proc LINK bell");
	ipc_name_queue(stage()->instance, 1, name);
	cr_assert_eq(mq_unlink(name), 0);
	kill(stage()->pid, SIGHUP);
	stage_hear("todo-proc LINK bell");
	cr_expect_eq(mq_unlink(name), 0);
	cr_expect_eq(stage_stop(), 0);
}

Test(super_queues, a_page_that_was_unlinked_is_made_again_and_linked)
{
	char name[IPC_NAME_MAX];

	stage_start("-s");
	stage_wait_ready();
	stage_hear("queue-send LINK page");
	ipc_name_queue(stage()->instance, 1, name);
	cr_assert_eq(shm_unlink(name), 0);
	kill(stage()->pid, SIGHUP);
	stage_hear("queue-send LINK page");
	cr_expect_eq(shm_unlink(name), 0);
	cr_expect_eq(stage_stop(), 0);
}

/* What children read is what was accepted last. */
static bool
in_force_has(const char *line)
{
	char text[16384];
	FILE *f = fopen(path_of("conf"), "r");
	size_t n;

	cr_assert(f != NULL);
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	return strstr(text, line) != NULL;
}

Test(super_queues, F1_children_read_the_configuration_in_force)
{
	stage_conf("queue_load = 40");
	stage_start("-s");
	stage_wait_ready();
	cr_expect(in_force_has("\nqueue_load = 40%"));
	stage_conf("queue_load = 400");
	kill(stage()->pid, SIGHUP);
	stage_wait_log("the old configuration stays in force");
	cr_expect(in_force_has("\nqueue_load = 40%"));
	stage_conf("queue_load = 50\nqueue_max = 30");
	kill(stage()->pid, SIGHUP);
	stage_wait_log("configuration reloaded");
	cr_expect(stage_logged("needs a restart: queue_max"));
	cr_expect(in_force_has("\nqueue_load = 50%"));
	cr_expect(in_force_has("\nqueue_max = 20"));
	cr_expect_eq(stage_stop(), 0);
	cr_expect(in_force_has("\nqueue_load = 50%"), "for the next start");
}

Test(super_queues, pages_and_requests_are_made_again)
{
	char name[IPC_NAME_MAX];

	stage_start("-s");
	stage_wait_ready();
	stage_hear("queue-send LINK qscheduler");
	ipc_name_scheduler(stage()->instance, name);
	cr_assert_eq(mq_unlink(name), 0);
	cr_assert_eq(shm_unlink(name), 0);
	kill(stage()->pid, SIGHUP);
	stage_hear("queue-send LINK qscheduler");
	stage_wait_log("made again");
	cr_expect(has_row(1));
	cr_expect_eq(stage_stop(), 0);
}

/* I15: what a crash left, of any shape, is replaced. */
Test(super_queues, I15_stale_objects_are_replaced)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 1 };
	char name[IPC_NAME_MAX];
	struct queue_page queue;
	int fd, i;

	for (i = 0; i < 2; i++) {
		if (i == 0)
			ipc_name_queue(stage()->instance, 1, name);
		else
			ipc_name_scheduler(stage()->instance, name);
		fd = shm_open(name, O_RDWR | O_CREAT, 0600);
		cr_assert(fd >= 0);
		cr_assert_eq(write(fd, "short", 5), 5);
		close(fd);
		fd = mq_open(name, O_RDONLY | O_CREAT, 0600, &attr);
		cr_assert(fd >= 0);
		mq_close(fd);
	}
	stage_start("-s");
	stage_wait_ready();
	cr_expect(has_row(1));
	cr_expect_eq(queue_page_read(stage()->instance, 1, &queue), 0);
	cr_expect_eq(stage_stop(), 0);
	cr_expect_not(stage_object_there("queue1"));
}

static int
ask_load(int queue, uint32_t used, uint32_t limit, char text[SCHED_ANSWER_SIZE])
{
	static uint32_t nonce;
	struct msg msg = { .type = MSG_SET_LOAD_FOR,
		.u.SET_LOAD_FOR = { .pid = (uint32_t)getpid(),
		    .nonce = ++nonce,
		    .queue = queue,
		    .local_used = used,
		    .local_limit = limit } };
	int code = 1;

	cr_assert_eq(
	    ask_request(&(struct ask_question){ stage()->instance, NULL, &msg,
			    nonce, false, 120 * USEC_PER_SEC },
		&code, text),
	    0);
	return code;
}

Test(super_queues, I7_requests_are_judged_and_answered)
{
	const struct load_report good = { getpid(), 1, 55 };
	const struct load_report bad = { getpid(), 77, 55 };
	char name[IPC_NAME_MAX], text[SCHED_ANSWER_SIZE];
	mqd_t mq;

	stage_start("-s");
	stage_wait_ready();
	ipc_name_scheduler(stage()->instance, name);
	mq = mq_open(name, O_WRONLY);
	cr_assert(mq >= 0);
	cr_assert_eq(mq_send(mq, "junk", 4, 0), 0);
	cr_assert_eq(mq_send(mq, "", 0, 0), 0);
	cr_assert_eq(load_report_put(mq, &good), 0);
	cr_assert_eq(load_report_put(mq, &bad), 0);
	cr_expect_eq(ask_load(1, 45, 60, text), 0);
	cr_expect_str_eq(text, "queue 1: load 75 % for 1m");
	cr_expect_eq(row_of(1)->load_pct, 75);
	cr_expect(row_of(1)->manual_until_mono > 0);
	cr_expect_eq(ask_load(2, 45, 60, text), -ENOENT);
	cr_expect_eq(ask_load(-1, 45, 60, text), -ENOENT);
	cr_expect_eq(ask_load(1, 61, 60, text), -ERANGE);
	cr_expect_eq(ask_load(1, 0, 0, text), -EINVAL);
	cr_expect_eq(ask_load(1, 10, 100, text), 0);
	cr_expect_eq(page.rows[0].load_pct, 75);
	cr_expect_eq(row_of(1)->load_pct, 10);
	cr_expect_eq(row_of(1)->reported_load_pct, 55);
	cr_expect_eq(page.bad_requests, 7);
	mq_close(mq);
	cr_expect_eq(stage_stop(), 0);
}

Test(super_queues, objects_have_their_owner_and_mode)
{
	char name[IPC_NAME_MAX];
	struct stat st;
	int fd;

	stage_start("-s");
	stage_wait_ready();
	ipc_name_queue(stage()->instance, 1, name);
	fd = shm_open(name, O_RDONLY, 0);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0644);
	if (geteuid() == 0)
		cr_expect_eq(st.st_uid, 9); /* news, as base-passwd has it */
	fd = mq_open(name, O_RDONLY);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0640);
	ipc_name_scheduler(stage()->instance, name);
	fd = shm_open(name, O_RDONLY, 0);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0644);
	fd = mq_open(name, O_RDONLY);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
	cr_expect_eq(stage_stop(), 0);
}
