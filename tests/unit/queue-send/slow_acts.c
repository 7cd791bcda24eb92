/* Acts of operators in threads, while the disk is slow: everything else goes
 * on, and the same message waits. */
#include "queue-send/agents/own.h"
#include "tests/unit/queue-send/slow.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/own.h"
#include "queue-send/agents/agents.h"
#include "queue-send/message/path.h"
#include "spool/reason.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

/* A delivery from the offer to its end. */
static void
expect_deliveries_go_on(void)
{
	struct world_delivery delivery;
	const uint64_t before = slow_w.s.counters.delivered;

	world_message(&slow_w, "e", 1);
	cr_assert(world_take(&slow_w, &delivery), "others start");
	cr_expect_str_eq(delivery.first, "r0@e0.test");
	slow_end(&delivery, AGENT_SENT);
	cr_expect_eq(slow_w.s.counters.delivered, before + 1);
}

/* ---- acts on files ---- */

/* mutation: queue-send/disk/act_run.c: act_run() leaves nothing to a
 * thread; acts.c: is_refused() asks for no act that is under way. */
Test(slow, D43_A3_deliveries_go_on_while_an_act_waits_for_the_disk)
{
	static const struct {
		enum spool_act what;
		enum spool_dir from, to;
	} rows[] = {
		{ ACT_HOLD, SPOOL_INCOMING, SPOOL_HOLD },
		{ ACT_HOLD, SPOOL_DEFERRED, SPOOL_HOLD },
		{ ACT_HOLD, SPOOL_HOLD, SPOOL_HOLD },
		{ ACT_RELEASE, SPOOL_HOLD, SPOOL_DEFERRED },
		{ ACT_REQUEUE, SPOOL_HOLD, SPOOL_DEFERRED },
		{ ACT_DELETE, SPOOL_DEFERRED, SPOOL_DELETED },
		{ ACT_UNDELETE, SPOOL_DELETED, SPOOL_HOLD },
		{ ACT_EXPIRE, SPOOL_HOLD, SPOOL_HOLD },
		{ ACT_EXPIRE_HELD, SPOOL_HOLD, SPOOL_DEFERRED },
		{ ACT_SPREAD, SPOOL_INCOMING, SPOOL_NDIRS },
		{ ACT_SPREAD, SPOOL_DEFERRED, SPOOL_NDIRS },
	};
	uint64_t inode;
	uint32_t running;
	size_t i;

	/* The thread for marks would wait at the gate when that takes long. */
	slow_w.threads[DISK_RECORD] = 0;
	slow_use_act_threads(1);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		inode = slow_lay(rows[i].from);
		slow_act_waits(rows[i].what, inode);
		cr_expect_eq(world_answered(&running), ACT_UNDER_WAY, "%zu", i);
		expect_deliveries_go_on();
		cr_expect_eq(world_where(&slow_w, inode), rows[i].from);
		cr_expect_eq(slow_act(rows[i].what, inode), -EAGAIN,
		    "%zu: another act on it", i);
		slow_open(1);
		cr_expect_eq(slow_w.s.acts.count, 0);
		cr_expect_eq(world_answered(&running), 0, "%zu", i);
		cr_expect_eq(world_where(&slow_w, inode), rows[i].to, "%zu", i);
	}
	spread_end(&slow_w.s, &slow_spread);
}

/* The offer is asked for again, whether the act fails or not.
 * mutation: queue-send/disk/act_run.c: act_is_met() notes nothing;
 * queue-send/agents/offers.c: an offer is taken all the same. */
Test(slow, D43_D22_an_offer_of_a_message_that_is_acted_on)
{
	uint64_t inode;
	uint32_t running;
	int fails;

	slow_use_act_threads(1);
	for (fails = 0; fails < 2; fails++) {
		inode = slow_lay(SPOOL_INCOMING);
		slow_act_waits(ACT_HOLD, inode);
		world_offer(&slow_w, SPOOL_INCOMING, inode);
		world_run(&slow_w);
		cr_expect_eq(world_where(&slow_w, inode), SPOOL_INCOMING);
		cr_expect_null(messages_find(&slow_w.s.messages, inode));
		slow_w.scans = 0;
		slow_w.s.links->scan_at = 0;
		if (fails)
			world_fail(CALL_RENAME, EIO, 1);
		slow_open(1);
		cr_expect_eq(world_answered(&running), fails ? -EIO : 0);
		cr_expect_eq(slow_w.scans, 1, "fails: %d", fails);
		cr_expect_eq(world_where(&slow_w, inode),
		    fails ? SPOOL_INCOMING : SPOOL_HOLD);
	}
	(void)world_clear_incoming(&slow_w, &inode);
}

/* mutation: queue-send/disk/act_run.c: look_again() does nothing. */
Test(slow, D43_what_was_offered_is_offered_again_when_an_act_fails)
{
	uint64_t inode;
	uint32_t running;

	slow_use_act_threads(1);
	slow_w.s.admission_blocked_until = USEC_NEVER;
	inode = world_message(&slow_w, "x", 1);
	cr_assert_not_null(messages_find(&slow_w.s.messages, inode));
	cr_assert_eq(world_where(&slow_w, inode), SPOOL_INCOMING);
	slow_act_waits(ACT_DELETE, inode);
	cr_expect_null(messages_find(&slow_w.s.messages, inode));
	slow_w.scans = 0;
	slow_w.s.links->scan_at = 0;
	world_fail(CALL_RENAME, ENOSPC, 1);
	slow_open(1);
	cr_expect_eq(world_answered(&running), -ENOSPC);
	cr_expect_eq(slow_w.scans, 1);
	(void)world_clear_incoming(&slow_w, &inode);
}

/* mutation: queue-send/agents/offers.c: must_wait() knows no act. */
Test(slow, D43_A3_a_message_that_is_acted_on_is_not_prepared)
{
	const uint64_t inode = world_message(&slow_w, "d", 1);
	uint32_t running;

	cr_assert_eq(world_deliver(&slow_w, AGENT_DEFERRED), 1);
	slow_use_act_threads(1);
	world_run(&slow_w);
	slow_act_waits(ACT_HOLD, inode);
	slow_w.nprepared = 0;
	deferred_flush(&slow_w.s);
	send_wake(&slow_w.s);
	world_run(&slow_w);
	cr_expect_eq(slow_w.nprepared, 0);
	slow_open(1);
	cr_expect_eq(world_answered(&running), 0);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_HOLD);
	cr_expect_null(due_find(&slow_w.s.due, inode));
}

/* The time of a hold is over while an act of an operator fails.
 * mutation: queue-send/backlog/deferred.c: found_held() knows no act;
 * queue-send/disk/act_run.c: look_again() wants no walk. */
Test(slow, D43_A3_a_walk_passes_over_what_is_acted_on)
{
	const uint64_t inode = slow_lay(SPOOL_HOLD);
	const struct queue_id id = world_id(&slow_w, inode);
	const struct hold_note note = { .until_wall = USEC_PER_SEC };
	struct hold_note_before before;
	uint32_t running;

	slow_use_act_threads(1);
	cr_assert_eq(hold_note_write(&slow_w.s.sp, &id, &note, &before), 0);
	slow_act_waits(ACT_RELEASE, inode);
	slow_w.s.walks[WALK_HOLD].wanted = true;
	send_wake(&slow_w.s);
	world_run(&slow_w);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_HOLD);
	world_fail(CALL_RENAME, EIO, 1);
	slow_open(1);
	cr_expect_eq(world_answered(&running), -EIO);
	world_run(&slow_w);
	cr_expect_eq(
	    world_where(&slow_w, inode), SPOOL_DEFERRED, "the walk came again");
}

/* ---- notes of messages in the active queue ---- */

/* One of its two recipients has ended, as this, while its note waits. */
static uint64_t
begin_note(enum spool_act what, enum agent_outcome outcome,
    struct world_delivery *other)
{
	struct world_delivery delivery;
	uint64_t inode;

	slow_use_act_threads(1);
	inode = world_message(&slow_w, "d", 2);
	world_take_one(&slow_w, &delivery);
	world_take_one(&slow_w, other);
	slow_act_waits(what, inode);
	slow_end(&delivery, outcome);
	return inode;
}

/* mutation: queue-send/operators/acts.c: prepare_note() counts no record;
 * act_task.c: act_task_note() drops the reasons that were kept. */
Test(slow, D43_A3_a_message_does_not_leave_before_its_note_is_written)
{
	struct world_delivery other;
	const uint64_t inode = begin_note(ACT_HOLD, AGENT_DEFERRED, &other);
	const struct queue_id id = world_id(&slow_w, inode);
	struct hold_note note;
	uint32_t running;

	slow_end(&other, AGENT_DEFERRED);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_ACTIVE);
	cr_expect_eq(slow_act(ACT_HOLD, inode), -EAGAIN);
	slow_open(1);
	cr_expect_eq(world_answered(&running), 0);
	cr_expect_eq(running, 1, "nothing of it runs any more");
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_HOLD);
	cr_expect_eq(hold_note_read(&slow_w.s.sp, &id, &note), 0);
	cr_expect_neq(world_reason(&slow_w, SPOOL_DEFER, inode, 0)[0], '\0');
	cr_expect_neq(world_reason(&slow_w, SPOOL_DEFER, inode, 1)[0], '\0');
}

/* The failure is recorded behind the mark, and does not begin bounce/ anew.
 * mutation: queue-send/operators/acts.c: prepare_note() does not begin
 * bounce/. */
Test(slow, D43_D3_a_failure_comes_behind_the_mark_of_an_operator)
{
	struct world_delivery other;
	const uint64_t inode = begin_note(ACT_EXPIRE, AGENT_FAILED, &other);
	const struct queue_id id = world_id(&slow_w, inode);
	uint32_t running;

	cr_expect_eq(slow_w.s.counters.failed, 0);
	slow_open(1);
	cr_expect_eq(world_answered(&running), 0);
	cr_expect_eq(slow_w.s.counters.failed, 1);
	cr_expect_eq(
	    reason_marks(&slow_w.s.sp, &id) & REASON_GIVEN_UP, REASON_GIVEN_UP);
	cr_expect_neq(world_reason(&slow_w, SPOOL_BOUNCE, inode, 0)[0], '\0');
	slow_end(&other, AGENT_SENT);
}

/* mutation: queue-send/operators/acts.c: noted() decides whatever the error. */
Test(slow, D43_D6_without_its_note_a_message_goes_on)
{
	struct world_delivery other;
	const uint64_t inode = begin_note(ACT_HOLD, AGENT_SENT, &other);
	uint32_t running;

	world_fail(CALL_WRITE, ENOSPC, 1);
	slow_open(1);
	cr_expect_eq(world_answered(&running), -ENOSPC);
	slow_end(&other, AGENT_SENT);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_NDIRS);
}

/* The operator's note, and behind it that of the rule if it is written at all.
 * mutation: queue-send/operators/acts.c: decide() leaves the rule; finish.c:
 * fate_of() asks for no record. */
Test(slow, D43_D6_a_rule_holds_what_an_operator_could_not)
{
	struct world_delivery other;
	struct message *m;
	struct hold_note note;
	struct queue_id id;
	uint64_t inode;
	uint32_t running;
	int fails;

	for (fails = 0; fails < 2; fails++) {
		inode = begin_note(ACT_HOLD, AGENT_DEFERRED, &other);
		id = world_id(&slow_w, inode);
		slow_add_rule("*");
		m = messages_find(&slow_w.s.messages, inode);
		m->rule = SLOW_RULE;
		message_decide(m, FATE_HELD);
		if (fails)
			world_fail(CALL_WRITE, ENOSPC, 1);
		slow_open(1);
		cr_expect_eq(world_answered(&running), fails ? -ENOSPC : 0);
		slow_end(&other, AGENT_DEFERRED);
		cr_expect_eq(world_where(&slow_w, inode), SPOOL_HOLD);
		cr_assert_eq(hold_note_read(&slow_w.s.sp, &id, &note), 0);
		cr_expect_eq(note.rule, fails ? SLOW_RULE : 0);
	}
}

/* mutation: queue-send/operators/acts.c: prepare_note() clears bounce/. */
Test(slow, D43_D22_reasons_of_others_are_removed_by_the_thread_of_the_mark)
{
	const struct reason reason = { .dsn = "5.1.1",
		.relay = "none",
		.address = "old@other.test",
		.text = "put by the test" };
	struct world_delivery delivery;
	uint64_t inode;
	uint32_t running;

	slow_use_act_threads(1);
	inode = world_message(&slow_w, "d", 1);
	world_take_one(&slow_w, &delivery);
	cr_assert_eq(reason_add(&slow_w.s.sp, SPOOL_BOUNCE, inode, &reason), 0);
	slow_removes = true;
	slow_act_waits(ACT_EXPIRE, inode);
	cr_expect_neq(world_reason(&slow_w, SPOOL_BOUNCE, inode, 0)[0], '\0');
	slow_open(1);
	cr_expect_eq(world_answered(&running), 0);
	cr_expect_eq(world_reason(&slow_w, SPOOL_BOUNCE, inode, 0)[0], '\0');
	slow_end(&delivery, AGENT_SENT);
}
