/* Notes of rules of hold, while the disk is slow: the move of the message has
 * its note, and everything else goes on. */
#include "tests/unit/queue-send/slow.h"

#include "queue-send/operators/operators.h"
#include "queue-send/message/path.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <unistd.h>

/* A message whose note waits at the gate, while another one is delivered. */
static uint64_t
begin_note(struct world_delivery *other)
{
	uint64_t inode;

	/* The thread for marks would wait at the gate when that takes long. */
	slow_w.threads[DISK_RECORD] = 0;
	slow_w.threads[DISK_MOVE] = 1;
	world_again(&slow_w);
	slow_add_rule("*@d*");
	world_message(&slow_w, "e", 1);
	while (slow_w.s.active == 0)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	world_take_one(&slow_w, other);
	inode = world_file(&slow_w, "d", 2, 0);
	(void)world_trace();
	slow_close();
	slow_came = 0;
	world_offer(&slow_w, SPOOL_INCOMING, inode);
	slow_await(1);
	cr_assert_eq(write(slow_gate[1], "a", 1), 1);
	slow_await(2);
	return inode;
}

static void
go_on(void)
{
	slow_open(1);
	while (slow_w.s.messages.count[STATE_LEAVING] > 0)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	world_run(&slow_w);
}

static int
read_note(uint64_t inode, struct hold_note *ret_note)
{
	const struct queue_id id = world_id(&slow_w, inode);

	return hold_note_read(&slow_w.s.sp, &id, ret_note);
}

/* mutation: queue-send/rules/rules.c: rules_hold() writes the note. */
Test(slow, D43_deliveries_go_on_while_the_note_of_a_rule_is_written)
{
	struct world_delivery other, delivery;
	const uint64_t inode = begin_note(&other);
	struct hold_note note;

	cr_expect_null(strchr(world_trace(), 'a'), "nothing was written");
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_ACTIVE);
	slow_end(&other, AGENT_SENT);
	cr_expect_eq(slow_w.s.counters.delivered, 1);
	cr_expect_not(world_take(&slow_w, &delivery), "nothing of it starts");
	go_on();
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_HOLD);
	cr_assert_eq(read_note(inode, &note), 0);
	cr_expect_eq(note.rule, SLOW_RULE);
	cr_expect_eq(note.uid, 7);
	cr_expect_str_eq(note.reason, "a test");
}

/* mutation: queue-send/operators/acts.c: act_on_message() does not look at
 * moves; turn.c: to_move() counts none that leaves. */
Test(slow, D43_A3_acts_and_a_stop_wait_for_the_note_of_a_rule)
{
	static const enum spool_act acts[] = { ACT_HOLD, ACT_RELEASE,
		ACT_REQUEUE, ACT_DELETE, ACT_EXPIRE };
	struct world_delivery other;
	const uint64_t inode = begin_note(&other);
	size_t i;

	for (i = 0; i < ARRAY_LEN(acts); i++)
		cr_expect_eq(slow_act(acts[i], inode), -EAGAIN, "%zu", i);
	slow_end(&other, AGENT_SENT);
	control_ops.stop(
	    &(struct daemon){ .state = &slow_w.s }, 1000 * USEC_PER_SEC);
	world_run(&slow_w);
	cr_expect_not(stop_is_over(&slow_w.s));
	go_on();
	cr_expect(stop_is_over(&slow_w.s));
	slow_w.s.stopping = false;
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_HOLD);
	cr_expect_eq(slow_act(ACT_RELEASE, inode), 0);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_DEFERRED);
}

/* mutation: queue-send/message/finish.c: moved() does not look at note_error.
 */
Test(slow, D43_D6_D7_a_message_without_the_note_of_a_rule_is_deferred)
{
	static const int errors[] = { ENOSPC, EIO, ENOENT };
	struct world_delivery other;
	struct hold_note note;
	uint64_t inode;
	size_t i;

	for (i = 0; i < ARRAY_LEN(errors); i++) {
		inode = begin_note(&other);
		world_fail(CALL_WRITE, errors[i], 1);
		go_on();
		cr_expect_eq(
		    world_where(&slow_w, inode), SPOOL_DEFERRED, "%zu", i);
		cr_expect_eq(read_note(inode, &note), -ENOENT, "%zu", i);
		slow_end(&other, AGENT_SENT);
		cr_expect_eq(slow_w.s.counters.delivered, 1);
	}
}

/* The messages are deferred; nothing is wrong with the disk.
 * mutation: queue-send/disk/files.c: disk_note_failed() counts each error. */
Test(slow, D6_a_shortage_of_descriptors_for_notes_stops_nothing)
{
	uint64_t inodes[HEALTH_ERRORS + 1];
	size_t i;

	slow_w.threads[DISK_RECORD] = 0;
	world_again(&slow_w);
	slow_add_rule("*@d*");
	for (i = 0; i < ARRAY_LEN(inodes); i++)
		inodes[i] = world_file(&slow_w, "d", 1, 0);
	world_fail(CALL_WRITE, EMFILE, ARRAY_LEN(inodes));
	for (i = 0; i < ARRAY_LEN(inodes); i++) {
		world_offer(&slow_w, SPOOL_INCOMING, inodes[i]);
		world_run(&slow_w);
	}
	cr_expect_not(slow_w.s.health.read_only);
	for (i = 0; i < ARRAY_LEN(inodes); i++)
		cr_expect_eq(world_where(&slow_w, inodes[i]), SPOOL_DEFERRED);
}
