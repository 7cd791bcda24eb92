/* Acts of an operator on messages, wherever queue-send has them. */
#include "tests/unit/queue-send/world.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/operators.h"
#include "queue-send/agents/agents.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

static struct world w;

static void
start(void)
{
	world_start(&w,
	    "minimal_backoff_time = 1h\nmaximal_backoff_time = "
	    "1h\nerror_interval = 1h\n");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(acts, .init = start, .fini = end, .timeout = 60);

static uint32_t running;

static int
act(enum spool_act what, uint64_t inode)
{
	return world_act(&w, what, inode, &running);
}

/* A message that was tried, and waits in deferred/. */
static uint64_t
deferred_message(void)
{
	uint64_t inode = world_message(&w, "d", 2);

	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 2);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	return inode;
}

/* Every act on a message in every directory. */
Test(acts, each_goes_where_it_may)
{
	static const struct {
		enum spool_act act;
		enum spool_dir from, to;
		int want;
	} rows[] = {
		{ ACT_HOLD, SPOOL_DEFERRED, SPOOL_HOLD, 0 },
		{ ACT_HOLD, SPOOL_INCOMING, SPOOL_HOLD, 0 },
		{ ACT_HOLD, SPOOL_HOLD, SPOOL_HOLD, -EINVAL },
		{ ACT_HOLD, SPOOL_DELETED, SPOOL_DELETED, -EINVAL },
		{ ACT_RELEASE, SPOOL_HOLD, SPOOL_DEFERRED, 0 },
		{ ACT_RELEASE, SPOOL_DEFERRED, SPOOL_DEFERRED, -EINVAL },
		{ ACT_RELEASE, SPOOL_INCOMING, SPOOL_INCOMING, -EINVAL },
		{ ACT_REQUEUE, SPOOL_HOLD, SPOOL_DEFERRED, 0 },
		{ ACT_REQUEUE, SPOOL_INCOMING, SPOOL_DEFERRED, 0 },
		{ ACT_REQUEUE, SPOOL_DEFERRED, SPOOL_DEFERRED, 0 },
		{ ACT_DELETE, SPOOL_DEFERRED, SPOOL_DELETED, 0 },
		{ ACT_DELETE, SPOOL_INCOMING, SPOOL_DELETED, 0 },
		{ ACT_DELETE, SPOOL_HOLD, SPOOL_DELETED, 0 },
		{ ACT_UNDELETE, SPOOL_DELETED, SPOOL_HOLD, 0 },
		{ ACT_UNDELETE, SPOOL_HOLD, SPOOL_HOLD, -EINVAL },
		{ ACT_RETRY, SPOOL_DEFERRED, SPOOL_DEFERRED, 0 },
		{ ACT_RETRY, SPOOL_HOLD, SPOOL_HOLD, -EINVAL },
		{ ACT_EXPIRE, SPOOL_INCOMING, SPOOL_DEFERRED, 0 },
		{ ACT_EXPIRE, SPOOL_DEFERRED, SPOOL_DEFERRED, 0 },
		{ ACT_EXPIRE, SPOOL_HOLD, SPOOL_HOLD, 0 },
		{ ACT_EXPIRE, SPOOL_DELETED, SPOOL_DELETED, -EINVAL },
		{ ACT_EXPIRE_HELD, SPOOL_HOLD, SPOOL_DEFERRED, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t inode = world_file(&w, "d", 2, 0);

		if (rows[i].from != SPOOL_INCOMING)
			cr_assert_eq(spool_move(&w.s.sp, SPOOL_INCOMING,
					 rows[i].from, inode),
			    0);
		cr_expect_eq(
		    act(rows[i].act, inode), rows[i].want, "row %zu", i);
		cr_expect_eq(running, 0);
		cr_expect_eq(world_where(&w, inode), rows[i].to, "row %zu", i);
		cr_expect_eq(due_find(&w.s.due, inode) != NULL,
		    rows[i].want == 0 && rows[i].to == SPOOL_DEFERRED,
		    "row %zu", i);
	}
}

/* mutation: queue-send/operators/acts.c: file_moved() takes act_target() for
 * the place of the file. */
Test(acts, D44_a_damaged_file_that_is_undeleted_is_not_counted_as_held)
{
	uint64_t inode = deferred_message();
	struct queue_id id = world_id(&w, inode);
	struct stat st;
	char leaf[SPOOL_PATH_MAX];
	int fd;

	cr_assert_eq(act(ACT_DELETE, inode), 0);
	spool_leaf(&w.s.sp, SPOOL_DELETED, inode, leaf, sizeof(leaf));
	fd = openat(w.s.sp.dir[SPOOL_DELETED], leaf, O_RDWR);
	cr_assert(fd >= 0);
	cr_assert_eq(fchmod(fd, 0666), 0);
	cr_assert_eq(fstat(fd, &st), 0);
	close(fd);
	w.s.walks[WALK_HOLD].count = 0;
	w.s.walks[WALK_CORRUPT].wanted = false;
	cr_expect_eq(world_do(&w, ACT_UNDELETE, &id, 0, &running), 0);
	cr_expect_eq(world_where(&w, inode), SPOOL_CORRUPT);
	cr_expect_eq(w.s.walks[WALK_HOLD].count, 0);
	cr_expect(w.s.walks[WALK_CORRUPT].wanted);
}

Test(acts, a_held_message_is_forgotten_and_released_at_once)
{
	uint64_t inode = deferred_message();

	cr_expect_eq(act(ACT_HOLD, inode), 0);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
	cr_expect_eq(w.s.due.count, 0);
	cr_expect_str_neq(world_reason(&w, SPOOL_DEFER, inode, 0), "",
	    "it still says why it waited");
	cr_expect_eq(act(ACT_RELEASE, inode), 0);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	world_run(&w);
	cr_expect_eq(w.prepared[0], inode, "due at once");
}

Test(acts, another_message_of_the_inode_is_not_touched)
{
	uint64_t inode = deferred_message();
	struct queue_id id = world_id(&w, inode);

	id.nonce ^= 1;
	cr_expect_eq(world_do(&w, ACT_DELETE, &id, 0, &running), -ENOENT);
	id = world_id(&w, world_message(&w, "d", 1));
	id.arrival_wall++;
	cr_expect_eq(world_do(&w, ACT_DELETE, &id, 0, &running), -ENOENT);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_eq(world_count(&w, SPOOL_DELETED), 0);
}

/* mutation: acts_do() does not ask whether the message is asked for. */
Test(acts, one_that_is_asked_for_is_left_until_the_answer)
{
	uint64_t inode = deferred_message();

	cr_assert_eq(act(ACT_RETRY, inode), 0);
	world_run(&w);
	cr_assert(due_find(&w.s.due, inode)->asked);
	cr_expect_eq(act(ACT_HOLD, inode), -EAGAIN);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
}

Test(acts, offered_ones_are_forgotten)
{
	uint64_t incoming, deferred = deferred_message();

	cr_assert_eq(act(ACT_RETRY, deferred), 0);
	world_run(&w);
	w.s.admission_blocked_until = USEC_NEVER; /* offers stay offers */
	world_offer(&w, SPOOL_DEFERRED, deferred);
	incoming = world_message(&w, "d", 1);
	cr_assert_eq(w.s.messages.count[STATE_OFFERED_DEFERRED], 1);
	cr_assert_eq(w.s.messages.count[STATE_OFFERED_INCOMING], 1);
	cr_expect_eq(act(ACT_HOLD, incoming), 0);
	cr_expect_eq(act(ACT_DELETE, deferred), 0);
	cr_expect_eq(w.s.messages.count[STATE_OFFERED_DEFERRED], 0);
	cr_expect_eq(w.s.messages.count[STATE_OFFERED_INCOMING], 0);
	cr_expect_eq(world_where(&w, incoming), SPOOL_HOLD);
	cr_expect_eq(world_where(&w, deferred), SPOOL_DELETED);
	cr_expect_eq(w.s.due.asked, 0);
}

/* ---- in the active queue ---- */

/* mutation: act_on_active() does not settle the message. */
Test(acts, what_only_waits_moves_at_once)
{
	uint64_t inode = world_message(&w, "x@smtp.test", 1); /* no agent */

	cr_assert_eq(world_where(&w, inode), SPOOL_ACTIVE);
	cr_expect_eq(act(ACT_HOLD, inode), 0);
	cr_expect_eq(running, 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
	cr_expect_eq(w.s.active, 0);
}

Test(acts, what_waits_is_not_started_and_what_runs_is_waited_for)
{
	static const struct {
		enum spool_act act;
		enum spool_dir to;
	} rows[] = {
		{ ACT_HOLD, SPOOL_HOLD },
		{ ACT_DELETE, SPOOL_DELETED },
		{ ACT_REQUEUE, SPOOL_DEFERRED },
	};
	struct world_delivery first, second;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t inode = world_message(&w, "r%u@same.test", 1);
		uint64_t more = world_message(&w, "d", 3);

		cr_assert(world_take(&w, &first));
		world_result(&w, &first, 0, AGENT_SENT);
		world_done(&w, &first);
		world_run(&w);
		cr_assert_eq(world_where(&w, inode), SPOOL_NDIRS);
		cr_assert(world_take(&w, &first));
		cr_assert(world_take(&w, &second));
		world_result(&w, &second, 0, AGENT_SENT);
		world_done(&w, &second);
		world_run(&w);
		cr_expect_eq(act(rows[i].act, more), 0);
		cr_expect_geq(running, 2, "one runs: %u", running);
		cr_expect_eq(world_where(&w, more), SPOOL_ACTIVE);
		world_result(&w, &first, 0, AGENT_SENT);
		world_done(&w, &first);
		world_run(&w);
		while (world_take(&w, &second)) {
			world_result(&w, &second, 0, AGENT_DEFERRED);
			world_done(&w, &second);
			world_run(&w);
		}
		cr_expect_eq(world_where(&w, more), rows[i].to, "row %zu", i);
		cr_expect_eq(w.s.active, 0);
		cr_expect_eq(sched_figures(w.s.sched).messages, 0);
		cr_expect_eq(strspn(world_marks(&w, rows[i].to, more), "D"), 2);
	}
}

/* mutation: came_too_late() is always false. */
Test(acts, a_message_that_all_have_is_removed_and_not_held)
{
	struct world_delivery delivery;
	uint64_t inode = world_message(&w, "d", 1);

	cr_assert(world_take(&w, &delivery));
	cr_expect_eq(act(ACT_HOLD, inode), 0);
	cr_expect_eq(running, 2);
	cr_expect_not(world_take(&w, &(struct world_delivery){ 0 }));
	cr_expect_eq(w.cancelled.job, delivery.number);
	cr_expect_eq(w.cancelled.stage, AGENT_NOT_ACCEPTED);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS, "delivered");
	cr_expect_eq(world_count(&w, SPOOL_HOLD), 0);
}

Test(acts, a_later_act_replaces_an_earlier_one)
{
	struct world_delivery delivery;
	uint64_t inode = world_message(&w, "d", 1);

	cr_assert(world_take(&w, &delivery));
	cr_expect_eq(act(ACT_HOLD, inode), 0);
	cr_expect_eq(act(ACT_RELEASE, inode), -EINVAL);
	cr_expect_eq(act(ACT_DELETE, inode), 0);
	world_result(&w, &delivery, 0, AGENT_DEFERRED);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_DELETED);
}

/* Marks are synced before the move, as of any message. mutation: FATE_HELD
 * needs no marks. */
Test(acts, D12_marks_are_on_disk_before_an_active_message_is_held)
{
	struct world_delivery delivery;
	uint64_t inode = world_message(&w, "d", 2);
	const char *trace, *mark, *sync;

	cr_assert(world_take(&w, &delivery));
	(void)world_trace();
	world_result(&w, &delivery, 0, AGENT_SENT);
	cr_expect_eq(act(ACT_HOLD, inode), 0);
	world_done(&w, &delivery);
	world_run(&w);
	while (world_take(&w, &delivery)) {
		world_result(&w, &delivery, 0, AGENT_DEFERRED);
		world_done(&w, &delivery);
		world_run(&w);
	}
	trace = world_trace();
	mark = strchr(trace, 'p');
	cr_assert_not_null(mark, "%s", trace);
	sync = strchr(mark, 'f');
	cr_assert_not_null(sync, "%s", trace);
	cr_expect_not_null(strchr(sync, 'r'), "%s", trace);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
}

/* ---- failures and deaths ---- */

Test(acts, D6_nothing_is_done_where_nothing_can_be_written)
{
	uint64_t inode = deferred_message();

	world_fail(CALL_RENAME, EROFS, 0);
	cr_expect_eq(act(ACT_HOLD, inode), -EROFS);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_not_null(due_find(&w.s.due, inode));
	world_fail(CALL_RENAME, 0, 1);
	w.s.health.read_only = true;
	cr_expect_eq(act(ACT_HOLD, inode), -EROFS);
	w.s.health.read_only = false;
	w.s.stopping = true;
	cr_expect_eq(act(ACT_HOLD, inode), -EBUSY);
	w.s.stopping = false;
}

/* A death at each call of an act, and the next queue-send. */
Test(acts, D24_a_death_leaves_the_message_before_or_after)
{
	static const struct {
		enum spool_act act;
		enum spool_dir from;
	} rows[] = {
		{ ACT_HOLD, SPOOL_DEFERRED },
		{ ACT_DELETE, SPOOL_DEFERRED },
		{ ACT_RELEASE, SPOOL_HOLD },
		{ ACT_UNDELETE, SPOOL_DELETED },
		{ ACT_EXPIRE, SPOOL_DEFERRED },
		{ ACT_EXPIRE_HELD, SPOOL_HOLD },
	};
	unsigned nth;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		for (nth = 1;; nth++) {
			uint64_t inode = deferred_message();
			bool cut;

			if (rows[i].from != SPOOL_DEFERRED)
				cr_assert_eq(
				    act(rows[i].from == SPOOL_HOLD ? ACT_HOLD
								   : ACT_DELETE,
					inode),
				    0);
			world_cut(nth);
			(void)act(rows[i].act, inode);
			cut = world_was_cut();
			world_cut(0);
			world_again(&w);
			cr_expect(world_where(&w, inode) == rows[i].from ||
				world_where(&w, inode) ==
				    act_target(rows[i].act, rows[i].from),
			    "%s, call %u", act_name(rows[i].act), nth);
			if (!cut)
				break;
			cr_assert_lt(nth, 20u);
		}
}

/* ---- deleted/ ---- */

static void
walk(void)
{
	deferred_walk(&w.s);
	send_wake(&w.s);
	world_run(&w);
}

Test(acts, deleted_mail_is_kept_for_its_day)
{
	uint64_t inode = deferred_message();

	cr_assert_eq(act(ACT_DELETE, inode), 0);
	walk();
	cr_expect_eq(world_where(&w, inode), SPOOL_DELETED);
	cr_assert_eq(spool_set_due(&w.s.sp, inode, w.s.now_wall - 1), 0);
	walk();
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_expect_eq(world_count(&w, SPOOL_DEFER), 0);
}

Test(acts, a_lost_end_is_another_day)
{
	uint64_t inode = deferred_message();

	cr_assert_eq(act(ACT_DELETE, inode), 0);
	cr_assert_eq(spool_remove(&w.s.sp, SPOOL_DEFER, inode), 0);
	walk();
	walk();
	cr_expect_eq(world_where(&w, inode), SPOOL_DELETED);
	cr_expect_eq(world_count(&w, SPOOL_DEFER), 1);
}

/* ---- at a time of its own ---- */

static int
act_at(enum spool_act what, uint64_t inode, usec_t after)
{
	const struct queue_id id = world_id(&w, inode);
	int r;

	send_read_clocks(&w.s);
	r = world_do(&w, what, &id, w.s.now_wall + after, &running);
	world_run(&w);
	return r;
}

static usec_t
left(uint64_t inode)
{
	const struct due *d = due_find(&w.s.due, inode);

	cr_assert_not_null(d);
	return d->at_mono - w.s.now;
}

/* mutation: is_due_before() is always false. */
Test(acts, a_pace_is_on_disk_and_never_later_than_before)
{
	const usec_t minute = 60 * USEC_PER_SEC;
	uint64_t inode = deferred_message(); /* due in an hour */

	cr_expect_eq(act_at(ACT_RETRY, inode, minute), 0);
	cr_expect(left(inode) > 0 && left(inode) <= minute);
	cr_expect_eq(act_at(ACT_RETRY, inode, 10 * minute), 0);
	cr_expect_leq(left(inode), minute, "an earlier time stays");
	cr_assert_eq(act(ACT_HOLD, inode), 0);
	cr_expect_eq(act_at(ACT_RELEASE, inode, 5 * minute), 0);
	cr_expect(left(inode) > minute && left(inode) <= 5 * minute);
	world_again(&w);
	walk();
	cr_expect(left(inode) > minute && left(inode) <= 5 * minute,
	    "after a restart");
	cr_assert_eq(act(ACT_HOLD, inode), 0);
	cr_expect_eq(act_at(ACT_RELEASE, inode, 100 * minute), -ERANGE);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
}
