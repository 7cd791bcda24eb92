#include "ipc/ask.h"

#include "base/clock.h"
#include "ipc/names.h"
#include "ipc_scratch.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ask_socket ours = { .fd = -1, .base = -1 };
static struct ask ask;

static void
make_supervisor(void)
{
	cr_assert_eq(ask_socket_open(ipc_scratch(), -1, (gid_t)-1, &ours), 0);
}

static void
done(void)
{
	ask_socket_close(ipc_scratch(), &ours);
	ipc_scratch_done();
}

TestSuite(ipc_ask, .fini = done, .timeout = 60);

static const struct msg *
set_load(void)
{
	static struct msg msg;

	msg = (struct msg){
		.type = MSG_SET_LOAD_FOR,
		.u.SET_LOAD_FOR = {
			.pid = (uint32_t)getpid(),
			.nonce = 77,
			.queue = 3,
			.local_used = 45,
			.local_limit = 100,
		},
	};
	return &msg;
}

static int
ask_for(const char *instance, usec_t limit, int *ret_code,
    char text[SCHED_ANSWER_SIZE])
{
	return ask_request(&(struct ask_question){ instance, NULL, set_load(),
			       77, false, limit },
	    ret_code, text);
}

Test(ipc_ask, load_report)
{
	const struct load_report report = { 4711, 3, 95 };
	struct load_report got;
	char name[IPC_NAME_MAX];
	uint32_t depth;
	mqd_t mq;

	ipc_name_scheduler(ipc_scratch(), name);
	cr_assert_eq(mq_create(name, &(struct mq_shape){ 10, MQ_MESSAGE_SIZE },
			 (uid_t)-1, (gid_t)-1, 0600, &mq, &depth),
	    0);
	cr_expect_eq(mq_take(mq, &got, sizeof(got)), 0);
	cr_expect_eq(load_report_put(mq, &report), 0);
	cr_assert_eq(mq_send(mq, "seventeen bytes..", 17, 0), 0);
	cr_assert_eq(mq_take(mq, &got, sizeof(got)), 1);
	cr_expect_eq(got.pid, 4711);
	cr_expect_eq(got.queue, 3);
	cr_expect_eq(got.load_pct, 95);
	cr_expect_eq(mq_take(mq, &got, sizeof(got)), -EBADMSG);
	while (load_report_put(mq, &report) == 0)
		;
	cr_expect_eq(load_report_put(mq, &report), -EAGAIN);
}

/* A supervisor that answers one request, and before it somebody else's. */
static _Noreturn void
answer_one(int code, const char *text)
{
	struct pollfd fd = { ours.fd, POLLIN, 0 };
	struct sched_answer answer = { 1, 2, 3, "to somebody else" };

	if (poll(&fd, 1, 120000) != 1 || ask_socket_take(ours.fd, &ask) != 1)
		_exit(1);
	ask_socket_answer(ours.fd, &ask.from.address, &answer);
	answer = (struct sched_answer){ ask.msg.u.SET_LOAD_FOR.pid,
		ask.msg.u.SET_LOAD_FOR.nonce, code, "" };
	memset(answer.text, *text, sizeof(answer.text)); /* without its end */
	ask_socket_answer(ours.fd, &ask.from.address, &answer);
	_exit(0);
}

Test(ipc_ask, asked_and_answered)
{
	char text[SCHED_ANSWER_SIZE] = "";
	int code = 1, status;
	pid_t pid;

	make_supervisor();
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0)
		answer_one(-ENOENT, "x");
	cr_expect_eq(ask_for(ipc_scratch(), 10 * USEC_PER_SEC, &code, text), 0);
	cr_expect_eq(code, -ENOENT);
	cr_expect_eq(strlen(text), SCHED_ANSWER_SIZE - 1);
	cr_expect_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
}

Test(ipc_ask, nobody_answers)
{
	char text[SCHED_ANSWER_SIZE];
	int code, r, i;

	make_supervisor();
	cr_expect_eq(ask_for(ipc_scratch(), 1, &code, text), -ETIMEDOUT);
	for (i = 0, r = 0; i < 10000 && r != -EAGAIN; i++)
		r = ask_for(ipc_scratch(), 1, &code, text);
	cr_expect_eq(r, -EAGAIN, "full");
	cr_expect_eq(ask_for("another-one", 1, &code, text), -ENOENT);
}

/* A request that is sent later is void. mutation: ask() gives the wait for room
 * the whole limit. */
Test(ipc_ask, I8_the_wait_for_room_is_a_part_of_the_limit)
{
	const usec_t limit = 5 * USEC_PER_SEC;
	char text[SCHED_ANSWER_SIZE];
	int code, r, i;
	usec_t start;

	make_supervisor();
	for (i = 0, r = 0; i < 10000 && r != -EAGAIN; i++)
		r = ask_for(ipc_scratch(), 1, &code, text);
	start = clock_mono();
	cr_expect_eq(ask_for(ipc_scratch(), limit, &code, text), -EAGAIN);
	cr_expect_lt(clock_mono() - start, limit);
}

/* A supervisor that answers with what was not asked, and does not end. */
static _Noreturn void
answer_others(pid_t parent)
{
	const struct sched_answer answer = { 1, 2, 3, "to somebody else" };
	struct pollfd fd = { ours.fd, POLLIN, 0 };

	if (poll(&fd, 1, 120000) != 1 || ask_socket_take(ours.fd, &ask) != 1)
		_exit(1);
	while (getppid() == parent) {
		ask_socket_answer(ours.fd, &ask.from.address, &answer);
		(void)poll(NULL, 0, 1);
	}
	_exit(0);
}

/* mutation: hear() waits for each datagram as long as for the first. */
Test(ipc_ask, I8_other_answers_do_not_lengthen_the_wait)
{
	const pid_t self = getpid();
	char text[SCHED_ANSWER_SIZE];
	int code;
	pid_t pid;

	make_supervisor();
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0)
		answer_others(self);
	cr_expect_eq(
	    ask_for(ipc_scratch(), USEC_PER_SEC, &code, text), -ETIMEDOUT);
	cr_expect_eq(kill(pid, SIGKILL), 0);
	cr_expect_eq(waitpid(pid, NULL, 0), pid);
}

/* What setqload has called failed does not happen when the supervisor can act
 * again. mutation: unwrap() does not look at the time. */
Test(ipc_ask, I8_a_request_that_nobody_waits_for_is_void)
{
	char text[SCHED_ANSWER_SIZE];
	int code;

	make_supervisor();
	cr_expect_eq(ask_for(ipc_scratch(), 50 * USEC_PER_MSEC, &code, text),
	    -ETIMEDOUT);
	cr_expect_eq(ask_socket_take(ours.fd, &ask), -ETIME);
	cr_expect_eq(ask_socket_take(ours.fd, &ask), 0);
}

static int
ask_as_nobody(void *arg)
{
	char text[SCHED_ANSWER_SIZE];
	int code;

	return -ask_for(arg, 1, &code, text);
}

Test(ipc_ask, X4_no_permission)
{
	char instance[32];

	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	snprintf(instance, sizeof(instance), "%s", ipc_scratch());
	make_supervisor();
	cr_expect_eq(ipc_as_nobody(ask_as_nobody, instance), EACCES);
}

/* Whatever is sent is taken and refused, and what follows is read. */
Test(ipc_ask, I7_bad_frames)
{
	const struct msg other = { .type = MSG_FLUSH };
	struct buf frames[3] = { { 0 } };
	size_t i;
	int fd;

	make_supervisor();
	cr_assert_eq(msg_encode(&other, &frames[0]), 0); /* not of link ASK */
	cr_assert_eq(msg_encode(set_load(), &frames[1]), 0);
	frames[1].len--;
	cr_assert_eq(msg_encode(set_load(), &frames[2]), 0);
	cr_assert_eq(ask_socket_connect(ipc_scratch(), NULL, &fd), 0);
	for (i = 0; i < ARRAY_LEN(frames); i++) {
		cr_assert_eq(send(fd, frames[i].data, frames[i].len, 0),
		    (ssize_t)frames[i].len);
		cr_expect_eq(ask_socket_take(ours.fd, &ask),
		    i < 2 ? -EBADMSG : 1, "%zu", i);
		buf_done(&frames[i]);
	}
	close(fd);
}

Test(ipc_ask, every_request_fits)
{
	static const enum msg_type all[] = {
#define MSG(NAME, number, link, fields) MSG_##NAME,
#include "ipc/msg.def"
#undef MSG
	};
	struct buf frame = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(all); i++) {
		const struct msg empty = { .type = all[i] };

		if (msg_link(all[i]) != MSG_LINK_ASK)
			continue;
		buf_reset(&frame);
		cr_assert_eq(msg_encode(&empty, &frame), 0);
		cr_expect_leq(
		    frame.len, ASK_MESSAGE_SIZE, "%s", msg_name(all[i]));
	}
	buf_done(&frame);
}

Test(ipc_ask, A7_reasons_that_can_be_shown_and_cannot)
{
	static const struct {
		const char *reason;
		bool good;
	} rows[] = {
		{ "", true },
		{ "new disk", true },
		{ "Platte getauscht: \xc3\xa4\xc3\xb6", true },
		{ "\x1b[2J", false },
		{ "two\nlines", false },
		{ "a\ttab", false },
		{ "\x7f", false },
		{ "\xc2\x9b"
		  "31m",
		    false },
		{ "half \xc3", false },
		{ "\xff", false },
	};
	char text[SCHED_REASON_SIZE + 1];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(ask_judge_reason(rows[i].reason,
				 strlen(rows[i].reason)) == NULL,
		    rows[i].good, "row %zu", i);
	memset(text, 'x', sizeof(text));
	cr_expect_null(ask_judge_reason(text, SCHED_REASON_SIZE - 1));
	cr_expect_not_null(ask_judge_reason(text, SCHED_REASON_SIZE));
	cr_expect_not_null(ask_judge_reason("a\0b", 3), "NUL");
}
