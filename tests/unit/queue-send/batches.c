/* Recipients in batches, and limits that change: what queue-send does between
 * the scheduler and the queue file. */
#include "tests/unit/queue-send/world.h"

#include <criterion/criterion.h>
#include <event2/event.h>
#include <stdio.h>
#include <unistd.h>

static struct world w;

static void
end(void)
{
	world_end(&w);
}

TestSuite(batches, .fini = end, .timeout = 60);

static uint32_t
take_all(struct world_delivery *deliveries, uint32_t room)
{
	uint32_t n = 0;

	while (n < room && world_take(&w, &deliveries[n]))
		close(deliveries[n++].fd);
	return n;
}

static void
deliver(const struct world_delivery *delivery)
{
	world_result(&w, delivery, 0, AGENT_SENT);
	world_done(&w, delivery);
	world_run(&w);
}

static void
step(void)
{
	event_base_loop(w.s.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

Test(batches, the_next_one_does_not_wait_for_the_end_of_the_last)
{
	struct world_delivery deliveries[64];

	world_start(&w,
	    "qmgr_message_recipient_limit = 20\n"
	    "qmgr_message_recipient_minimum = 3\n"
	    "default_recipient_limit = 20\n"
	    "default_recipient_refill_limit = 5\n"
	    "default_recipient_refill_delay = 1d\n");
	world_offer(&w, SPOOL_INCOMING, world_file(&w, "d", 60, 0));
	world_run(&w);
	cr_assert_eq(take_all(deliveries, 64), 20);
	deliver(&deliveries[0]);
	cr_expect_eq(take_all(deliveries + 20, 44), 0, "room for 4");
	deliver(&deliveries[1]);
	cr_expect_eq(take_all(deliveries + 20, 44), 5, "room for 5");
	cr_expect_eq(sched_figures(w.s.sched).recipients, 23);
}

Test(batches, little_room_is_filled_after_a_time)
{
	struct world_delivery deliveries[64];
	usec_t began;

	world_start(&w,
	    "qmgr_message_recipient_limit = 20\n"
	    "qmgr_message_recipient_minimum = 3\n"
	    "default_recipient_limit = 20\n"
	    "default_recipient_refill_delay = 1s\n");
	world_offer(&w, SPOOL_INCOMING, world_file(&w, "d", 60, 0));
	world_run(&w);
	began = w.s.now;
	cr_assert_eq(take_all(deliveries, 64), 20);
	while (sched_figures(w.s.sched).recipients == 20)
		event_base_loop(w.s.base, EVLOOP_ONCE);
	cr_expect_geq(w.s.now - began, USEC_PER_SEC - USEC_PER_SEC / 10);
	cr_expect_eq(sched_figures(w.s.sched).recipients, 23);
}

Test(batches, one_that_takes_several_turns_is_selected_at_its_end)
{
	struct sched_figures f;
	uint32_t turns = 0;

	world_start(&w, "");
	world_offer(&w, SPOOL_INCOMING, world_file(&w, "d", 4500, 0));
	do {
		step();
		f = sched_figures(w.s.sched);
		cr_assert_leq(f.recipients, 2000 * (turns + 1));
		turns += f.recipients > 0;
		cr_assert(f.running == 0 || f.recipients == 4500);
	} while (f.recipients < 4500);
	cr_expect_geq(turns, 3);
	world_run(&w);
	cr_expect_eq(sched_figures(w.s.sched).running, 100);
}

/* All that is in memory is with the agent, or has been: the rest is read. */
Test(batches, each_recipient_once_whatever_the_pools)
{
	static const char *const confs[] = {
		"qmgr_message_recipient_limit = 1\n"
		"qmgr_message_recipient_minimum = 1\n"
		"default_recipient_limit = 1\n",
		"qmgr_message_recipient_limit = 7\n"
		"qmgr_message_recipient_minimum = 2\n"
		"default_recipient_limit = 3\n"
		"default_extra_recipient_limit = 1\n"
		"default_recipient_refill_limit = 2\n",
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(confs); i++) {
		world_start(&w, confs[i]);
		world_message(&w, "d", 50);
		world_message(&w, "e@one.test", 30);
		world_message(&w, "f", 9);
		world_deliver(&w, AGENT_SENT);
		cr_expect_eq(w.s.counters.delivered, 89, "%zu: %u", i,
		    (unsigned)w.s.counters.delivered);
		cr_expect_eq(w.s.active, 0);
		cr_expect_eq(sched_figures(w.s.sched).recipients, 0);
		if (i + 1 < ARRAY_LEN(confs))
			world_end(&w);
	}
}

/* ---- reload ---- */

Test(batches, a_reload_changes_limits_while_deliveries_run)
{
	struct world_delivery deliveries[64];

	world_start(&w,
	    "initial_destination_concurrency = 4\n"
	    "default_destination_recipient_limit = 2\n"
	    "discard_destination_concurrency_limit = 4\n");
	world_message(&w, "u@one.test", 40);
	cr_assert_eq(take_all(deliveries, 64), 4);
	world_reload(&w,
	    "default_destination_recipient_limit = 2\n"
	    "discard_destination_concurrency_limit = 1\n");
	deliver(&deliveries[0]);
	deliver(&deliveries[1]);
	deliver(&deliveries[2]);
	cr_expect_eq(take_all(deliveries, 64), 0, "one runs");
	deliver(&deliveries[3]);
	cr_assert_eq(take_all(deliveries, 64), 1);
	world_reload(&w,
	    "default_destination_recipient_limit = 2\n"
	    "discard_process_limit = 1\n");
	deliver(&deliveries[0]);
	cr_expect_eq(take_all(deliveries, 64), 1, "window 2, one process");
	world_reload(&w, "default_destination_recipient_limit = 2\n");
	cr_expect_eq(take_all(deliveries, 64), 1, "and a second one");
}

/* mutation: queue-send/message/recipients.c, schedule_one() gives the address
 * of local mail to sched_rcpt_add(). */
Test(batches, X12_extensions_of_one_mailbox_are_one_destination)
{
	struct world_delivery deliveries[8];
	uint32_t i;

	world_start(&w,
	    "local_destination_recipient_limit = 1\n"
	    "local_destination_concurrency_limit = 2\n"
	    "local_initial_destination_concurrency = 2\n");
	for (i = 0; i < 6; i++) {
		char address[24];

		snprintf(address, sizeof(address), "mallory+x%u@local.test", i);
		(void)world_message(&w, address, 1);
	}
	world_run(&w);
	cr_expect_eq(take_all(deliveries, 8), 2);
	deliver(&deliveries[0]);
	cr_expect_eq(take_all(deliveries, 8), 1);
}
