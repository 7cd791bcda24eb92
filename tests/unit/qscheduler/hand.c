#include "hand.h"

#include <criterion/criterion.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOW HAND_NOW

struct hand hand;
static char dir[] = "/tmp/hand.XXXXXX";
static uint32_t nonce;
static int asker = -1; /* the socket of the command */
static struct ask_address asker_address;

static void
open_asker(void)
{
	const struct sockaddr_un none = { .sun_family = AF_UNIX };

	asker = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(asker, (const struct sockaddr *)&none,
			 sizeof(none.sun_family)),
	    0);
	asker_address.len = sizeof(asker_address.name);
	cr_assert_eq(getsockname(asker, (struct sockaddr *)&asker_address.name,
			 &asker_address.len),
	    0);
	hand.s.requests.socket.fd =
	    socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static void
add_queue(uint32_t number, enum queue_state want)
{
	struct queue *q = calloc(1, sizeof(*q));

	cr_assert_not_null(q);
	q->all = &hand.s.queues;
	q->number = number;
	q->want = want;
	q->page_fd = memfd_create("page", MFD_CLOEXEC);
	cr_assert(q->page_fd >= 0);
	hand.s.queues.queues[hand.s.queues.nqueues++] = q;
}

void
hand_pump(void)
{
	while (hand.s.store.saving != 0)
		(void)event_base_loop(hand.s.instance.loop, EVLOOP_ONCE);
}

void
hand_tick(usec_t now)
{
	store_tick(&hand.s, now);
	hand_pump();
}

void
hand_setup(void)
{
	const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	cr_assert(dup2(null, STDERR_FILENO) >= 0); /* the log */
	close(null);
	super_init(&hand.s, &(struct options){ 0 });
	cr_assert_not_null(mkdtemp(dir));
	hand.s.base.path = dir;
	hand.s.base.fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	hand.s.workers.path = dir;
	hand.s.workers.keep = hand.s.base.fd;
	hand.s.instance.conf = &hand.conf;
	hand.s.publisher.page = &hand.page;
	hand.s.instance.loop = event_base_new();
	cr_assert_not_null(hand.s.instance.loop);
	open_asker();
	hand.conf.queue_load_pct = 90;
	hand.conf.error_interval = 5 * USEC_PER_SEC;
	hand.conf.disk_time_limit = 20 * USEC_PER_SEC;
	add_queue(1, QUEUE_STATE_OPEN);
	add_queue(2, QUEUE_STATE_OPEN);
	add_queue(7, QUEUE_STATE_CLOSING);
}

void
hand_teardown(void)
{
	uint32_t i;

	hand_pump();
	workers_close(&hand.s.workers);
	event_base_free(hand.s.instance.loop);
	for (i = 0; i < hand.s.queues.nqueues; i++) {
		close(hand.s.queues.queues[i]->page_fd);
		free(hand.s.queues.queues[i]);
	}
	(void)unlinkat(hand.s.base.fd, OVERRIDE_NAME, 0);
	(void)unlinkat(hand.s.base.fd, OVERRIDE_NAME ".new", AT_REMOVEDIR);
	cr_expect_eq(rmdir(dir), 0);
	close(hand.s.base.fd);
	close(asker);
	close(hand.s.requests.socket.fd);
}

bool
hand_unsaved(void)
{
	return hand.s.store.saved != hand.s.store.change;
}

bool
hand_holds(uint32_t queue, enum override_kind kind, usec_t now)
{
	return override_holds(&hand.s.queues, queue, kind, now);
}

int
hand_ask(struct msg *msg)
{
	struct sched_answer answer;
	int code;

	hand.source.address = asker_address;
	msg->u.ENABLE.pid = 4711;
	msg->u.ENABLE.nonce = ++nonce;
	code = request_handle(&hand.s, msg, &hand.source, NOW);
	hand_pump();
	cr_assert_eq(recv(asker, &answer, sizeof(answer), MSG_DONTWAIT),
	    (ssize_t)sizeof(answer));
	cr_assert_lt(
	    recv(asker, hand.text, 1, MSG_DONTWAIT), 0, "answered once");
	cr_expect_eq(answer.pid, 4711);
	cr_expect_eq(answer.nonce, nonce);
	cr_expect_eq(answer.code, code);
	cr_expect(answer.text[0] != '\0', "without a word");
	snprintf(hand.text, sizeof(hand.text), "%s", answer.text);
	return code;
}

int
hand_load(int32_t queue, uint32_t used, uint32_t limit, uint32_t seconds)
{
	struct msg msg = { .type = MSG_SET_LOAD_FOR };

	msg.u.SET_LOAD_FOR.queue = queue;
	msg.u.SET_LOAD_FOR.local_used = used;
	msg.u.SET_LOAD_FOR.local_limit = limit;
	msg.u.SET_LOAD_FOR.seconds = seconds;
	return hand_ask(&msg);
}

int
hand_clear(int32_t queue)
{
	struct msg msg = { .type = MSG_CLEAR_LOAD };

	msg.u.CLEAR_LOAD.queue = queue;
	return hand_ask(&msg);
}

int
hand_disable(int32_t queue, uint32_t seconds, const char *reason)
{
	struct msg msg = { .type = MSG_DISABLE };

	msg.u.DISABLE.queue = queue;
	msg.u.DISABLE.seconds = seconds;
	msg.u.DISABLE.reason = MSG_S(reason);
	return hand_ask(&msg);
}

int
hand_enable(int32_t queue)
{
	struct msg msg = { .type = MSG_ENABLE };

	msg.u.ENABLE.queue = queue;
	return hand_ask(&msg);
}
