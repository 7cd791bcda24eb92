/* Reasons of deferrals are written before their message moves. */
#include "tests/unit/queue-send/world.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/operators.h"
#include "queue-send/message/path.h"
#include "spool/reason.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define HOUR 3600

static struct world w;

static void
start(void)
{
	w.threads[DISK_MOVE] = w.threads[DISK_RECORD] = 1;
	world_start(&w,
	    "error_interval = 1h\ndelay_warning_time = 4h\n"
	    "discard_process_limit = 2\n");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(kept_reasons, .init = start, .fini = end, .timeout = 60);

static void
await(void)
{
	struct pollfd p = { .fd = executor_fd(w.s.disk.executor, DISK_MOVE),
		.events = POLLIN };
	const uint32_t *count = w.s.messages.count;

	world_run(&w);
	while (count[STATE_ENTERING_INCOMING] + count[STATE_ENTERING_DEFERRED] +
		count[STATE_LEAVING] >
	    0) {
		cr_assert_eq(poll(&p, 1, 120000), 1, "a move does not end");
		world_run(&w);
	}
}

static uint64_t
come(uint32_t rcpts, int64_t age_s)
{
	uint64_t inode = world_file(&w, "d", rcpts, age_s);

	world_offer(&w, SPOOL_INCOMING, inode);
	await();
	cr_assert_eq(world_where(&w, inode), SPOOL_ACTIVE);
	return inode;
}

static void
deliver(enum agent_outcome outcome)
{
	(void)world_deliver(&w, outcome);
	await();
}

static void
again(uint64_t inode)
{
	world_offer_again(&w, inode);
	await();
}

static bool
has_reason(uint64_t inode, uint32_t index)
{
	return world_reason(&w, SPOOL_DEFER, inode, index)[0] == '4';
}

/* The first of two recipients is deferred, the second one runs. */
static void
defer_first(struct world_delivery *second)
{
	struct world_delivery first;

	world_take_one(&w, &first);
	world_take_one(&w, second);
	world_result(&w, &first, 0, AGENT_DEFERRED);
	world_done(&w, &first);
	world_run(&w);
}

static void
end_second(const struct world_delivery *second)
{
	world_result(&w, second, 0, AGENT_DEFERRED);
	world_done(&w, second);
	await();
}

/* mutation: queue-send/message/results.c: note_begin() begins defer/ with each.
 */
Test(kept_reasons, D41_reasons_of_an_attempt)
{
	const uint64_t inode = come(2, 0);
	struct world_delivery second;

	defer_first(&second);
	cr_expect_eq(w.s.counters.deferred, 1, "it is counted");
	end_second(&second);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect(has_reason(inode, 0));
	cr_expect(has_reason(inode, 1));
	cr_expect_eq(reason_attempts(&w.s.sp, inode), 1);
	again(inode);
	deliver(AGENT_DEFERRED);
	cr_expect_eq(reason_attempts(&w.s.sp, inode), 2);
	again(inode);
	deliver(AGENT_SENT);
	world_is_empty(&w);
}

/* mutation: queue-send/message/record_task.c: the reason decides what becomes
 * of it. */
Test(kept_reasons, D41_D3_a_disk_that_takes_no_reasons)
{
	const uint64_t inode = come(1, 0);

	world_fail(CALL_WRITE, ENOSPC, 1);
	deliver(AGENT_DEFERRED);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_not(has_reason(inode, 0));
	cr_expect_not_null(due_find(&w.s.due, inode));
}

/* mutation: queue-send/disk/act_run.c: a thread of acts writes the note.
 */
Test(kept_reasons, D41_A3_a_note_of_a_hold_comes_behind)
{
	const uint64_t inode = come(2, 0);
	const struct queue_id id = world_id(&w, inode);
	const struct hold_note note = { .uid = 7, .reason = "why" };
	struct world_delivery second;
	struct hold_note found;
	uint32_t running;

	defer_first(&second);
	cr_expect_eq(world_hold(&w, &id, &note, &running), 0);
	cr_expect(has_reason(inode, 0));
	end_second(&second);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
	cr_assert_eq(hold_note_read(&w.s.sp, &id, &found), 0);
	cr_expect_str_eq(found.reason, "why");
	cr_expect(has_reason(inode, 1));
	cr_expect_eq(reason_attempts(&w.s.sp, inode), 1);
}

/* A recipient that waits for its turn keeps its message in active/.
 * mutation: queue-send/turn.c: stop_is_over() does not wait for records. */
Test(kept_reasons, D41_a_stop_writes_them)
{
	const uint64_t inode = come(3, 0); /* the third one waits */
	struct daemon d = { .state = &w.s, .base = w.s.base };
	struct world_delivery first, second;

	world_take_one(&w, &first);
	world_take_one(&w, &second);
	w.s.d = &d;
	control_ops.stop(&d, 1000 * USEC_PER_SEC);
	world_result(&w, &first, 0, AGENT_DEFERRED);
	world_done(&w, &first);
	world_result(&w, &second, 0, AGENT_DEFERRED);
	world_done(&w, &second);
	world_run(&w);
	cr_expect(d.exiting);
	cr_expect_eq(world_where(&w, inode), SPOOL_ACTIVE);
	cr_expect(has_reason(inode, 0));
	cr_expect(has_reason(inode, 1));
	cr_expect_eq(reason_attempts(&w.s.sp, inode), 1);
}

/* mutation: queue-send/message/settle.c: a message does not wait for records.
 */
Test(kept_reasons, D41_D37_a_warning_has_the_reasons)
{
	const uint64_t inode = come(1, 5 * HOUR);
	uint64_t report;

	deliver(AGENT_DEFERRED);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect(world_has_report(&w, "\nAction: delayed\nStatus: 4.2.1\n"));
	cr_expect_eq(world_clear_incoming(&w, &report), 1);
	cr_expect(has_reason(inode, 0));
}

Test(kept_reasons, D41_the_reasons_go_to_the_other_queue)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };
	const struct msg msg = { .type = MSG_HAND_OVER,
		.u.HAND_OVER.queues = { "\2\0\0\0", 4 } };
	const uint64_t inode = come(3, 0); /* the third one waits */
	struct world_delivery first, second;
	struct spool other;
	int i;

	cr_assert_eq(spool_create(w.dir, 2, 3, &owner), 0);
	world_take_one(&w, &first);
	world_take_one(&w, &second);
	world_result(&w, &first, 0, AGENT_DEFERRED);
	world_run(&w);
	for (i = 0; i < 3; i++) {
		cr_assert_eq(
		    control_ops.told(&(struct daemon){ .state = &w.s }, &msg),
		    0);
		world_run(&w);
		if (i == 0) {
			world_done(&w, &first);
			end_second(&second);
		}
		await();
	}
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_assert_eq(spool_open(&other, &spool_sys_real, w.dir, 2), 0);
	cr_expect_eq(reason_attempts(&other, inode), 1);
	spool_close(&other);
}
