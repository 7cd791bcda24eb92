#include "ipc/ask.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"
#include "ipc/names.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LOOK_EVERY_NSEC (10 * 1000 * 1000)
/* A request is void after this many fifths of the time that its sender waits;
 * the rest is for the answer, which may wait for a disk. */
#define ASK_VOID_FIFTHS 2

_Static_assert(SCHED_REASON_SIZE == 96, "the words above say so");
_Static_assert(PAGE_ANSWERS >= ASK_DEPTH, "an answer for each that waits");

const char *
ask_judge_reason(const char *reason, size_t len)
{
	if (len >= SCHED_REASON_SIZE)
		return "the reason is longer than 95 bytes";
	if (!text_is_utf8(reason, len))
		return "the reason has control characters, or is not UTF-8";
	return NULL;
}

int
load_report_put(mqd_t mq, const struct load_report *report)
{
	const struct timespec past = { 0 };

	if (mq_timedsend(mq, (const char *)report, sizeof(*report), 0, &past) ==
	    0)
		return 0;
	return errno == ETIMEDOUT ? -EAGAIN : -errno;
}

static int
open_scheduler(const char *instance, mqd_t *ret_mq)
{
	char name[IPC_NAME_MAX];

	ipc_name_scheduler(instance, name);
	*ret_mq = mq_open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	return *ret_mq == (mqd_t)-1 ? -errno : 0;
}

static void
wait_a_little(void)
{
	const struct timespec t = { .tv_nsec = LOOK_EVERY_NSEC };

	nanosleep(&t, NULL);
}

/* The way to the supervisor: the socket, else the message queue. */
struct way {
	int socket;
	mqd_t mq;
};

/* Without a page nobody hears the answer to a request by the message queue. */
static bool
is_page_there(const char *instance)
{
	struct sched_page page;

	return sched_page_read(instance, &page) != -ENOENT;
}

static int
open_way(const char *instance, const char *base, struct way *ret_way)
{
	struct way way = { -1, (mqd_t)-1 };
	int r = ask_socket_connect(instance, base, &way.socket);

	if (r == -ENOENT && is_page_there(instance))
		r = open_scheduler(instance, &way.mq);
	if (r == 0)
		*ret_way = way;
	return r;
}

static void
close_way(struct way *way)
{
	if (way->mq != (mqd_t)-1)
		mq_close(way->mq);
	io_close(&way->socket);
}

static int
send_frame(const struct way *way, const struct buf *frame)
{
	ssize_t n;

	if (way->socket >= 0)
		n = send(way->socket, frame->data, frame->len,
		    MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		n = mq_send(way->mq, frame->data, frame->len, 0);
	return n < 0 ? -errno : 0;
}

static int
send_until(const struct way *way, const struct buf *frame, usec_t deadline)
{
	int r;

	while ((r = send_frame(way, frame)) < 0) {
		if (r == -ECONNREFUSED)
			return -ENOENT;
		if (r != -EAGAIN && r != -EINTR)
			return r;
		if (clock_mono() >= deadline)
			return -EAGAIN;
		wait_a_little();
	}
	return 0;
}

static const struct sched_answer *
find_answer(const struct sched_page *page, uint32_t nonce)
{
	const uint32_t pid = (uint32_t)getpid();
	size_t i;

	for (i = 0; i < PAGE_ANSWERS; i++)
		if (page->answers[i].pid == pid &&
		    page->answers[i].nonce == nonce)
			return &page->answers[i];
	return NULL;
}

/* The answer that an asker waits for. */
struct question {
	const char *instance, *base;
	uint32_t nonce;
	usec_t limit;
};

/* Waits a little for an answer to the socket. */
static bool
hear_answer(int fd, uint32_t nonce, struct sched_answer *ret)
{
	struct pollfd wait = { fd, POLLIN, 0 };
	struct sched_answer answer;

	if (poll(&wait, 1, LOOK_EVERY_NSEC / (1000 * 1000)) != 1)
		return false;
	if (recv(fd, &answer, sizeof(answer), MSG_DONTWAIT) != sizeof(answer)) {
		wait_a_little(); /* the supervisor is gone */
		return false;
	}
	if (answer.pid != (uint32_t)getpid() || answer.nonce != nonce)
		return false;
	answer.text[sizeof(answer.text) - 1] = '\0';
	*ret = answer;
	return true;
}

/* 1: *ret is the answer; 0: not yet. */
static int
look_for_answer(
    const struct question *q, const struct way *way, struct sched_answer *ret)
{
	const struct sched_answer *answer;
	struct sched_page page;
	int r = sched_page_read(q->instance, &page);

	answer = r < 0 ? NULL : find_answer(&page, q->nonce);
	if (answer != NULL) {
		*ret = *answer;
		return 1;
	}
	if (way->socket >= 0)
		return hear_answer(way->socket, q->nonce, ret);
	wait_a_little();
	return r == -EAGAIN ? 0 : r;
}

static int
wait_for_answer(const struct question *q, const struct way *way,
    usec_t deadline, int *ret_code, char text[SCHED_ANSWER_SIZE])
{
	struct sched_answer answer = { 0 };
	int r;

	while ((r = look_for_answer(q, way, &answer)) == 0)
		if (clock_mono() >= deadline)
			return -ETIMEDOUT;
	if (r < 0)
		return r;
	*ret_code = answer.code;
	snprintf(text, SCHED_ANSWER_SIZE, "%s", answer.text);
	return 0;
}

static int
wrap(const struct msg *request, bool judge, usec_t until, struct buf *frame)
{
	struct buf inner = { 0 };
	struct msg outer = { .type = judge ? MSG_JUDGE : MSG_UNTIL };
	struct msg_str text;
	int r = msg_encode(request, &inner);

	text = (struct msg_str){ inner.data, inner.len };
	if (judge)
		outer.u.JUDGE = (struct msg_JUDGE){ until, text };
	else
		outer.u.UNTIL = (struct msg_UNTIL){ until, text };
	if (r == 0)
		r = msg_encode(&outer, frame);
	buf_done(&inner);
	return r;
}

static int
ask_frame(const struct question *q, const struct msg *request, bool judge,
    int *ret_code, char text[SCHED_ANSWER_SIZE])
{
	const usec_t now = clock_mono(), deadline = now + q->limit;
	struct buf frame = { 0 };
	struct way way;
	int r = open_way(q->instance, q->base, &way);

	if (r < 0)
		return r;
	r = wrap(request, judge, now + q->limit / 5 * ASK_VOID_FIFTHS, &frame);
	if (r == 0)
		r = send_until(&way, &frame, deadline);
	buf_done(&frame);
	if (r == 0)
		r = wait_for_answer(q, &way, deadline, ret_code, text);
	close_way(&way);
	return r;
}

int
ask_request(const char *instance, const char *base, const struct msg *request,
    uint32_t nonce, usec_t limit, int *ret_code, char text[SCHED_ANSWER_SIZE])
{
	const struct question q = { instance, base, nonce, limit };

	return ask_frame(&q, request, false, ret_code, text);
}

int
ask_judge(const char *instance, const char *base, const struct msg *request,
    uint32_t nonce, usec_t limit, int *ret_code, char text[SCHED_ANSWER_SIZE])
{
	const struct question q = { instance, base, nonce, limit };

	return ask_frame(&q, request, true, ret_code, text);
}

void
ask_answer(struct sched_page *page, uint32_t pid, uint32_t nonce, int code,
    const char *text)
{
	struct sched_answer *a =
	    &page->answers[page->answer_next++ % PAGE_ANSWERS];

	a->pid = pid;
	a->nonce = nonce;
	a->code = code;
	snprintf(a->text, sizeof(a->text), "%s", text);
}

_Static_assert(offsetof(struct msg_JUDGE, until_usec) ==
	    offsetof(struct msg_UNTIL, until_usec) &&
	offsetof(struct msg_JUDGE, request) ==
	    offsetof(struct msg_UNTIL, request),
    "two kinds of one frame");

static bool
is_outer(enum msg_type type)
{
	return type == MSG_UNTIL || type == MSG_JUDGE;
}

/* 2, or -errno; the inner request replaces the frame around it. */
static int
unwrap(struct ask *ask)
{
	struct msg outer;

	if (!is_outer(ask->msg.type))
		return 2;
	outer = ask->msg;
	ask->from.judge = outer.type == MSG_JUDGE;
	if (msg_decode(outer.u.UNTIL.request.data, outer.u.UNTIL.request.len,
		&ask->msg) < 0 ||
	    msg_link(ask->msg.type) != MSG_LINK_ASK || is_outer(ask->msg.type))
		return -EBADMSG;
	return clock_mono() > outer.u.UNTIL.until_usec ? -ETIME : 2;
}

int
ask_judge_frame(struct ask *ask, size_t len)
{
	if (msg_decode(ask->data, len, &ask->msg) < 0 ||
	    msg_link(ask->msg.type) != MSG_LINK_ASK)
		return -EBADMSG;
	return unwrap(ask);
}

int
ask_take(mqd_t mq, struct ask *ret_ask)
{
	const struct timespec past = { 0 };
	ssize_t n;

	do {
		n = mq_timedreceive(
		    mq, ret_ask->data, sizeof(ret_ask->data), NULL, &past);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == ETIMEDOUT ? 0 : -errno;
	if (n == sizeof(ret_ask->report)) {
		memcpy(
		    &ret_ask->report, ret_ask->data, sizeof(ret_ask->report));
		return 1;
	}
	ret_ask->from = (struct ask_source){ 0 };
	return ask_judge_frame(ret_ask, (size_t)n);
}
