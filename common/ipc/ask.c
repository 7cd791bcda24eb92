#include "ipc/ask.h"

#include "base/clock.h"
#include "base/text.h"
#include "ipc/names.h"

#include <errno.h>
#include <stdio.h>
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
	if (!text_is_clean(reason, len))
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

static int
send_until(mqd_t mq, const struct buf *frame, usec_t deadline)
{
	while (mq_send(mq, frame->data, frame->len, 0) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
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

static int
wait_for_answer(const char *instance, uint32_t nonce, usec_t deadline,
    int *ret_code, char text[SCHED_ANSWER_SIZE])
{
	const struct sched_answer *answer;
	struct sched_page page;
	int r;

	for (;;) {
		r = sched_page_read(instance, &page);
		if (r < 0 && r != -EAGAIN)
			return r;
		answer = r < 0 ? NULL : find_answer(&page, nonce);
		if (answer != NULL)
			break;
		if (clock_mono() >= deadline)
			return -ETIMEDOUT;
		wait_a_little();
	}
	*ret_code = answer->code;
	snprintf(text, SCHED_ANSWER_SIZE, "%s", answer->text);
	return 0;
}

static int
wrap(const struct msg *request, usec_t until, struct buf *frame)
{
	struct buf inner = { 0 };
	struct msg outer = { .type = MSG_UNTIL };
	int r = msg_encode(request, &inner);

	outer.u.UNTIL.until_usec = until;
	outer.u.UNTIL.request = (struct msg_str){ inner.data, inner.len };
	if (r == 0)
		r = msg_encode(&outer, frame);
	buf_done(&inner);
	return r;
}

int
ask_request(const char *instance, const struct msg *request, uint32_t nonce,
    usec_t limit, int *ret_code, char text[SCHED_ANSWER_SIZE])
{
	const usec_t now = clock_mono(), deadline = now + limit;
	struct buf frame = { 0 };
	mqd_t mq;
	int r = open_scheduler(instance, &mq);

	if (r < 0)
		return r;
	r = wrap(request, now + limit / 5 * ASK_VOID_FIFTHS, &frame);
	if (r == 0)
		r = send_until(mq, &frame, deadline);
	buf_done(&frame);
	mq_close(mq);
	if (r < 0)
		return r;
	return wait_for_answer(instance, nonce, deadline, ret_code, text);
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

/* 2, or -errno; the inner request replaces the frame around it. */
static int
unwrap(struct ask *ask)
{
	struct msg outer;

	if (ask->msg.type != MSG_UNTIL)
		return 2;
	outer = ask->msg;
	if (msg_decode(outer.u.UNTIL.request.data, outer.u.UNTIL.request.len,
		&ask->msg) < 0 ||
	    msg_link(ask->msg.type) != MSG_LINK_ASK ||
	    ask->msg.type == MSG_UNTIL)
		return -EBADMSG;
	return clock_mono() > outer.u.UNTIL.until_usec ? -ETIME : 2;
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
	if (msg_decode(ret_ask->data, (size_t)n, &ret_ask->msg) < 0 ||
	    msg_link(ret_ask->msg.type) != MSG_LINK_ASK)
		return -EBADMSG;
	return unwrap(ret_ask);
}
