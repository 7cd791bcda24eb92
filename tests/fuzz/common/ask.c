/* Records of the message queues: bells and requests. Whatever was sent is
 * taken, once, and judged by its length and form alone. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ipc/ask.h"

static mqd_t
open_queue(void)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 4096 };
	char name[64];
	mqd_t mq;

	snprintf(name, sizeof(name), "/fuzz-%d", (int)getpid());
	mq = mq_open(name, O_CREAT | O_EXCL | O_RDWR | O_NONBLOCK | O_CLOEXEC,
	    0600, &attr);
	MUST(mq != (mqd_t)-1);
	MUST(mq_unlink(name) == 0);
	return mq;
}

static void
check_bell(mqd_t mq, const char *record, size_t len)
{
	struct bell bell;
	int r;

	MUST(mq_send(mq, record, len, 0) == 0);
	FUZZ_FILL(bell);
	r = bell_take(mq, &bell);
	MUST(r == (len == 16 ? 1 : -EBADMSG));
	if (r == 1)
		MUST(memcmp(&bell, record, 16) == 0);
	else
		MUST(FUZZ_UNTOUCHED(bell));
	MUST(bell_take(mq, &bell) == 0);
}

static void
check_ask(const char *record, size_t len)
{
	static struct ask ask;
	struct buf again = { 0 };
	int r;

	memcpy(ask.data, record, len);
	r = ask_judge_frame(&ask, len);
	if (r == 1) {
		MUST(ask.msg.type >= 0x0300 && ask.msg.type < 0x0400);
		MUST(ask.msg.type != MSG_UNTIL && ask.msg.type != MSG_JUDGE);
		MUST(msg_encode(&ask.msg, &again) == 0);
		/* The field ends the record, or is all of it. */
		MUST(again.len <= len &&
		    memcmp(again.data, record + len - again.len, again.len) ==
			0);
		MUST(again.len < len || !ask.from.judge);
		ask.from.judge = false;
	} else {
		MUST(r == -EBADMSG || r == -ETIME);
	}
	buf_done(&again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static mqd_t mq;
	struct fuzz_in in = { data, size };
	uint32_t head[2];
	char *record;
	size_t len;

	if (mq == 0)
		mq = open_queue();
	head[1] = 0x0300u + (uint32_t)fuzz_number(&in, 1);
	record = fuzz_rest(&in, &len);
	head[0] = (uint32_t)len;
	if (len <= 4096) {
		check_bell(mq, record, len);
		check_ask(record, len);
	}
	if (len >= sizeof(head) && len <= 4096) {
		memcpy(record, head, sizeof(head));
		check_ask(record, len);
	}
	free(record);
	return 0;
}
