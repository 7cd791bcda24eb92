/* Destinations that cannot be reached: what waits for them is deferred with
 * the reason, and nothing else waits for that. */
#include "queue-send/schedule/own.h"
#include "tests/unit/queue-send/world.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/operators.h"
#include "queue-send/schedule/schedule.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SUSPENDED "4.4.1 delivery temporarily suspended: no connection"

static struct world w;

/* One failure is a cohort. */
static void
start(void)
{
	world_start(&w,
	    "initial_destination_concurrency = 1\n"
	    "default_delivery_slot_cost = 0\n");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(dead, .init = start, .fini = end, .timeout = 60);

static void
take(struct world_delivery *delivery)
{
	cr_assert(world_take(&w, delivery));
	close(delivery->fd);
}

static void
fail_site(const struct world_delivery *delivery)
{
	world_site_failed(&w, delivery);
	world_run(&w);
}

/* one.test is dead, by a message of its own. */
static void
kill_one(void)
{
	struct world_delivery delivery;

	world_message(&w, "k@one.test", 1);
	take(&delivery);
	fail_site(&delivery);
	cr_assert_eq(w.s.schedule->log.count, 1);
}

static void
is_suspended(uint64_t inode, const char *marks)
{
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_str_eq(world_marks(&w, SPOOL_DEFERRED, inode), marks);
	cr_expect_str_eq(world_reason(&w, SPOOL_DEFER, inode, 0), SUSPENDED,
	    "%s", world_reason(&w, SPOOL_DEFER, inode, 0));
}

Test(dead, what_waits_and_what_comes_is_deferred_without_an_attempt)
{
	uint64_t first = world_message(&w, "a@one.test", 3), waits, comes,
		 other;
	struct world_delivery delivery;

	take(&delivery);
	waits = world_message(&w, "b@one.test", 60);
	cr_assert_not(world_take(&w, &delivery), "the window is 1");
	fail_site(&delivery);
	cr_expect_eq(world_where(&w, first), SPOOL_DEFERRED);
	cr_expect_str_eq(world_reason(&w, SPOOL_DEFER, first, 2),
	    "4.4.1 no connection", "its own reason");
	is_suspended(waits,
	    "............................................"
	    "................");
	cr_expect_str_eq(world_reason(&w, SPOOL_DEFER, waits, 59), SUSPENDED);
	comes = world_message(&w, "c@ONE.test", 1);
	is_suspended(comes, ".");
	cr_expect_eq(w.s.counters.deferred, 64);
	other = world_message(&w, "d@two.test", 1);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1, "others go on");
	cr_expect_eq(world_where(&w, other), SPOOL_NDIRS);
	cr_expect_eq(w.s.active, 0);
	cr_expect_eq(sched_figures(w.s.sched).messages, 0);
	/* The usual backoff: it is not tried again and again. */
	cr_expect_gt(due_next(&w.s.due), w.s.now + 260 * USEC_PER_SEC);
	cr_expect_eq(w.s.due.count, 3);
}

/* N44: the window is 1, so one failure would be a cohort. */
Test(dead, N44_one_message_suspends_no_destination)
{
	uint64_t first = world_message(&w, "a@one.test", 60), other;
	struct world_delivery delivery;

	take(&delivery);
	world_site_doubted(&w, &delivery);
	world_run(&w);
	cr_expect_eq(w.s.schedule->log.count, 0);
	take(&delivery); /* the other ten recipients */
	world_site_doubted(&w, &delivery);
	world_run(&w);
	cr_expect_eq(w.s.schedule->log.count, 0, "the same message");
	cr_expect_eq(world_where(&w, first), SPOOL_DEFERRED);
	cr_expect_str_eq(
	    world_reason(&w, SPOOL_DEFER, first, 59), "4.4.2 no connection");
	world_message(&w, "b@one.test", 1);
	take(&delivery);
	world_site_doubted(&w, &delivery);
	world_run(&w);
	cr_expect_eq(w.s.schedule->log.count, 1, "a second one");
	other = world_message(&w, "c@one.test", 1);
	cr_expect_str_eq(world_reason(&w, SPOOL_DEFER, other, 0),
	    "4.4.2 delivery temporarily suspended: no connection");
}

Test(dead, a_backlog_leaves_the_active_queue_in_bounded_turns)
{
	enum {
		N = 250
	};
	struct world_delivery delivery, other;
	int i;

	world_message(&w, "a@one.test", 1);
	take(&delivery);
	for (i = 0; i < N; i++)
		world_message(&w, "b@one.test", 3);
	world_message(&w, "d@two.test", 1);
	cr_assert_eq(w.s.active, N + 2);
	take(&other);
	cr_expect_str_eq(other.nexthop, "two.test");
	world_site_failed(&w, &delivery);
	while (w.s.counters.deferred == 0)
		event_base_loop(w.s.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	cr_expect_leq(w.s.counters.deferred, 1 + 202, "a part in a turn");
	world_run(&w);
	cr_expect_eq(w.s.counters.deferred, 1 + 3 * N);
	cr_expect_eq(w.s.active, 1, "two.test has what it had");
}

Test(dead, a_message_for_others_too_gets_both)
{
	struct world_delivery delivery;
	uint64_t inode;

	kill_one();
	inode = world_file(&w, "x", 2, 0); /* x0.test, x1.test */
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	take(&delivery);
	world_result(&w, &delivery, 0, AGENT_DEFERRED);
	fail_site(&delivery);
	take(&delivery);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_str_eq(world_marks(&w, SPOOL_DEFERRED, inode), ".D");
	inode = world_file(&w, "x", 2, 0);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	is_suspended(inode, ".D");
}

/* Offered again, as often as it is in deferred/. */
static void
offer_again(uint64_t inode)
{
	world_offer(&w, SPOOL_DEFERRED, inode);
	world_run(&w);
}

/* mutation: queue-send/message/results.c: is_over() looks at no hold. */
Test(dead, T1_what_was_on_hold_is_tried_before_it_expires)
{
	uint64_t inode = world_file(&w, "b@one.test", 1, 30 * 86400);
	struct world_delivery delivery;
	struct queue_file file;
	struct due *d;
	uint32_t running;
	int i, fd;

	kill_one();
	w.s.expire_after = 0; /* it runs for long */
	cr_assert_eq(spool_move(&w.s.sp, SPOOL_INCOMING, SPOOL_HOLD, inode), 0);
	fd = spool_open_file(&w.s.sp, SPOOL_HOLD, inode, O_RDONLY);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	close(fd);
	cr_assert_eq(world_do(&w, ACT_RELEASE,
			 &(struct queue_id){
			     file.arrival_wall, file.nonce, file.queue, inode },
			 0, &running),
	    0);
	for (i = 0; i < 3; i++) {
		d = due_find(&w.s.due, inode);
		cr_assert_not_null(d);
		cr_expect_eq(d->owed, 1);
		offer_again(inode);
		cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED, "%d", i);
	}
	control_ops.flush(&(struct daemon){ .state = &w.s });
	world_run(&w);
	offer_again(inode);
	take(&delivery);
	world_result(&w, &delivery, 0, AGENT_DEFERRED);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_expect_eq(w.s.counters.expired, 1);
}

Test(dead, what_is_too_old_expires)
{
	uint64_t inode;

	kill_one();
	w.s.expire_after = 0; /* it runs for long */
	inode = world_file(&w, "b@one.test", 1, 6 * 86400);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_expect_not_null(strstr(world_report(&w),
	    "delivery time expired: 4.4.1 delivery temporarily\n"));
	cr_expect_eq(w.s.counters.expired, 1);
}

Test(dead, a_flush_opens_it)
{
	struct world_delivery delivery;
	uint64_t inode;

	kill_one();
	control_ops.flush(&(struct daemon){ .state = &w.s });
	world_run(&w);
	cr_expect_eq(w.s.schedule->log.count, 0);
	inode = world_message(&w, "b@one.test", 1);
	take(&delivery);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
}

Test(dead, its_time_ends)
{
	struct world_delivery delivery;

	kill_one();
	world_message(&w, "b@one.test", 1);
	cr_assert_not(world_take(&w, &delivery));
	w.s.now += 400 * USEC_PER_SEC;
	cr_expect_eq(schedule_log_work(&w.s), USEC_NEVER);
	cr_expect_eq(w.s.schedule->log.count, 0, "and it was told");
}

/* ---- what kills nothing ---- */

Test(dead, an_agent_in_trouble_or_dead_says_nothing_of_the_site)
{
	struct world_delivery delivery;
	int i;

	for (i = 0; i < 3; i++) {
		world_message(&w, "a@one.test", 1);
		take(&delivery);
		world_agent_failed(&w, &delivery);
		world_run(&w);
	}
	world_message(&w, "a@one.test", 1);
	take(&delivery);
	close(w.agent);
	w.agent = -1;
	world_run(&w);
	cr_expect_eq(w.s.schedule->log.count, 0);
	world_link_agent(&w);
	world_message(&w, "a@one.test", 1);
	cr_expect_eq(world_deliver(&w, AGENT_DEFERRED), 1);
}

Test(dead, refused_mail_is_no_failure_of_the_site)
{
	int i;

	for (i = 0; i < 3; i++) {
		world_message(&w, "a@one.test", 1);
		cr_expect_eq(
		    world_deliver(&w, i % 2 ? AGENT_DEFERRED : AGENT_FAILED),
		    1);
	}
	cr_expect_eq(w.s.schedule->log.count, 0);
}

/* ---- what goes wrong meanwhile ---- */

Test(dead, a_file_that_is_gone_or_cannot_be_opened)
{
	static const struct {
		const char *name;
		int error;
		enum spool_dir dir;
	} cases[] = {
		{ "removed by hand", 0, SPOOL_NDIRS },
		{ "EIO", EIO, SPOOL_DEFERRED },
	};
	struct world_delivery delivery;
	uint64_t inode;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		control_ops.flush(&(struct daemon){ .state = &w.s });
		world_message(&w, "a@one.test", 1);
		take(&delivery);
		inode = world_message(&w, "b@one.test", 2);
		if (cases[i].error == 0)
			cr_assert_eq(
			    spool_remove(&w.s.sp, SPOOL_ACTIVE, inode), 0);
		else
			world_fail(CALL_OPEN, cases[i].error, 1);
		fail_site(&delivery);
		cr_expect_eq(
		    world_where(&w, inode), cases[i].dir, "%s", cases[i].name);
		cr_expect_eq(w.s.active, 0, "%s", cases[i].name);
	}
}

/* A message a second gives up, and nobody takes the disk for broken. */
Test(dead, descriptors_are_short)
{
	struct world_delivery delivery;
	uint32_t i;

	world_message(&w, "a@one.test", 1);
	take(&delivery);
	for (i = 0; i < 5; i++)
		world_message(&w, "b@one.test", 2);
	messages_close_resting(&w.s.messages);
	world_fail(CALL_OPEN, EMFILE, 4);
	fail_site(&delivery);
	for (i = 4; i > 1; i--) {
		cr_expect_eq(w.s.active, i);
		cr_expect_gt(w.s.dispatch_at, w.s.now);
		w.s.dispatch_at = 0;
		send_wake(&w.s);
		world_run(&w);
	}
	cr_expect_not(w.s.health.read_only);
	w.s.dispatch_at = 0;
	send_wake(&w.s);
	world_run(&w);
	cr_expect_eq(w.s.active, 0);
	cr_expect_eq(world_count(&w, SPOOL_DEFERRED), 6);
	cr_expect_eq(w.s.counters.deferred, 3, "one of them was opened");
}

Test(dead, D9_a_queue_that_cannot_be_written_waits)
{
	struct world_delivery delivery;
	uint64_t inode;

	world_message(&w, "a@one.test", 1);
	take(&delivery);
	inode = world_message(&w, "b@one.test", 2);
	world_fail(CALL_OPEN, EROFS, 0);
	world_message(&w, "d@two.test", 1); /* cannot be opened for marks */
	cr_assert(w.s.health.read_only);
	fail_site(&delivery);
	cr_expect_eq(world_where(&w, inode), SPOOL_ACTIVE);
	world_fail(CALL_NONE, 0, 0);
	w.s.health.probe_at = w.s.finish_at = 0;
	send_wake(&w.s);
	world_run(&w);
	cr_assert_not(w.s.health.read_only);
	is_suspended(inode, "..");
}

/* Marks of deliveries would wait behind the reasons of a long backlog, and no
 * delivery would begin.
 * mutation: queue-send/message/results.c: REASONS_MAX is RECORDS_MAX. */
Test(dead, few_reasons_wait_at_a_time_and_others_are_delivered)
{
	uint64_t waits;

	kill_one();
	w.s.reasons = 64;
	waits = world_message(&w, "a@one.test", 1);
	world_message(&w, "b@two.test", 1);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_eq(world_where(&w, waits), SPOOL_ACTIVE);
	w.s.reasons = 0;
	send_wake(&w.s);
	world_run(&w);
	is_suspended(waits, ".");
}
