/* Requests of operators, on a supervisor that has queues and no processes. */
#include "qscheduler/supervisor/supervisor.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/ask.h"
#include "qscheduler/queues/queues.h"

#define NOW (1000 * USEC_PER_SEC)

static char dir[] = "/tmp/hand.XXXXXX";
static struct super s;
static struct conf conf;
static struct sched_page page;
static uint32_t nonce;
static char text[SCHED_ANSWER_SIZE];

static void
add_queue(uint32_t number, enum queue_state want)
{
	struct queue *q = calloc(1, sizeof(*q));

	cr_assert_not_null(q);
	q->all = &s.queues;
	q->number = number;
	q->want = want;
	q->page_fd = memfd_create("page", MFD_CLOEXEC);
	cr_assert(q->page_fd >= 0);
	s.queues.queues[s.queues.nqueues++] = q;
}

/* Until what is to be on disk is there. */
static void
pump(void)
{
	while (s.store.saving != 0)
		(void)event_base_loop(s.instance.loop, EVLOOP_ONCE);
}

static void
tick(usec_t now)
{
	store_tick(&s, now);
	pump();
}

static void
setup(void)
{
	const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	cr_assert(dup2(null, STDERR_FILENO) >= 0); /* the log */
	close(null);
	super_init(&s, &(struct options){ 0 });
	cr_assert_not_null(mkdtemp(dir));
	s.base.path = dir;
	s.base.fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s.workers.path = dir;
	s.workers.keep = s.base.fd;
	s.instance.conf = &conf;
	s.publisher.page = &page;
	s.instance.loop = event_base_new();
	cr_assert_not_null(s.instance.loop);
	conf.queue_load_pct = 90;
	conf.disk_time_limit = 20 * USEC_PER_SEC;
	add_queue(1, QUEUE_STATE_OPEN);
	add_queue(2, QUEUE_STATE_OPEN);
	add_queue(7, QUEUE_STATE_CLOSING);
}

static void
teardown(void)
{
	uint32_t i;

	pump();
	workers_close(&s.workers);
	event_base_free(s.instance.loop);
	for (i = 0; i < s.queues.nqueues; i++) {
		close(s.queues.queues[i]->page_fd);
		free(s.queues.queues[i]);
	}
	(void)unlinkat(s.base.fd, OVERRIDE_NAME, 0);
	(void)unlinkat(s.base.fd, OVERRIDE_NAME ".new", AT_REMOVEDIR);
	cr_expect_eq(rmdir(dir), 0);
	close(s.base.fd);
}

TestSuite(override, .init = setup, .fini = teardown);

/* Ask and find the answer: what was returned is what was answered. */
static int
ask(struct msg *msg)
{
	const uint32_t next = page.answer_next;
	const struct sched_answer *answer;
	int code;

	msg->u.SET_LOAD.pid = 4711;
	msg->u.SET_LOAD.nonce = ++nonce;
	code = request_handle(&s, msg, NOW);
	pump();
	cr_assert_eq(page.answer_next, next + 1, "answered once");
	answer = &page.answers[next % PAGE_ANSWERS];
	cr_expect_eq(answer->pid, 4711);
	cr_expect_eq(answer->nonce, nonce);
	cr_expect_eq(answer->code, code);
	cr_expect(answer->text[0] != '\0', "without a word");
	snprintf(text, sizeof(text), "%s", answer->text);
	return code;
}

static int
ask_load(int32_t queue, uint32_t used, uint32_t limit, uint32_t seconds)
{
	struct msg msg = { .type = MSG_SET_LOAD_FOR };

	msg.u.SET_LOAD_FOR.queue = queue;
	msg.u.SET_LOAD_FOR.local_used = used;
	msg.u.SET_LOAD_FOR.local_limit = limit;
	msg.u.SET_LOAD_FOR.seconds = seconds;
	return ask(&msg);
}

static int
ask_clear(int32_t queue)
{
	struct msg msg = { .type = MSG_CLEAR_LOAD };

	msg.u.CLEAR_LOAD.queue = queue;
	return ask(&msg);
}

static int
ask_disable(int32_t queue, uint32_t seconds, const char *reason)
{
	struct msg msg = { .type = MSG_DISABLE };

	msg.u.DISABLE.queue = queue;
	msg.u.DISABLE.seconds = seconds;
	msg.u.DISABLE.reason = MSG_S(reason);
	return ask(&msg);
}

static int
ask_enable(int32_t queue)
{
	struct msg msg = { .type = MSG_ENABLE };

	msg.u.ENABLE.queue = queue;
	return ask(&msg);
}

/* ---- loads ---- */

Test(override, load_holds_for_its_time_and_can_be_0)
{
	static const struct {
		uint32_t used, limit, seconds;
		uint32_t pct, holds;
		const char *want;
	} rows[] = {
		{ 45, 100, 0, 45, 60, "queue 1: load 45 % for 1m" },
		{ 0, 1, 300, 0, 300, "queue 1: load 0 % for 5m" },
		{ 9, 10, 90, 90, 90, "queue 1: load 90 % for 90s" },
		{ 1, 1, 365 * 86400, 100, 365 * 86400,
		    "queue 1: load 100 % for 365d" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const usec_t until = NOW + rows[i].holds * USEC_PER_SEC;

		cr_expect_eq(
		    ask_load(1, rows[i].used, rows[i].limit, rows[i].seconds),
		    0);
		cr_expect_str_eq(text, rows[i].want);
		cr_expect_eq(page.rows[0].flags, SCHED_ROW_MANUAL);
		cr_expect_eq(page.rows[0].load_pct, rows[i].pct);
		cr_expect_eq(page.rows[0].manual_until_mono, until);
		cr_expect_eq(page.rows[1].flags, 0);
		cr_expect(override_has_load(s.queues.queues[0], until - 1));
		cr_expect_not(override_has_load(s.queues.queues[0], until));
	}
	override_tick(s.queues.queues[0], INT64_MAX - 1);
	cr_expect_eq(s.queues.queues[0]->override.load_until, 0);
}

Test(override, loads_are_cleared_of_one_and_of_all)
{
	cr_expect_eq(ask_clear(1), 0);
	cr_expect_str_eq(text, "queue 1: had no load by hand");
	cr_expect_eq(ask_load(1, 1, 2, 0), 0);
	cr_expect_eq(ask_clear(1), 0);
	cr_expect_str_eq(text, "queue 1: load by hand cleared");
	cr_expect_eq(page.rows[0].flags, 0);
	cr_expect_eq(ask_load(1, 1, 2, 0), 0);
	cr_expect_eq(ask_load(7, 1, 2, 0), 0);
	cr_expect_eq(ask_clear(0), 0);
	cr_expect_str_eq(text, "loads by hand cleared: 2");
	cr_expect_eq(page.rows[0].flags | page.rows[2].flags, 0);
}

/* ---- queue numbers ---- */

Test(override, I7_an_unchecked_queue_number_from_the_message_queue)
{
	static const int32_t numbers[] = { -1, INT32_MIN, INT32_MAX, 3, 256,
		4095, 4096, 99999, 65537 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(numbers); i++) {
		const int32_t n = numbers[i];

		cr_expect_eq(ask_load(n, 50, 100, 0), -ENOENT, "%d", n);
		cr_expect_eq(ask_clear(n), -ENOENT, "%d", n);
		cr_expect_eq(ask_disable(n, 0, ""), -ENOENT, "%d", n);
		cr_expect_eq(ask_enable(n), -ENOENT, "%d", n);
		cr_expect_str_eq(text, "there is no such queue");
	}
	cr_expect_eq(ask_load(0, 50, 100, 0), -ENOENT);
	cr_expect_eq(ask_disable(0, 0, ""), -ENOENT, "all of them?");
	cr_expect_eq(ask_enable(0), -ENOENT);
	for (i = 0; i < s.queues.nqueues; i++)
		cr_expect_eq(s.queues.queues[i]->override.load_until |
			s.queues.queues[i]->override.disabled_until,
		    0);
}

Test(override, a_number_on_disk_that_is_not_run)
{
	s.queues.on_disk[3] = true;
	cr_expect_eq(ask_enable(3), -ENOENT);
	cr_expect_str_eq(text, "is not run (closed)");
	cr_expect_eq(ask_load(3, 1, 2, 0), -ENOENT);
	cr_expect_str_eq(text, "is not run (closed)");
	s.queues.on_disk[3] = false;
}

Test(override, refused_and_nothing_else)
{
	char reason[SCHED_REASON_SIZE + 1];

	memset(reason, 'x', sizeof(reason));
	reason[SCHED_REASON_SIZE] = '\0';
	cr_expect_eq(ask_load(1, 1, 0, 0), -EINVAL);
	cr_expect_eq(ask_load(1, 2, 1, 0), -ERANGE);
	cr_expect_eq(ask_load(1, 0, 1000001, 0), -ERANGE);
	cr_expect_eq(ask_load(1, 1, 2, UINT32_MAX), -ERANGE);
	cr_expect_str_eq(text, "the time is longer than a year");
	cr_expect_eq(ask_disable(1, 365 * 86400 + 1, ""), -ERANGE);
	cr_expect_eq(ask_disable(1, 0, reason), -EINVAL);
	cr_expect_str_eq(text, "the reason is longer than 95 bytes");
	cr_expect_eq(ask_disable(1, 0, "\x1b[2J"), -EINVAL);
	cr_expect_eq(ask_disable(1, 0, "a\nb"), -EINVAL);
	cr_expect_eq(ask_disable(7, 0, ""), -EBUSY);
	cr_expect_eq(ask_enable(7), -EBUSY);
	cr_expect_eq(s.queues.queues[0]->override.load_until, 0);
	cr_expect_eq(s.queues.queues[0]->override.disabled_until, 0);
	cr_expect_eq(faccessat(s.base.fd, OVERRIDE_NAME, F_OK, 0), -1);
}

/* A frame of another link never comes this far; one that does is nobody's. */
Test(override, not_a_request)
{
	const struct msg msg = { .type = MSG_RELOAD };

	cr_expect_eq(request_handle(&s, &msg, NOW), -EBADMSG);
	cr_expect_eq(page.answer_next, 0);
}

/* ---- how many ---- */

/* What holds for a time is the count, not what is done about it. */
Test(override, a_count_is_answered_with_what_is_done)
{
	static const struct {
		uint32_t count, seconds;
		int code;
		const char *want;
	} rows[] = {
		{ 1, 20, 0, "1 queue for 20s: 1 close" },
		{ 4, 3600, 0, "4 queues for 1h: 2 to come" },
		{ 2, 0, 0, "2 queues: as it is" },
		{ 5, 0, -ERANGE, "1 to 4 queues can be" },
		{ 0, 20, -ERANGE, "1 to 4 queues can be" },
	};
	struct msg msg = { .type = MSG_COUNT };
	size_t i;

	s.queues.count = 1;
	s.queues.max = 4;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		msg.u.COUNT.count = rows[i].count;
		msg.u.COUNT.seconds = rows[i].seconds;
		cr_expect_eq(ask(&msg), rows[i].code, "row %zu", i);
		cr_expect_str_eq(text, rows[i].want, "row %zu: %s", i, text);
	}
}

/* ---- disabled ---- */

/* The fifth number of its page, as existing readers find it. */
static int32_t
flag_of(const struct queue *q)
{
	int32_t flag = 0;

	cr_assert_geq(pread(q->page_fd, &flag, sizeof(flag), 16), 0);
	return flag;
}

Test(override, disable_a_queue_that_no_program_can_set)
{
	cr_expect_eq(ask_disable(2, 90, "new disk"), 0);
	cr_expect_str_eq(text, "queue 2: disabled for 90s");
	cr_expect_eq(page.rows[1].state, QUEUE_STATE_DISABLED);
	cr_expect_eq(page.rows[1].flags, SCHED_ROW_OVERRIDE);
	cr_expect_eq(page.rows[1].until_mono, NOW + 90 * USEC_PER_SEC);
	cr_expect_str_eq(page.rows[1].reason, "new disk");
	cr_expect_not(s.queues.queues[1]->faulty, "its children go on");
	cr_expect_not(queue_is_leaving(s.queues.queues[1]));
	cr_expect_eq(page.qcount, 1);
	cr_expect_eq(flag_of(s.queues.queues[0]), 0);
	cr_expect_eq(flag_of(s.queues.queues[1]), 1);
	cr_expect_eq(flag_of(s.queues.queues[2]), 1, "closing");
	cr_expect_eq(ask_disable(2, 0, ""), 0);
	cr_expect_str_eq(text, "queue 2: disabled for ever");
	cr_expect_eq(page.rows[1].until_mono, 0);
	cr_expect_str_eq(page.rows[1].reason, "");
	cr_expect_eq(ask_enable(2), 0);
	cr_expect_str_eq(text, "queue 2: enabled");
	cr_expect_eq(flag_of(s.queues.queues[1]), 0);
	cr_expect_eq(page.rows[1].state, QUEUE_STATE_OPEN);
	cr_expect_eq(page.rows[1].flags, 0);
	cr_expect_eq(ask_enable(2), 0, "twice");
	cr_expect_str_eq(text, "queue 2: was not disabled");
}

Test(override, enabled_when_its_time_is_over)
{
	cr_expect_eq(ask_disable(2, 5, ""), 0);
	override_tick(s.queues.queues[1], NOW + 5 * USEC_PER_SEC - 1);
	cr_expect_eq(
	    queue_state(s.queues.queues[1], NOW + 5 * USEC_PER_SEC - 1),
	    QUEUE_STATE_DISABLED);
	override_tick(s.queues.queues[1], NOW + 5 * USEC_PER_SEC);
	cr_expect_eq(queue_state(s.queues.queues[1], NOW + 5 * USEC_PER_SEC),
	    QUEUE_STATE_OPEN);
	cr_expect(s.store.unsaved);
	tick(NOW + 120 * USEC_PER_SEC);
	cr_expect_not(s.store.unsaved);
	cr_expect_eq(faccessat(s.base.fd, OVERRIDE_NAME, F_OK, 0), -1);
}

Test(override, I13_the_last_open_queue_is_told_of)
{
	cr_expect_eq(ask_disable(1, 0, ""), 0);
	cr_expect_null(strstr(text, "NO QUEUE"));
	cr_expect_eq(ask_disable(2, 0, ""), 0);
	cr_expect_not_null(strstr(text, "NO QUEUE IS OPEN"), "%s", text);
	cr_expect_eq(page.qcount, 0);
}

/* Disabled for a fault comes first: that is not in the operator's hand. */
Test(override, a_fault_is_not_hidden)
{
	s.queues.queues[0]->faulty = true;
	cr_expect_eq(ask_disable(1, 0, "why"), 0);
	cr_expect_eq(page.rows[0].state, QUEUE_STATE_DISABLED);
	cr_expect_eq(page.rows[0].flags & SCHED_ROW_OVERRIDE, 0);
	cr_expect_str_neq(page.rows[0].reason, "why");
	cr_expect_eq(ask_enable(1), 0);
	cr_expect_str_eq(
	    text, "queue 1: enabled; but it is disabled for a fault");
	cr_expect_eq(ask_enable(1), -EBUSY);
	cr_expect_not_null(strstr(text, "looked at again"), "%s", text);
	cr_expect_eq(ask_disable(1, 0, "why"), 0);
	s.queues.queues[0]->faulty = false;
	publish(&s, NOW);
	cr_expect_eq(
	    page.rows[0].flags & SCHED_ROW_OVERRIDE, SCHED_ROW_OVERRIDE);
	cr_expect_str_eq(page.rows[0].reason, "why");
}

/* ---- over a restart ---- */

static void
restart(usec_t now)
{
	uint32_t i;

	for (i = 0; i < s.queues.nqueues; i++)
		memset(&s.queues.queues[i]->override, 0,
		    sizeof(s.queues.queues[i]->override));
	s.store.unsaved = false;
	s.store.unsaved = override_restore(&s.queues, now);
}

Test(override, disabled_queues_stay_so_with_the_rest_of_their_time)
{
	const usec_t later = 3 * NOW;
	const struct override *one = &s.queues.queues[0]->override,
			      *two = &s.queues.queues[1]->override;

	cr_expect_eq(ask_disable(1, 3600, "new disk"), 0);
	cr_expect_eq(ask_disable(2, 0, ""), 0);
	cr_expect_eq(ask_load(2, 1, 2, 0), 0);
	restart(later);
	cr_expect(override_is_disabled(s.queues.queues[0], later));
	cr_expect_str_eq(one->reason, "new disk");
	cr_expect_leq(one->disabled_until, later + 3601 * USEC_PER_SEC);
	cr_expect_geq(one->disabled_until, later + 3540 * USEC_PER_SEC);
	cr_expect_eq(two->disabled_until, USEC_NEVER);
	cr_expect_eq(two->load_until, 0, "a load does not survive");
	cr_expect_not(s.store.unsaved);
}

Test(override, rows_that_mean_nothing_any_more)
{
	const struct override_rows rows = {
		.n = 3,
		.rows = { { 1, 1, "over" }, { 2, INT64_C(1) << 39, "far" },
		    { 99, 0, "not run" } },
	};
	struct buf error = { 0 };

	cr_assert_eq(override_file_write(s.base.fd, dir, &rows, &error), 0);
	restart(NOW);
	cr_expect_not(override_is_disabled(s.queues.queues[0], NOW));
	cr_expect_eq(s.queues.queues[1]->override.disabled_until,
	    NOW + (usec_t)ASK_SECONDS_MAX * USEC_PER_SEC);
	cr_expect(s.store.unsaved, "queue 99 is to be forgotten");
	tick(NOW);
	cr_expect_not(s.store.unsaved);
}

Test(override, a_damaged_file_is_told_and_ignored)
{
	int fd = openat(s.base.fd, OVERRIDE_NAME, O_WRONLY | O_CREAT, 0644);

	cr_assert_eq(write(fd, "1 0 x\n", 6), 6);
	close(fd);
	restart(NOW);
	cr_expect_not(override_is_disabled(s.queues.queues[0], NOW));
	cr_expect_not(s.store.unsaved, "it is kept for a person to look at");
	cr_expect_eq(ask_disable(2, 0, ""), 0);
	restart(NOW);
	cr_expect_not(override_is_disabled(s.queues.queues[0], NOW));
	cr_expect(override_is_disabled(s.queues.queues[1], NOW));
}

Test(override, what_cannot_be_written_is_told_and_tried_again)
{
	const usec_t later = NOW + 60 * USEC_PER_SEC;

	cr_assert_eq(mkdirat(s.base.fd, OVERRIDE_NAME ".new", 0755), 0);
	cr_expect_eq(ask_disable(1, 0, ""), 0);
	cr_expect_str_eq(text,
	    "queue 1: disabled for ever; a restart may forget it: Is a "
	    "directory");
	cr_expect(s.store.unsaved);
	cr_assert_eq(
	    unlinkat(s.base.fd, OVERRIDE_NAME ".new", AT_REMOVEDIR), 0);
	tick(later - 1);
	cr_expect(s.store.unsaved, "too early");
	tick(later);
	cr_expect_not(s.store.unsaved);
	restart(NOW);
	cr_expect(override_is_disabled(s.queues.queues[0], NOW));
}

/* A number that is used again begins anew. */
Test(override, a_queue_that_goes_takes_it_along)
{
	cr_expect_eq(ask_disable(2, 0, ""), 0);
	override_gone(s.queues.queues[1]);
	cr_expect(s.store.unsaved);
}
