/* What threads write and move in place of the loop, while the disk is slow:
 * marks, reasons of failures, files. */
#include "tests/unit/queue-send/slow.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/operators.h"
#include "queue-send/agents/agents.h"
#include "queue-send/message/path.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* A message with two recipients, of whom one runs, and the other one has this
 * outcome, which is with the thread. */
static uint64_t
begin_record(enum agent_outcome outcome, struct world_delivery *other)
{
	const uint64_t inode = world_message(&slow_w, "d", 2);
	struct world_delivery delivery;

	world_take_one(&slow_w, &delivery);
	world_take_one(&slow_w, other);
	slow_close();
	slow_end(&delivery, outcome);
	cr_assert_eq(slow_w.s.records, 1);
	return inode;
}

/* ---- records ---- */

/* mutation: queue-send/message/results.c: is_quick() is always true. */
Test(slow, D43_deliveries_go_on_while_the_disk_writes_slowly)
{
	static const enum agent_outcome outcomes[] = { AGENT_SENT,
		AGENT_FAILED };
	struct world_delivery other, delivery;
	uint64_t inode;
	size_t i;

	for (i = 0; i < ARRAY_LEN(outcomes); i++) {
		inode = begin_record(outcomes[i], &other);
		cr_expect_eq(
		    slow_w.s.counters.delivered + slow_w.s.counters.failed,
		    3 * i, "not told before it is marked");
		cr_expect_str_eq(
		    world_marks(&slow_w, SPOOL_ACTIVE, inode), "..");
		world_message(&slow_w, "e", 1);
		cr_expect(world_take(&slow_w, &delivery), "others start");
		slow_end(&delivery, AGENT_SENT);
		slow_end(&other, AGENT_SENT);
		cr_expect_eq(slow_w.s.records, 3);
		slow_open(1);
		cr_expect_eq(slow_w.s.records, 0);
		cr_expect_eq(
		    slow_w.s.counters.delivered + slow_w.s.counters.failed,
		    3 * (i + 1));
		cr_expect_eq(world_where(&slow_w, inode), SPOOL_NDIRS);
	}
	(void)world_clear_incoming(&slow_w, &inode);
	world_is_empty(&slow_w);
}

/* mutation: queue-send/message/record_task.c: write_both() marks first. */
Test(slow, D43_D3_the_reason_is_written_before_the_mark)
{
	struct world_delivery other;
	uint64_t inode = begin_record(AGENT_FAILED, &other);
	const char *trace;

	(void)world_trace();
	slow_open(1);
	trace = world_trace();
	cr_expect_not_null(strstr(trace, "ap"), "%s", trace);
	cr_expect_str_eq(world_marks(&slow_w, SPOOL_ACTIVE, inode), "F.");
	cr_expect_neq(world_reason(&slow_w, SPOOL_BOUNCE, inode, 0)[0], '\0');
	slow_end(&other, AGENT_SENT);
}

/* mutation: queue-send/message/results.c: without_reason() does nothing. */
Test(slow, D43_D3_no_recipient_fails_without_its_reason_on_disk)
{
	struct world_delivery other;
	uint64_t inode = begin_record(AGENT_FAILED, &other);

	world_fail(CALL_WRITE, ENOSPC, 1);
	slow_open(1);
	cr_expect_eq(slow_w.s.counters.failed, 0);
	cr_expect_eq(slow_w.s.counters.deferred, 1);
	slow_end(&other, AGENT_SENT);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_DEFERRED);
	cr_expect_str_eq(world_marks(&slow_w, SPOOL_DEFERRED, inode), ".D");
}

/* mutation: queue-send/message/results.c: one_is_done() keeps nothing. */
Test(slow, D43_D4_a_mark_that_cannot_be_written_is_kept_in_memory)
{
	struct world_delivery other;
	uint64_t inode = begin_record(AGENT_SENT, &other);

	world_fail(CALL_PWRITE, ENOSPC, 0);
	slow_open(1);
	cr_expect(slow_w.s.health.read_only);
	slow_end(&other, AGENT_SENT);
	cr_expect_eq(slow_w.s.counters.delivered, 0);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_ACTIVE);
	world_fail(CALL_NONE, 0, 0);
	slow_w.s.health.probe_at = slow_w.s.record_at = 0;
	send_wake(&slow_w.s);
	world_run(&slow_w);
	cr_expect_eq(slow_w.s.counters.delivered, 2);
	world_is_empty(&slow_w);
}

/* mutation: queue-send/turn.c: stop_is_over() counts no records; acts.c,
 * give_up() looks at no records. */
Test(slow, D43_A3_a_stop_and_an_act_wait_for_records)
{
	struct world_delivery other;
	uint64_t inode = begin_record(AGENT_FAILED, &other);
	uint32_t running;

	cr_expect_eq(world_act(&slow_w, ACT_EXPIRE, inode, &running), -EAGAIN);
	slow_end(&other, AGENT_DEFERRED);
	control_ops.stop(
	    &(struct daemon){ .state = &slow_w.s }, 1000 * USEC_PER_SEC);
	world_run(&slow_w);
	cr_expect_not(stop_is_over(&slow_w.s));
	slow_open(1);
	cr_expect(stop_is_over(&slow_w.s));
	slow_w.s.stopping = false;
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_DEFERRED);
}

/* mutation: queue-send/message/results.c: results_are_full() is never true. */
Test(slow, D43_no_delivery_starts_while_too_many_marks_wait)
{
	struct world_delivery other, delivery;

	begin_record(AGENT_SENT, &other);
	slow_w.s.records += 1023;
	world_message(&slow_w, "e", 1);
	cr_expect_not(world_take(&slow_w, &delivery));
	slow_w.s.records -= 1023;
	slow_open(1);
	cr_assert(world_take(&slow_w, &delivery));
	slow_end(&delivery, AGENT_SENT);
	slow_end(&other, AGENT_SENT);
	world_is_empty(&slow_w);
}

/* A healthy disk pays for no thread.
 * mutation: queue-send/disk/files.c: disk_is_slow() is always true. */
Test(slow, D43_the_loop_writes_marks_of_a_disk_that_answers)
{
	struct world_delivery delivery;

	slow_w.s.disk.slow_at = slow_w.s.disk.looked = 0;
	world_message(&slow_w, "d", 1);
	world_take_one(&slow_w, &delivery);
	slow_close();
	slow_closed = false;
	slow_end(&delivery, AGENT_SENT);
	cr_expect_eq(slow_w.s.counters.delivered, 1);
	slow_w.gated = false;
	world_is_empty(&slow_w);
}

/* mutation: common/spool/sync_pool.c: sync_pool_slow_at() looks at no task that
 * is under way. */
Test(slow, D43_a_task_that_takes_long_shows_that_the_disk_is_slow)
{
	struct world_delivery other;

	slow_w.s.disk.slow_at = slow_w.s.disk.looked = 0;
	cr_expect_not(disk_is_slow(&slow_w.s));
	begin_record(AGENT_FAILED, &other);
	while (!disk_is_slow(&slow_w.s))
		send_read_clocks(&slow_w.s);
	slow_open(1);
	cr_expect(disk_is_slow(&slow_w.s), "and for a time after it");
	slow_w.s.now += 11 * USEC_PER_SEC;
	cr_expect_not(disk_is_slow(&slow_w.s));
	slow_end(&other, AGENT_SENT);
}

/* mutation: queue-send/message/results.c: each record of a message begins
 * bounce/ anew. */
Test(slow, D43_D3_all_reasons_of_a_message_are_kept)
{
	struct world_delivery deliveries[2];
	const uint64_t inode = world_message(&slow_w, "d", 3);
	uint32_t i;

	for (i = 0; i < 2; i++)
		world_take_one(&slow_w, &deliveries[i]);
	slow_close();
	for (i = 0; i < 2; i++)
		slow_end(&deliveries[i], AGENT_FAILED);
	slow_open(1);
	for (i = 0; i < 2; i++)
		cr_expect_neq(world_reason(&slow_w, SPOOL_BOUNCE, inode, i)[0],
		    '\0', "%u", i);
	cr_expect_eq(world_deliver(&slow_w, AGENT_DEFERRED), 1);
}

/* ---- moves ---- */

/* Two moves for one wake-up of a thread, which hangs with the first one.
 * mutation: common/daemon/executor.c: executor_look() presses nothing. */
Test(slow, D41_a_move_behind_one_that_hangs_gets_another_thread)
{
	int i;

	slow_w.threads[DISK_MOVE] = 2;
	world_again(&slow_w);
	slow_close();
	world_offer(&slow_w, SPOOL_INCOMING, world_file(&slow_w, "d", 1, 0));
	world_offer(&slow_w, SPOOL_INCOMING, world_file(&slow_w, "e", 1, 0));
	world_run(&slow_w);
	cr_assert_eq(slow_w.s.messages.count[STATE_ENTERING_INCOMING], 2);
	for (i = 0; i < 1000 && atomic_load(&slow_came) < 2; i++)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	cr_expect_eq(atomic_load(&slow_came), 2);
	slow_open(2);
	while (slow_w.s.active < 2)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
}

/* One thread moves both, and hangs with the second one.
 * mutation: common/daemon/executor.c: executor_look() takes nothing. */
Test(slow, D41_a_move_that_has_ended_waits_for_none_that_hangs)
{
	slow_w.threads[DISK_MOVE] = 1;
	world_again(&slow_w);
	slow_close();
	world_offer(&slow_w, SPOOL_INCOMING, world_file(&slow_w, "d", 1, 0));
	world_offer(&slow_w, SPOOL_INCOMING, world_file(&slow_w, "e", 1, 0));
	world_run(&slow_w);
	cr_assert_eq(slow_w.s.messages.count[STATE_ENTERING_INCOMING], 2);
	cr_assert_eq(write(slow_gate[1], "", 1), 1);
	while (slow_w.s.active == 0)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	cr_expect_eq(slow_w.s.messages.count[STATE_ENTERING_INCOMING], 1);
	slow_open(1);
}
