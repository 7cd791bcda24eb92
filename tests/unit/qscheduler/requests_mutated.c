/* Requests of strangers, on a supervisor whose QUEUE_BASE cannot be written
 * to. */
#include "qscheduler/supervisor/supervisor.h"

#include <criterion/criterion.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "ipc/ask.h"

#define NOW (1000 * USEC_PER_SEC)

static struct super s;
static struct conf conf;
static struct sched_page page;
static char none[] = "/no/such";

static void
set_up(void)
{
	const enum queue_state wants[] = { QUEUE_STATE_OPEN, QUEUE_STATE_OPEN,
		QUEUE_STATE_CLOSING };
	const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	uint32_t i;

	cr_assert(dup2(null, STDERR_FILENO) >= 0); /* the log */
	close(null);
	super_init(&s, &(struct options){ 0 });
	s.instance.loop = event_base_new();
	cr_assert_not_null(s.instance.loop);
	s.base.path = none;
	s.base.fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s.workers.path = none;
	s.workers.keep = s.base.fd;
	s.instance.conf = &conf;
	s.publisher.page = &page;
	conf.disk_time_limit = 20 * USEC_PER_SEC;
	for (i = 0; i < ARRAY_LEN(wants); i++) {
		struct queue *q = calloc(1, sizeof(*q));

		cr_assert_not_null(q);
		*q = (struct queue){ .all = &s.queues,
			.number = i + 1,
			.want = wants[i],
			.page_fd = -1 };
		s.queues.queues[s.queues.nqueues++] = q;
	}
}

/* Right frames with bytes changed: each is taken or refused, and what is
 * published stays possible. */
Test(requests_mutated, I7_mutated_requests)
{
	const struct msg seeds[] = {
		{ MSG_SET_LOAD_FOR,
		    { .SET_LOAD_FOR = { 1, 2, 1, 1, 2, 3, 4, 60 } } },
		{ MSG_CLEAR_LOAD, { .CLEAR_LOAD = { 1, 2, 1 } } },
		{ MSG_DISABLE,
		    { .DISABLE = { 1, 2, 2, 60, MSG_S("some reason") } } },
		{ MSG_ENABLE, { .ENABLE = { 1, 2, 2 } } },
	};
	struct buf frame = { 0 };
	struct msg msg;
	int i, taken = 0;

	set_up();
	srandom(1);
	for (i = 0; i < 4000; i++) {
		int change = (int)(random() % 3);

		buf_reset(&frame);
		cr_assert_eq(msg_encode(&seeds[i % 4], &frame), 0);
		for (; change > 0; change--)
			frame.data[8 + (size_t)random() % (frame.len - 8)] =
			    (char)random();
		if (msg_decode(frame.data, frame.len, &msg) < 0 ||
		    msg_link(msg.type) != MSG_LINK_ASK)
			continue;
		(void)request_handle(&s, &msg,
		    &(struct ask_source){ .judge = random() % 4 == 0 }, NOW);
		taken++;
		cr_assert_leq(page.rows[0].load_pct, 100);
		cr_assert_eq(page.rows[3].state, QUEUE_STATE_NONE);
	}
	cr_expect_gt(taken, 1000);
	while (s.store.saving != 0)
		(void)event_base_loop(s.instance.loop, EVLOOP_ONCE);
	workers_close(&s.workers);
	event_base_free(s.instance.loop);
	buf_done(&frame);
}
