#include "ipc/ask.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A request is void after this many fifths of the time that its sender waits;
 * the rest is for the answer, which may wait for a disk. */
#define ASK_VOID_FIFTHS 2

_Static_assert(SCHED_REASON_SIZE == 96, "the words above say so");

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

/* The next wait of the socket ends at `until`. */
static int
limit_wait(int fd, int option, usec_t until)
{
	const usec_t left = until - clock_mono();
	/* 0 would be no limit. */
	const struct timeval limit = clock_timeval(left > 0 ? left : 1);

	return setsockopt(fd, SOL_SOCKET, option, &limit, sizeof(limit)) < 0
	    ? -errno
	    : 0;
}

/* The kernel lets nobody but the supervisor send to this socket. */
static int
hear(int fd, uint32_t nonce, usec_t until, struct sched_answer *ret_answer)
{
	ssize_t n;
	int r;

	do {
		r = limit_wait(fd, SO_RCVTIMEO, until);
		if (r < 0)
			return r;
		n = recv(fd, ret_answer, sizeof(*ret_answer), 0);
		if (n == sizeof(*ret_answer) && ret_answer->nonce == nonce)
			return 0;
	} while ((n >= 0 || errno == EINTR) && clock_mono() < until);
	return -ETIMEDOUT;
}

static int
ask(int fd, const struct ask_question *q, struct sched_answer *ret_answer)
{
	const usec_t start = clock_mono();
	const usec_t void_at = start + q->limit / 5 * ASK_VOID_FIFTHS;
	struct buf frame = { 0 };
	int r = wrap(q->request, q->judge, void_at, &frame);

	if (r == 0)
		r = limit_wait(fd, SO_SNDTIMEO, void_at);
	if (r == 0 && send(fd, frame.data, frame.len, MSG_NOSIGNAL) < 0)
		r = errno == ECONNREFUSED ? -ENOENT : -errno;
	buf_done(&frame);
	return r < 0 ? r : hear(fd, q->nonce, start + q->limit, ret_answer);
}

int
ask_request(
    const struct ask_question *q, int *ret_code, char text[SCHED_ANSWER_SIZE])
{
	struct sched_answer answer;
	int fd, r = ask_socket_connect(q->instance, q->base, &fd);

	if (r < 0)
		return r;
	r = ask(fd, q, &answer);
	io_close(&fd);
	if (r < 0)
		return r;
	*ret_code = answer.code;
	snprintf(text, SCHED_ANSWER_SIZE, "%.*s", SCHED_ANSWER_SIZE - 1,
	    answer.text);
	return 0;
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

/* 1, or -errno; the inner request replaces the frame around it. */
static int
unwrap(struct ask *ask)
{
	struct msg outer;

	if (!is_outer(ask->msg.type))
		return 1;
	outer = ask->msg;
	ask->from.judge = outer.type == MSG_JUDGE;
	if (msg_decode(outer.u.UNTIL.request.data, outer.u.UNTIL.request.len,
		&ask->msg) < 0 ||
	    msg_link(ask->msg.type) != MSG_LINK_ASK || is_outer(ask->msg.type))
		return -EBADMSG;
	return clock_mono() > outer.u.UNTIL.until_usec ? -ETIME : 1;
}

int
ask_judge_frame(struct ask *ask, size_t len)
{
	ask->from.judge = false;
	if (msg_decode(ask->data, len, &ask->msg) < 0 ||
	    msg_link(ask->msg.type) != MSG_LINK_ASK)
		return -EBADMSG;
	return unwrap(ask);
}
