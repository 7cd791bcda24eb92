/* What lies in the message queue of a supervisor that runs. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "fake.h"
#include "ipc/ask.h"

TestSuite(
    super_requests, .init = stage_init, .fini = stage_done, .timeout = 60);

static mqd_t
open_requests(void)
{
	char name[IPC_NAME_MAX];
	mqd_t mq;

	ipc_name_scheduler(stage()->instance, name);
	mq = mq_open(name, O_WRONLY | O_CLOEXEC);
	cr_assert(mq >= 0);
	return mq;
}

/* Answered when all before it was taken. */
static void
ask_something(void)
{
	static uint32_t nonce;
	struct msg msg = { .type = MSG_ENABLE,
		.u.ENABLE = { (uint32_t)getpid(), ++nonce, 1 } };
	char text[SCHED_ANSWER_SIZE];
	int code = 1;

	cr_assert_eq(
	    ask_request(&(struct ask_question){ stage()->instance, NULL, &msg,
			    nonce, false, 120 * USEC_PER_SEC },
		&code, text),
	    0);
	cr_expect_eq(code, 0, "%s", text);
}

static uint64_t
bad_requests(struct sched_page *page)
{
	stage_page(page);
	return page->bad_requests;
}

/* Every length there is, and again: counted, and nothing else. */
Test(super_requests, I7_garbage_of_any_length)
{
	static struct sched_page before, after;
	char record[MQ_MESSAGE_SIZE];
	uint64_t sent = 0, logged;
	size_t len, i;
	int round;
	mqd_t mq;

	stage_start("-s");
	stage_wait_ready();
	mq = open_requests();
	ask_something();
	cr_expect_eq(bad_requests(&before), 0);
	logged = stage()->logged_len;
	srandom(7);
	for (round = 0; round < 4; round++)
		for (len = 0; len <= MQ_MESSAGE_SIZE; len++) {
			for (i = 0; i < len; i++)
				record[i] = round == 0 ? 0
				    : round == 1       ? (char)0xff
						       : (char)random();
			cr_assert_eq(mq_send(mq, record, len, 0), 0);
			sent++;
		}
	ask_something();
	cr_expect_eq(bad_requests(&after), sent);
	cr_expect_eq(after.qcount, before.qcount);
	cr_expect_eq(memcmp(after.rows[0].reason, before.rows[0].reason,
			 sizeof(after.rows[0].reason)),
	    0);
	cr_expect_eq(after.rows[0].flags, before.rows[0].flags);
	cr_expect_eq(
	    after.rows[0].reported_load_pct, before.rows[0].reported_load_pct);
	mq_close(mq);
	cr_expect_eq(stage_stop(), 0);
	cr_expect_lt(stage()->logged_len - logged, 2000, "a flood");
}

/* Reports of 16 bytes whose queue is none. */
Test(super_requests, an_unchecked_queue_number_from_the_message_queue)
{
	static const uint32_t queues[] = { 0, 2, 255, 256, 257, 4095, 65536,
		INT32_MAX, UINT32_MAX };
	static struct sched_page page;
	size_t i;
	mqd_t mq;

	stage_start("-s");
	stage_wait_ready();
	mq = open_requests();
	for (i = 0; i < ARRAY_LEN(queues); i++) {
		const struct load_report r = { getpid(), queues[i], 95 };

		cr_assert_eq(mq_send(mq, (const char *)&r, sizeof(r), 0), 0);
	}
	ask_something();
	cr_expect_eq(bad_requests(&page), ARRAY_LEN(queues));
	cr_expect_eq(page.rows[0].reported_load_pct, 0);
	mq_close(mq);
	cr_expect_eq(stage_stop(), 0);
}

/* A full queue, again and again: each asker gets its answer. */
Test(super_requests, I1_many_askers_at_once)
{
	int i, status, failed = 0;

	stage_start("-s");
	stage_wait_ready();
	for (i = 0; i < 40; i++) {
		pid_t pid = fork();

		cr_assert_geq(pid, 0);
		if (pid == 0) {
			ask_something();
			_exit(0);
		}
	}
	for (i = 0; i < 40; i++) {
		cr_assert_gt(wait(&status), 0);
		failed += status != 0;
	}
	cr_expect_eq(failed, 0);
	cr_expect_eq(stage_stop(), 0);
}
