/* Reasons that a slow disk takes from a thread, and not from the loop. */
#include "tests/unit/queue-send/slow.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <string.h>

#include "base/io.h"
#include "queue-send/operators/operators.h"
#include "spool/reason.h"

/* ---- of deferrals ---- */

static void
await_moves(void)
{
	struct pollfd p = { .fd =
				executor_fd(slow_w.s.disk.executor, DISK_MOVE),
		.events = POLLIN };
	const uint32_t *count = slow_w.s.messages.count;

	world_run(&slow_w);
	while (count[STATE_ENTERING_INCOMING] + count[STATE_LEAVING] > 0) {
		cr_assert_eq(poll(&p, 1, 30000), 1, "a move does not end");
		world_run(&slow_w);
	}
}

/* Two recipients, of whom the second one runs; the reason of the first is at
 * the gate. */
static uint64_t
hold_up_first(struct world_delivery *second)
{
	struct world_delivery first;
	uint64_t inode;

	slow_w.threads[DISK_MOVE] = 1;
	world_again(&slow_w);
	inode = world_message(&slow_w, "d", 2);
	await_moves();
	world_take_one(&slow_w, &first);
	world_take_one(&slow_w, second);
	slow_close();
	slow_came = 0;
	slow_end(&first, AGENT_DEFERRED);
	slow_await(1);
	return inode;
}

static bool
has_reason(uint64_t inode, uint32_t index)
{
	return world_reason(&slow_w, SPOOL_DEFER, inode, index)[0] == '4';
}

/* mutation: queue-send/message/results.c: add_reason() is always quick. */
Test(slow, D43_D41_a_thread_writes_reasons)
{
	struct world_delivery second;
	const uint64_t inode = hold_up_first(&second);

	cr_expect_not(has_reason(inode, 0));
	cr_expect_not(stop_is_over(&slow_w.s));
	slow_end(&second, AGENT_DEFERRED);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_ACTIVE);
	slow_open(1);
	await_moves();
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_DEFERRED);
	cr_expect(has_reason(inode, 0));
	cr_expect(has_reason(inode, 1));
	cr_expect_eq(reason_attempts(&slow_w.s.sp, inode), 1);
}

/* The note would be lost when the reasons begin the file anew.
 * mutation: queue-send/disk/act_run.c: a thread of acts writes the note. */
Test(slow, D43_A3_a_hold_comes_behind_reasons)
{
	struct world_delivery second;
	const uint64_t inode = hold_up_first(&second);
	const struct queue_id id = world_id(&slow_w, inode);
	struct hold_note found;
	uint32_t running;

	cr_assert_eq(slow_act(ACT_HOLD, inode), ACT_UNDER_WAY);
	slow_open(1);
	cr_expect_eq(world_answered(&running), 0);
	slow_end(&second, AGENT_DEFERRED);
	await_moves();
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_HOLD);
	cr_assert_eq(hold_note_read(&slow_w.s.sp, &id, &found), 0);
	cr_expect_str_eq(found.reason, "why");
	cr_expect(has_reason(inode, 0));
}

/* mutation: queue-send/message/results.c: conclude() says nothing. */
Test(slow, D43_D3_a_disk_that_takes_no_reasons)
{
	struct world_delivery second;
	const uint64_t inode = hold_up_first(&second);

	world_fail(CALL_WRITE, ENOSPC, 1);
	slow_w.s.said_io = 0;
	slow_open(1);
	cr_expect_gt(slow_w.s.said_io, 0);
	cr_expect_not(has_reason(inode, 0));
	slow_end(&second, AGENT_DEFERRED);
	await_moves();
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_DEFERRED);
	cr_expect(has_reason(inode, 1));
}

/* ---- of a message that agents die of ---- */

static void
die(uint32_t deliveries)
{
	struct world_delivery delivery;
	uint32_t i;

	for (i = 0; i < deliveries; i++)
		world_take_one(&slow_w, &delivery);
	io_close(&slow_w.agent);
	world_run(&slow_w);
}

/* mutation: queue-send/message/results.c: results_add_reason() writes by
 * itself; record_task.c: write_result() goes on behind the reason. */
Test(slow, D43_P15_a_thread_writes_the_reasons_of_poison)
{
	const uint64_t inode = world_message(&slow_w, "d", 2);
	int i;

	for (i = 1; i < RETRY_POISON_DEATHS; i++) {
		die(2);
		world_link_agent(&slow_w);
		world_offer_again(&slow_w, inode);
		cr_assert_eq(world_where(&slow_w, inode), SPOOL_ACTIVE);
	}
	slow_close();
	slow_came = 0;
	die(2);
	slow_await(1);
	cr_expect_str_eq(world_reason(&slow_w, SPOOL_BOUNCE, inode, 0), "");
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_ACTIVE);
	slow_open(1);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_HOLD);
	cr_expect_str_eq(world_marks(&slow_w, SPOOL_HOLD, inode), "..");
	for (i = 0; i < 2; i++)
		cr_expect_eq(strncmp(world_reason(&slow_w, SPOOL_BOUNCE, inode,
					 (uint32_t)i),
				 "5.3.0 3 agents died", 19),
		    0);
}

/* mutation: queue-send/message/results.c: reason_failed() counts each time. */
Test(slow, D43_D9_reasons_of_one_message_are_one_fault)
{
	struct world_delivery delivery[4];
	uint64_t inode;
	size_t i;

	slow_w.threads[DISK_MOVE] = 1;
	world_again(&slow_w);
	inode = world_message(&slow_w, "d", ARRAY_LEN(delivery));
	await_moves();
	for (i = 0; i < ARRAY_LEN(delivery); i++)
		world_take_one(&slow_w, &delivery[i]);
	slow_close();
	slow_came = 0;
	for (i = 0; i < ARRAY_LEN(delivery); i++)
		slow_end(&delivery[i], AGENT_DEFERRED);
	slow_await(1);
	world_fail(CALL_WRITE, EIO, ARRAY_LEN(delivery));
	slow_open(1);
	await_moves();
	cr_expect_not(slow_w.s.health.read_only);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_DEFERRED);
}
