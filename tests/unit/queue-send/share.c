/* A destination holds its share of the active queue; what comes for it beyond
 * that waits in deferred/, in order, and nothing looks at it. */
#include "queue-send/agents/own.h"
#include "tests/unit/queue-send/world.h"
#include "queue-send/backlog/backlog.h"

#include <criterion/criterion.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct world w;

/* 20 messages, of which one destination has 4. */
static void
start(void)
{
	world_start(&w,
	    "qmgr_message_active_limit = 20\n"
	    "initial_destination_concurrency = 1\n"
	    "default_delivery_slot_cost = 0\n");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(share, .init = start, .fini = end, .timeout = 60);

static uint32_t
answer(uint32_t from)
{
	for (; from < w.nprepared; from++)
		world_offer(&w, SPOOL_DEFERRED, w.prepared[from % 256]);
	world_run(&w);
	return from;
}

static uint32_t
nparked(const char *name)
{
	const struct backlog *b = backlog_find(
	    &w.s, (uint32_t)conf_transport_find(&w.conf, "discard"), name);

	return b == NULL ? 0 : b->due.nwaiting;
}

/* mutation: backlog_is_beyond() is always false. */
Test(share, N19_beyond_it_mail_is_parked_and_nothing_is_done_with_it)
{
	uint64_t inode[12], other;
	struct world_delivery delivery;
	uint32_t i, turns = w.nprepared;

	for (i = 0; i < 12; i++)
		inode[i] = world_message(&w, "a@hangs.test", 1);
	cr_expect_eq(w.s.active, 4);
	cr_expect_eq(nparked("hangs.test"), 8);
	cr_expect_eq(world_count(&w, SPOOL_INCOMING), 0);
	for (i = 0; i < 12; i++)
		cr_expect_eq(world_where(&w, inode[i]),
		    i < 4 ? SPOOL_ACTIVE : SPOOL_DEFERRED, "%u", i);
	cr_expect_eq(w.s.counters.accepted, 12);
	cr_expect_eq(w.s.due.untried, 8);
	world_fail(CALL_RENAME, EIO, 0); /* none is made */
	for (i = 0; i < 5; i++)
		world_run(&w);
	cr_expect_eq(w.nprepared, turns, "nothing is asked for");
	cr_expect_eq(w.s.health.errors, 0);
	world_fail(CALL_NONE, 0, 0);
	other = world_message(&w, "b@other.test", 1);
	cr_assert(world_take(&w, &delivery)); /* of hangs.test */
	close(delivery.fd);
	cr_assert(world_take(&w, &delivery));
	close(delivery.fd);
	cr_expect_str_eq(delivery.nexthop, "other.test");
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(world_where(&w, other), SPOOL_NDIRS);
}

/* mutation: due_ask_backlog() takes the last of the line. */
Test(share, what_is_parked_comes_in_order_as_places_become_free)
{
	uint64_t inode[30];
	uint32_t i, seen, answered = 0;

	for (i = 0; i < 30; i++) {
		inode[i] = world_file(&w, "a@slow.test", 1, 1000 - i);
		world_offer(&w, SPOOL_INCOMING, inode[i]);
		world_run(&w);
	}
	for (seen = 0; seen < 30; answered = answer(answered)) {
		struct world_delivery delivery;

		cr_assert(world_take(&w, &delivery), "%u", seen);
		close(delivery.fd);
		cr_expect_leq(w.s.active, 4);
		cr_expect_eq(world_where(&w, inode[seen]), SPOOL_ACTIVE);
		world_result(&w, &delivery, 0, AGENT_SENT);
		world_done(&w, &delivery);
		world_run(&w);
		cr_expect_eq(world_where(&w, inode[seen]), SPOOL_NDIRS,
		    "the oldest, %u", seen);
		seen++;
	}
	cr_expect_eq(w.nprepared, 26, "each was asked for once");
	cr_expect_eq(w.s.due.count, 0);
}

/* New mail goes behind what is parked, though there is a place. */
Test(share, nobody_comes_before_what_is_parked)
{
	struct world_delivery delivery;
	uint64_t late;
	uint32_t i;

	for (i = 0; i < 6; i++)
		world_message(&w, "a@slow.test", 1);
	cr_assert(world_take(&w, &delivery));
	close(delivery.fd);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(w.s.active, 3);
	cr_expect_eq(w.nprepared, 1);
	late = world_message(&w, "late@slow.test", 1);
	cr_expect_eq(world_where(&w, late), SPOOL_DEFERRED);
	cr_expect_eq(nparked("slow.test"), 2);
}

/* mutation: backlog_limit() is always the share of the whole. */
Test(share, several_that_hang_never_have_all_of_it)
{
	char to[32];
	uint32_t i, d;

	world_end(&w);
	world_start(&w, "qmgr_message_active_limit = 100\n");
	for (d = 0; d < 12; d++)
		for (i = 0; i < 22; i++) {
			snprintf(to, sizeof(to), "a@hangs%u.test", d);
			world_message(&w, to, 1);
		}
	cr_expect_lt(w.s.active, 95, "%u", w.s.active);
	cr_expect_eq(w.s.active + w.s.due.parked, 12 * 22);
	world_message(&w, "b@other.test", 1);
	cr_expect_eq(nparked("other.test"), 0, "there is a place");
}

/* ---- several destinations ---- */

/* mutation: claims_settle() never lets a message leave. */
Test(share, the_others_of_a_message_are_delivered_and_the_rest_is_parked)
{
	struct world_delivery delivery;
	uint64_t both;
	uint32_t i;

	for (i = 0; i < 6; i++)
		world_message(&w, "a@x0.test", 1);
	cr_assert_eq(w.s.active, 4);
	both = world_message(&w, "x", 3); /* x0.test, x1.test, x2.test */
	cr_assert_eq(w.s.active, 5);
	cr_assert(world_take(&w, &delivery)); /* the window of x0.test */
	close(delivery.fd);
	for (i = 0; i < 2; i++) {
		cr_assert(world_take(&w, &delivery));
		close(delivery.fd);
		world_result(&w, &delivery, 0, AGENT_SENT);
		world_done(&w, &delivery);
		world_run(&w);
	}
	cr_expect_str_eq(world_marks(&w, SPOOL_DEFERRED, both), ".DD");
	cr_expect_eq(w.s.active, 4);
	cr_expect_eq(nparked("x0.test"), 3);
	cr_expect_eq(w.s.counters.deferred, 0, "that was no attempt");
	cr_expect_eq(w.s.due.untried, 2, "others of x0.test");
}

/* mutation: deferred_add() counts a message of incoming/ as untried. */
Test(share, a_message_that_was_tried_counts_as_deferred)
{
	uint32_t i, answered;

	for (i = 0; i < 6; i++)
		world_message(&w, "a@slow.test", 1);
	cr_expect_eq(w.s.due.untried, 2);
	cr_expect_eq(world_deliver(&w, AGENT_DEFERRED), 4);
	cr_expect_eq(w.s.due.count, 6);
	cr_expect_eq(w.s.due.untried, 2);
	answered = answer(0);
	cr_assert_eq(answered, 2);
	cr_expect_eq(w.s.due.untried, 0, "in active/");
	cr_expect_eq(world_deliver(&w, AGENT_DEFERRED), 2);
	cr_expect_eq(w.s.due.count, 6);
	cr_expect_eq(w.s.due.untried, 0);
}

/* mutation: share_admit() forgets whose turn it was. */
Test(share, one_without_names_that_was_parked_has_its_turn)
{
	struct world_delivery delivery;
	uint32_t i, answered = 0, done = 0;

	w.unnamed = true;
	for (i = 0; i < 12; i++)
		world_message(&w, "a@x0.test", 1);
	cr_expect_eq(w.s.active, 4);
	cr_expect_eq(nparked("x0.test"), 8);
	for (; world_take(&w, &delivery); done++) {
		close(delivery.fd);
		world_result(&w, &delivery, 0, AGENT_SENT);
		world_done(&w, &delivery);
		world_run(&w);
		answered = answer(answered);
	}
	cr_expect_eq(done, 12);
	cr_expect_eq(w.nprepared, 8, "each once");
}

/* ---- dead destinations ---- */

static void
kill_it(struct world_delivery *delivery)
{
	cr_assert(world_take(&w, delivery));
	close(delivery->fd);
	world_site_failed(&w, delivery);
	world_run(&w);
}

/* mutation: share_ask() does not ask whether it is dead. */
Test(share, N15_of_a_dead_one_the_parked_stay_parked)
{
	struct world_delivery delivery;
	uint32_t i, before;

	for (i = 0; i < 60; i++)
		world_message(&w, "a@dies.test", 1);
	kill_it(&delivery);
	cr_expect_eq(w.s.active, 0, "they are deferred");
	cr_expect_eq(w.s.counters.deferred, 4);
	cr_expect_leq(w.nprepared, 1, "one at a time: %u", w.nprepared);
	cr_expect_geq(nparked("dies.test"), 52);
	before = w.nprepared;
	world_message(&w, "b@other.test", 1);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_leq(w.nprepared, before + 1, "%u", w.nprepared - before);
	/* A flush opens it, and it has its share again. */
	control_ops.flush(&(struct daemon){ .state = &w.s });
	world_run(&w);
	(void)answer(0);
	cr_expect_eq(w.s.active, 4);
	cr_expect(world_take(&w, &delivery));
	close(delivery.fd);
}

/* All are due at once: most are put in line in memory, some asked for. */
Test(share, what_is_due_together_is_not_asked_for_together)
{
	struct world_delivery delivery;
	uint32_t i, answered = 0;

	for (i = 0; i < 60; i++)
		world_message(&w, "a@dies.test", 1);
	kill_it(&delivery);
	/* All of them go by, deferred without an attempt. */
	while (w.s.counters.deferred < 60) {
		w.s.now += USEC_PER_SEC;
		share_flush(&w.s);
		send_wake(&w.s);
		world_run(&w);
		answered = answer(answered);
	}
	cr_assert_eq(w.s.due.parked, 0);
	i = w.nprepared;
	control_ops.flush(&(struct daemon){ .state = &w.s });
	world_run(&w);
	cr_expect_leq(w.nprepared, i + 4, "%u %u", w.nprepared, i);
	cr_expect_geq(w.s.due.parked, 50);
}

/* ---- what else may happen to it ---- */

/* mutation: found() of the walk passes over files without a due time. */
Test(share, a_restart_finds_all_of_it)
{
	struct world_delivery delivery;
	uint32_t i, answered = 0, done = 0;

	for (i = 0; i < 15; i++)
		world_message(&w, "a@slow.test", 1);
	world_again(&w);
	cr_expect_eq(world_count(&w, SPOOL_DEFERRED), 11);
	cr_expect_eq(w.s.due.untried, 11);
	cr_expect_eq(world_count(&w, SPOOL_INCOMING), 4);
	for (i = 0; i < 40; i++) {
		answered = answer(answered);
		if (!world_take(&w, &delivery))
			continue;
		close(delivery.fd);
		world_result(&w, &delivery, 0, AGENT_SENT);
		world_done(&w, &delivery);
		world_run(&w);
		done++;
	}
	cr_expect_eq(done, 11);
}

/* mutation: found() takes all that is overdue for due now. */
Test(share, the_longest_parked_comes_first_after_a_restart)
{
	uint64_t inode[20];
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	char leaf[SPOOL_PATH_MAX];
	uint32_t i;

	for (i = 0; i < 20; i++) {
		inode[i] = world_file(&w, "a@slow.test", 1, 0);
		spool_leaf(
		    &w.s.sp, SPOOL_INCOMING, inode[i], leaf, sizeof(leaf));
		times[1].tv_sec = 1000000 + (i * 7) % 20;
		cr_assert_eq(
		    utimensat(w.s.sp.dir[SPOOL_INCOMING], leaf, times, 0), 0);
		cr_assert_eq(spool_move(&w.s.sp, SPOOL_INCOMING, SPOOL_DEFERRED,
				 inode[i]),
		    0);
	}
	world_again(&w);
	cr_assert_eq(w.nprepared, 20);
	for (i = 0; i < 20; i++)
		cr_expect_eq(w.prepared[(i * 7) % 20], inode[i]);
}

/* mutation: share_reroute() does nothing. */
Test(share, a_corrected_route_is_followed)
{
	struct world_delivery delivery;
	uint32_t i;

	for (i = 0; i < 30; i++)
		world_message(&w, "a@hangs.test", 1);
	cr_assert_eq(nparked("hangs.test"), 26);
	world_reload(&w, "qmgr_message_active_limit = 20\n");
	cr_expect_eq(w.nprepared, 20, "as many as fit");
	(void)answer(0);
	cr_expect(world_take(&w, &delivery));
	close(delivery.fd);
}

/* mutation: next_due() tries what is parked only once; one of the two orders
 * notices. */
static void
ask_another_todo_proc(bool parked_first)
{
	uint32_t i, before;

	for (i = 0; i < 8; i++)
		world_message(&w, "a@slow.test", 1);
	world_deliver(&w, AGENT_SENT);
	before = w.nprepared;
	cr_assert_gt(before, 0);
	w.s.links->parked_turn = parked_first;
	world_link_todo(&w);
	world_run(&w);
	cr_expect_eq(w.nprepared, 2 * before, "the same again");
	(void)answer(before);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 4);
}

Test(share, another_todo_proc_is_asked_again)
{
	ask_another_todo_proc(false);
}

Test(share, another_todo_proc_is_asked_again_the_parked_first)
{
	ask_another_todo_proc(true);
}

/* One is removed by hand, one is damaged: the others go on. */
Test(share, a_parked_message_that_is_gone)
{
	uint64_t inode[8];
	uint32_t i;

	for (i = 0; i < 8; i++)
		inode[i] = world_message(&w, "a@slow.test", 1);
	cr_assert_eq(spool_remove(&w.s.sp, SPOOL_DEFERRED, inode[4]), 0);
	world_deliver(&w, AGENT_SENT);
	cr_assert_gt(w.nprepared, 0);
	cr_assert_eq(w.prepared[0], inode[4]);
	world_send(w.todo,
	    &(struct msg){ .type = MSG_GONE,
		.u.GONE = { .inode = inode[4], .error = -ENOENT } });
	world_run(&w);
	(void)answer(1);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 3);
	cr_expect_eq(w.s.due.count, 0);
}

/* A MESSAGE that comes twice does not make queue-send forget. */
Test(share, offered_twice)
{
	uint64_t inode;
	struct msg msg = { .type = MSG_MESSAGE };
	uint32_t i;

	for (i = 0; i < 4; i++)
		world_message(&w, "a@slow.test", 1);
	inode = world_message(&w, "b@slow.test", 1);
	cr_assert_eq(nparked("slow.test"), 1);
	msg.u.MESSAGE = (struct msg_MESSAGE){ .inode = inode,
		.dir = SPOOL_INCOMING,
		.sender = MSG_S("s@here.test"),
		.arrival_wall = 1 };
	w.credit--;
	world_send(w.todo, &msg);
	world_run(&w);
	cr_expect_eq(nparked("slow.test"), 1, "as it was");
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
}

/* mutation: share_names_are_right() is always true. */
Test(share, names_that_todo_proc_may_not_send)
{
	static const struct {
		const char *name, *bytes;
		size_t len;
		bool want;
	} cases[] = {
		{ "none", "", 0, true },
		{ "one", "\1\0\0\0\1\0\0\0a", 9, true },
		{ "an empty one", "\1\0\0\0\0\0\0\0", 8, true },
		{ "short head", "\1\0\0\0\1\0\0", 7, false },
		{ "short name", "\1\0\0\0\2\0\0\0a", 9, false },
		{ "long name",
		    "\1\0\0\0\xff\xff\xff\xff"
		    "a",
		    9, false },
		{ "absurd transport", "\xff\0\0\1\1\0\0\0a", 9, false },
	};
	char many[17 * 8] = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		cr_expect_eq(share_names_are_right(
				 &(msg_blob){ cases[i].bytes, cases[i].len }),
		    cases[i].want, "%s", cases[i].name);
	cr_expect(share_names_are_right(&(msg_blob){ many, 16 * 8 }));
	cr_expect_not(share_names_are_right(&(msg_blob){ many, 17 * 8 }));
}

/* ---- recipients in memory ---- */

/* mutation: sched_message_room() of a first batch is the whole file. */
Test(share, a_large_message_does_not_hold_all_recipient_slots)
{
	struct world_delivery delivery;
	uint32_t i;

	world_end(&w);
	world_start(&w,
	    "qmgr_message_recipient_limit = 200\n"
	    "default_recipient_limit = 200\n"
	    "initial_destination_concurrency = 1\n");
	world_message(&w, "a@hangs.test", 5000);
	cr_assert(world_take(&w, &delivery));
	close(delivery.fd);
	for (i = 0; i < 20; i++)
		world_message(&w, "b@other.test", 2);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 20);
	cr_expect_eq(w.s.active, 1);
	cr_expect_leq(sched_figures(w.s.sched).recipients, 500);
}
