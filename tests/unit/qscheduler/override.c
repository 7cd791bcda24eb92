/* Requests of operators, on a supervisor that has queues and no processes. */
#include "hand.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NOW HAND_NOW

TestSuite(override, .init = hand_setup, .fini = hand_teardown);

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
		    hand_load(1, rows[i].used, rows[i].limit, rows[i].seconds),
		    0);
		cr_expect_str_eq(hand.text, rows[i].want);
		cr_expect_eq(hand.page.rows[0].flags, SCHED_ROW_MANUAL);
		cr_expect_eq(hand.page.rows[0].load_pct, rows[i].pct);
		cr_expect_eq(hand.page.rows[0].manual_until_mono, until);
		cr_expect_eq(hand.page.rows[1].flags, 0);
		cr_expect(hand_holds(1, OVERRIDE_LOAD, until - 1));
		cr_expect_not(hand_holds(1, OVERRIDE_LOAD, until));
	}
	override_tick(&hand.s.queues, INT64_MAX - 1);
	cr_expect_not(hand_holds(1, OVERRIDE_LOAD, NOW));
}

Test(override, loads_are_cleared_of_one_and_of_all)
{
	cr_expect_eq(hand_clear(1), 0);
	cr_expect_str_eq(hand.text, "queue 1: had no load by hand");
	cr_expect_eq(hand_load(1, 1, 2, 0), 0);
	cr_expect_eq(hand_clear(1), 0);
	cr_expect_str_eq(hand.text, "queue 1: load by hand cleared");
	cr_expect_eq(hand.page.rows[0].flags, 0);
	cr_expect_eq(hand_load(1, 1, 2, 0), 0);
	cr_expect_eq(hand_load(7, 1, 2, 0), 0);
	cr_expect_eq(hand_clear(0), 0);
	cr_expect_str_eq(hand.text, "loads by hand cleared: 2");
	hand.s.queues.overrides[1].until[OVERRIDE_LOAD] = NOW;
	cr_expect_eq(hand_clear(0), 0);
	cr_expect_str_eq(hand.text, "loads by hand cleared: 0", "it is over");
	cr_expect_eq(hand.page.rows[0].flags | hand.page.rows[2].flags, 0);
}

/* ---- queue numbers ---- */

Test(override, I7_an_unchecked_queue_number_from_the_message_queue)
{
	static const int32_t numbers[] = { -1, INT32_MIN, INT32_MAX, 3, 256,
		4095, 4096, 99999, 65537 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(numbers); i++) {
		const int32_t n = numbers[i];

		cr_expect_eq(hand_load(n, 50, 100, 0), -ENOENT, "%d", n);
		cr_expect_eq(hand_clear(n), -ENOENT, "%d", n);
		cr_expect_eq(hand_disable(n, 0, ""), -ENOENT, "%d", n);
		cr_expect_eq(hand_enable(n), -ENOENT, "%d", n);
		cr_expect_str_eq(hand.text, "there is no such queue");
	}
	cr_expect_eq(hand_load(0, 50, 100, 0), -ENOENT);
	cr_expect_eq(hand_disable(0, 0, ""), -ENOENT, "all of them?");
	cr_expect_eq(hand_enable(0), -ENOENT);
	cr_expect_not(override_is_any(hand.s.queues.overrides, 0));
}

Test(override, a_number_on_disk_that_is_not_run)
{
	hand.s.queues.on_disk[3] = true;
	cr_expect_eq(hand_enable(3), -ENOENT);
	cr_expect_str_eq(hand.text, "is not run (closed)");
	cr_expect_eq(hand_load(3, 1, 2, 0), -ENOENT);
	cr_expect_str_eq(hand.text, "is not run (closed)");
	hand.s.queues.on_disk[3] = false;
}

Test(override, refused_and_nothing_else)
{
	char reason[SCHED_REASON_SIZE + 1];

	memset(reason, 'x', sizeof(reason));
	reason[SCHED_REASON_SIZE] = '\0';
	cr_expect_eq(hand_load(1, 1, 0, 0), -EINVAL);
	cr_expect_eq(hand_load(1, 2, 1, 0), -ERANGE);
	cr_expect_eq(hand_load(1, 0, 1000001, 0), -ERANGE);
	cr_expect_eq(hand_load(1, 1, 2, UINT32_MAX), -ERANGE);
	cr_expect_str_eq(hand.text, "the time is longer than a year");
	cr_expect_eq(hand_disable(1, 365 * 86400 + 1, ""), -ERANGE);
	cr_expect_eq(hand_disable(1, 0, reason), -EINVAL);
	cr_expect_str_eq(hand.text, "the reason is longer than 95 bytes");
	cr_expect_eq(hand_disable(1, 0, "\x1b[2J"), -EINVAL);
	cr_expect_eq(hand_disable(1, 0, "a\nb"), -EINVAL);
	cr_expect_eq(hand_disable(7, 0, ""), -EBUSY);
	cr_expect_eq(hand_enable(7), -EBUSY);
	cr_expect_not(override_is_any(hand.s.queues.overrides, 0));
	cr_expect_eq(faccessat(hand.s.base.fd, OVERRIDE_NAME, F_OK, 0), -1);
}

/* A frame of another link never comes this far; one that does is nobody'hand.s.
 */
Test(override, not_a_request)
{
	const struct msg msg = { .type = MSG_RELOAD };

	cr_expect_eq(
	    request_handle(&hand.s, &msg, &hand.source, NOW), -EBADMSG);
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
		{ 5, 0, -ERANGE,
		    "count 5: not between queue_count (1) and queue_max (4)" },
		{ 0, 20, -ERANGE,
		    "count 0: not between queue_count (1) and queue_max (4)" },
	};
	struct msg msg = { .type = MSG_COUNT };
	size_t i;

	hand.s.queues.count = 1;
	hand.s.queues.max = 4;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		msg.u.COUNT.count = rows[i].count;
		msg.u.COUNT.seconds = rows[i].seconds;
		cr_expect_eq(hand_ask(&msg), rows[i].code, "row %zu", i);
		cr_expect_str_eq(
		    hand.text, rows[i].want, "row %zu: %s", i, hand.text);
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
	cr_expect_eq(hand_disable(2, 90, "new disk"), 0);
	cr_expect_str_eq(hand.text, "queue 2: disabled for 90s");
	cr_expect_eq(hand.page.rows[1].state, QUEUE_STATE_DISABLED);
	cr_expect_eq(hand.page.rows[1].flags, SCHED_ROW_OVERRIDE);
	cr_expect_eq(hand.page.rows[1].until_mono, NOW + 90 * USEC_PER_SEC);
	cr_expect_str_eq(hand.page.rows[1].reason, "new disk");
	cr_expect_not(hand.s.queues.queues[1]->faulty, "its children go on");
	cr_expect_not(queue_is_leaving(hand.s.queues.queues[1]));
	cr_expect_eq(hand.page.qcount, 1);
	cr_expect_eq(flag_of(hand.s.queues.queues[0]), 0);
	cr_expect_eq(flag_of(hand.s.queues.queues[1]), 1);
	cr_expect_eq(flag_of(hand.s.queues.queues[2]), 1, "closing");
	cr_expect_eq(hand_disable(2, 0, ""), 0);
	cr_expect_str_eq(hand.text, "queue 2: disabled for ever");
	cr_expect_eq(hand.page.rows[1].until_mono, 0);
	cr_expect_str_eq(hand.page.rows[1].reason, "new disk", "as it was");
	cr_expect_eq(hand_disable(2, 0, "newer disk"), 0);
	cr_expect_str_eq(hand.page.rows[1].reason, "newer disk");
	cr_expect_eq(hand_enable(2), 0);
	cr_expect_eq(hand_disable(2, 0, ""), 0);
	cr_expect_str_eq(hand.page.rows[1].reason, "", "of the last time");
	cr_expect_eq(hand_enable(2), 0);
	cr_expect_str_eq(hand.text, "queue 2: enabled");
	cr_expect_eq(flag_of(hand.s.queues.queues[1]), 0);
	cr_expect_eq(hand.page.rows[1].state, QUEUE_STATE_OPEN);
	cr_expect_eq(hand.page.rows[1].flags, 0);
	cr_expect_eq(hand_enable(2), 0, "twice");
	cr_expect_str_eq(hand.text, "queue 2: was not disabled");
}

Test(override, enabled_when_its_time_is_over)
{
	cr_expect_eq(hand_disable(2, 5, ""), 0);
	override_tick(&hand.s.queues, NOW + 5 * USEC_PER_SEC - 1);
	cr_expect_eq(
	    queue_state(hand.s.queues.queues[1], NOW + 5 * USEC_PER_SEC - 1),
	    QUEUE_STATE_DISABLED);
	override_tick(&hand.s.queues, NOW + 5 * USEC_PER_SEC);
	cr_expect_eq(
	    queue_state(hand.s.queues.queues[1], NOW + 5 * USEC_PER_SEC),
	    QUEUE_STATE_OPEN);
	cr_expect(hand_unsaved());
	hand_tick(NOW + 120 * USEC_PER_SEC);
	cr_expect_not(hand_unsaved());
	cr_expect_eq(faccessat(hand.s.base.fd, OVERRIDE_NAME, F_OK, 0), -1);
}

Test(override, I13_the_last_open_queue_is_told_of)
{
	cr_expect_eq(hand_disable(1, 0, ""), 0);
	cr_expect_null(strstr(hand.text, "NO QUEUE"));
	cr_expect_eq(hand_disable(2, 0, ""), 0);
	cr_expect_not_null(
	    strstr(hand.text, "NO QUEUE IS OPEN"), "%s", hand.text);
	cr_expect_eq(hand.page.qcount, 0);
}

/* Disabled for a fault comes first: that is not in the operator's hand. */
Test(override, a_fault_is_not_hidden)
{
	hand.s.queues.queues[0]->faulty = true;
	cr_expect_eq(hand_disable(1, 0, "why"), 0);
	cr_expect_eq(hand.page.rows[0].state, QUEUE_STATE_DISABLED);
	cr_expect_eq(hand.page.rows[0].flags, SCHED_ROW_ALSO_HAND);
	cr_expect_str_neq(hand.page.rows[0].reason, "why");
	cr_expect_eq(hand_enable(1), 0);
	cr_expect_str_eq(
	    hand.text, "queue 1: enabled; but it is disabled for a fault");
	cr_expect_eq(hand_enable(1), -EBUSY);
	cr_expect_not_null(
	    strstr(hand.text, "looked at again"), "%s", hand.text);
	cr_expect_eq(hand_disable(1, 0, "why"), 0);
	hand.s.queues.queues[0]->faulty = false;
	publish(&hand.s, NOW);
	cr_expect_eq(
	    hand.page.rows[0].flags & SCHED_ROW_OVERRIDE, SCHED_ROW_OVERRIDE);
	cr_expect_str_eq(hand.page.rows[0].reason, "why");
}

/* ---- judged only ---- */

Test(override, what_is_judged_changes_nothing)
{
	struct msg count = { .type = MSG_COUNT };

	hand.s.queues.count = 1;
	hand.s.queues.max = 4;
	cr_expect_eq(hand_disable(2, 0, "new disk"), 0);
	cr_expect_eq(hand_load(2, 1, 2, 60), 0);
	hand.source.judge = true;
	cr_expect_eq(hand_load(1, 1, 2, 60), 0);
	cr_expect_eq(hand_load(3, 1, 2, 60), -ENOENT);
	cr_expect_str_eq(hand.text, "there is no such queue");
	cr_expect_eq(hand_load(1, 2, 1, 60), -ERANGE);
	cr_expect_eq(hand_clear(2), 0);
	cr_expect_eq(hand_clear(0), 0);
	cr_expect_eq(hand_clear(3), -ENOENT);
	cr_expect_eq(hand_disable(1, 0, ""), 0);
	cr_expect_eq(hand_disable(7, 0, ""), -EBUSY);
	cr_expect_eq(hand_enable(2), 0);
	cr_expect_eq(hand_enable(7), -EBUSY);
	hand.s.queues.queues[0]->faulty = true;
	cr_expect_eq(hand_enable(1), 0, "it would be looked at");
	hand.s.queues.queues[0]->faulty = false;
	count.u.COUNT.count = 4;
	cr_expect_eq(hand_ask(&count), 0);
	count.u.COUNT.count = 5;
	cr_expect_eq(hand_ask(&count), -ERANGE);
	hand.source.judge = false;
	cr_expect_not(hand_holds(1, OVERRIDE_LOAD, NOW));
	cr_expect_not(hand_holds(1, OVERRIDE_DISABLED, NOW));
	cr_expect(hand_holds(2, OVERRIDE_LOAD, NOW));
	cr_expect(hand_holds(2, OVERRIDE_DISABLED, NOW));
	cr_expect_eq(hand.s.grow.held, 0);
}

/* ---- the log ---- */

static void
read_log(int log, char *out, size_t size)
{
	const ssize_t n = pread(log, out, size - 1, 0);

	out[n < 0 ? 0 : n] = '\0';
	cr_assert_eq(ftruncate(log, 0), 0);
	cr_assert_eq(lseek(log, 0, SEEK_SET), 0);
}

Test(override, the_log_names_the_user)
{
	static const struct {
		struct ask_source from;
		const char *want;
	} cases[] = {
		{ { .uid = 0, .pid = 4712 },
		    "(asked by root, uid 0, pid 4712: new disk)" },
		{ { .uid = 1000, .pid = 1 },
		    "(asked by alice, uid 1000, pid 1: new disk)" },
		{ { .uid = 1001, .pid = 0 },
		    "(asked by uid 1001, pid 0: new disk)" },
	};
	const int log = memfd_create("log", MFD_CLOEXEC);
	char said[1024];
	size_t i;

	hand.s.requests.users[0] = (struct request_user){ 0, "root" };
	hand.s.requests.users[1] = (struct request_user){ 1000, "alice" };
	cr_assert(dup2(log, STDERR_FILENO) >= 0);
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		hand.source = cases[i].from;
		cr_expect_eq(hand_disable(1, 0, "new disk"), 0);
		read_log(log, said, sizeof(said));
		cr_expect(strstr(said, cases[i].want) != NULL, "%s", said);
	}
	hand.source = (struct ask_source){ .judge = true };
	cr_expect_eq(hand_disable(1, 0, ""), 0);
	read_log(log, said, sizeof(said));
	cr_expect_str_eq(said, "", "nothing is done");
	close(log);
}
