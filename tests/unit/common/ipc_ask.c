#include "ipc/ask.h"

#include "base/clock.h"
#include "ipc/names.h"
#include "ipc/page.h"
#include "ipc_scratch.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(ipc_ask, .fini = ipc_scratch_done, .timeout = 60);

static const struct page_owner own = { (uid_t)-1, (gid_t)-1, 0644 };
static struct sched_page *page;
static mqd_t mq;
static struct ask ask;

static void
make_supervisor(void)
{
	char name[IPC_NAME_MAX];
	uint32_t depth, pid;
	void *p = NULL;
	int fd;

	ipc_name_scheduler(ipc_scratch(), name);
	cr_assert_eq(page_create(name, sizeof(*page), SCHED_PAGE_MAGIC, &own,
			 &p, &fd, &pid),
	    0);
	page = p;
	cr_assert_eq(mq_create(name, &(struct mq_shape){ 10, ASK_MESSAGE_SIZE },
			 (uid_t)-1, (gid_t)-1, 0600, &mq, &depth),
	    0);
}

static struct msg
set_load(void)
{
	return (struct msg){
		.type = MSG_SET_LOAD,
		.u.SET_LOAD = {
			.pid = (uint32_t)getpid(),
			.nonce = 77,
			.queue = 3,
			.local_used = 45,
			.local_limit = 100,
			.remote_used = 45,
			.remote_limit = 100,
		},
	};
}

Test(ipc_ask, load_report)
{
	const struct load_report report = { 4711, 3, 95 };

	make_supervisor();
	cr_expect_eq(ask_take(mq, &ask), 0);
	cr_expect_eq(load_report_put(mq, &report), 0);
	cr_assert_eq(ask_take(mq, &ask), 1);
	cr_expect_eq(ask.report.pid, 4711);
	cr_expect_eq(ask.report.queue, 3);
	cr_expect_eq(ask.report.load_pct, 95);
	while (load_report_put(mq, &report) == 0)
		;
	cr_expect_eq(load_report_put(mq, &report), -EAGAIN);
}

/* A supervisor that answers one request. */
static void
answer_one(int code, const char *text)
{
	struct pollfd fd = { mq, POLLIN, 0 };

	if (poll(&fd, 1, 120000) != 1 || ask_take(mq, &ask) != 2)
		_exit(1);
	page_write_begin(&page->head);
	ask_answer(page, 1, 2, 3, "to somebody else");
	ask_answer(
	    page, ask.msg.u.SET_LOAD.pid, ask.msg.u.SET_LOAD.nonce, code, text);
	page_write_end(&page->head, 1, 1);
	_exit(0);
}

Test(ipc_ask, asked_and_answered)
{
	const struct msg request = set_load();
	char text[SCHED_ANSWER_SIZE] = "", words[2 * SCHED_ANSWER_SIZE];
	int code = 1, status;
	pid_t pid;

	make_supervisor();
	pid = fork();
	cr_assert_geq(pid, 0);
	memset(words, 'x', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	if (pid == 0)
		answer_one(-ENOENT, words); /* longer than its room */
	cr_expect_eq(ask_request(ipc_scratch(), NULL, &request, 77,
			 10 * USEC_PER_SEC, &code, text),
	    0);
	cr_expect_eq(code, -ENOENT);
	cr_expect_eq(strlen(text), SCHED_ANSWER_SIZE - 1);
	cr_expect_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
}

Test(ipc_ask, nobody_answers)
{
	const struct msg request = set_load();
	char text[SCHED_ANSWER_SIZE];
	int code, i;

	make_supervisor();
	for (i = 0; i < PAGE_ANSWERS + 1; i++)
		ask_answer(page, 1, 77, 0, "");
	cr_expect_eq(
	    ask_request(ipc_scratch(), NULL, &request, 77, 1, &code, text),
	    -ETIMEDOUT);
	while (mq_send(mq, "", 0, 0) == 0)
		;
	cr_expect_eq(
	    ask_request(ipc_scratch(), NULL, &request, 77, 1, &code, text),
	    -EAGAIN);
	cr_expect_eq(
	    ask_request("another-one", NULL, &request, 77, 1, &code, text),
	    -ENOENT);
}

/* What setqload has called failed does not happen when the supervisor can act
 * again. mutation: unwrap() does not look at the time. */
Test(ipc_ask, I8_a_request_that_nobody_waits_for_is_void)
{
	const struct msg request = set_load();
	char text[SCHED_ANSWER_SIZE];
	int code;

	make_supervisor();
	cr_expect_eq(ask_request(ipc_scratch(), NULL, &request, 77,
			 50 * USEC_PER_MSEC, &code, text),
	    -ETIMEDOUT);
	cr_expect_eq(ask_take(mq, &ask), -ETIME);
	cr_expect_eq(ask_take(mq, &ask), 0);
}

Test(ipc_ask, longer_than_a_record)
{
	char large[ASK_MESSAGE_SIZE], text[SCHED_ANSWER_SIZE];
	const struct msg request = { .type = MSG_STATUS,
		.u.STATUS.text = { large, sizeof(large) } };
	int code;

	memset(large, 'x', sizeof(large));
	make_supervisor();
	cr_expect_eq(
	    ask_request(ipc_scratch(), NULL, &request, 77, 1, &code, text),
	    -EMSGSIZE);
}

static int
ask_as_nobody(void *arg)
{
	const struct msg request = set_load();
	char text[SCHED_ANSWER_SIZE];
	int code;

	return -ask_request(arg, NULL, &request, 77, 1, &code, text);
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
Test(ipc_ask, I7_bad_records)
{
	const struct load_report report = { 1, 2, 3 };
	const struct msg other = { .type = MSG_FLUSH };
	struct msg request = set_load();
	struct buf frame = { 0 };
	size_t i;

	make_supervisor();
	cr_assert_eq(msg_encode(&other, &frame), 0); /* not of link ASK */
	cr_assert_eq(mq_send(mq, frame.data, frame.len, 0), 0);
	buf_reset(&frame);
	cr_assert_eq(msg_encode(&request, &frame), 0);
	cr_assert_eq(mq_send(mq, frame.data, frame.len - 1, 0), 0);
	cr_assert_eq(mq_send(mq, "", 0, 0), 0);
	cr_assert_eq(mq_send(mq, "seventeen bytes..", 17, 0), 0);
	cr_assert_eq(load_report_put(mq, &report), 0);
	for (i = 0; i < 4; i++)
		cr_expect_eq(ask_take(mq, &ask), -EBADMSG, "%zu", i);
	cr_expect_eq(ask_take(mq, &ask), 1);
	buf_done(&frame);
}

/* Requests are told from reports by their length, and fit into a record. */
Test(ipc_ask, every_request_fits_and_is_no_report)
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
		cr_expect_gt(frame.len, sizeof(struct load_report), "%s",
		    msg_name(all[i]));
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
