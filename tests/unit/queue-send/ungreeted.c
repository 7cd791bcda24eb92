/* Destinations whose servers do not greet leave slots for others
 * (docs/QUEUE.md, "Servers that do not greet"). */
#include "queue-send/schedule/own.h"
#include "tests/unit/queue-send/world.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "queue-send/agents/agents.h"
#include "queue-send/schedule/schedule.h"

#define LIMIT 8
#define CONF                                         \
	"smtp_process_limit = 8\n"                   \
	"smtp_initial_destination_concurrency = 5\n" \
	"smtp_connection_cache_time_limit = 0\n"     \
	"smtp_destination_recipient_limit = 1\n"     \
	"local_destination_recipient_limit = 1\n"    \
	"default_delivery_slot_cost = 0\n"

static struct world w;
static struct world_delivery d[2 * LIMIT];

static void
start(void)
{
	world_start(&w, CONF);
	world_link_smtp(&w);
	world_run(&w);
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(ungreeted, .init = start, .fini = end, .timeout = 60);

static void
say_greeted(const struct world_delivery *of)
{
	world_send(w.agent,
	    &(struct msg){ .type = MSG_GREETED, .u.GREETED.job = of->number });
	world_run(&w);
}

static void
over(const struct world_delivery *of)
{
	world_result(&w, of, 0, AGENT_SENT);
	world_done(&w, of);
	world_run(&w);
}

/* A message for each of these destinations, s<N>.silent.test. */
static void
mail(int first, int n)
{
	char address[64];
	int i;

	for (i = first; i < first + n; i++) {
		snprintf(address, sizeof(address), "u@s%02d.silent.test", i);
		world_message(&w, address, 1);
	}
}

static int
take_all(struct world_delivery *into)
{
	int n = 0;

	world_run(&w);
	while (n < LIMIT && world_take(&w, &into[n]))
		n++;
	return n;
}

/* Half of the eight slots. */
Test(ungreeted, N46_silent_hosts_leave_slots)
{
	int n;

	mail(0, 20);
	cr_assert_eq(take_all(d), 4);
	world_message(&w, "u@smtp.test", 1);
	cr_expect_eq(take_all(d + 4), 0, "it has not greeted, either");
	say_greeted(&d[0]);
	n = take_all(d + 4);
	cr_expect_eq(n, 1, "the next one in its place: %d", n);
	cr_expect_str_eq(d[4].nexthop, "s04.silent.test");
	/* Those that have greeted are not bound. */
	mail(0, 3);
	n = take_all(d + 5);
	cr_expect_eq(n, 1, "s00 alone: %d", n);
	cr_expect_str_eq(d[5].nexthop, "s00.silent.test");
	over(&d[1]);
	cr_expect_eq(take_all(d + 6), 1, "one goes, one comes");
}

Test(ungreeted, N46_one_connection_while_slots_are_short)
{
	int n;

	world_message(&w, "u@smtp.test", 5);
	n = take_all(d);
	cr_assert_eq(n, 4, "a window of five: %d", n);
	say_greeted(&d[0]);
	n = take_all(d + 4);
	cr_assert_eq(n, 1, "the window: %d", n);
	mail(0, 1);
	mail(0, 1);
	n = take_all(d + 5);
	cr_expect_eq(n, 1, "of two messages of one host: %d", n);
	for (n = 1; n <= 3; n++)
		say_greeted(&d[n]);
	cr_expect_eq(take_all(d + 6), 0, "six of eight slots are in use");
	over(&d[0]);
	over(&d[1]);
	cr_expect_eq(take_all(d + 6), 0, "four");
	over(&d[2]);
	n = take_all(d + 6);
	cr_expect_eq(n, 1, "slots are not short: %d", n);
}

/* N47: it greets once, and never again. */
Test(ungreeted, N47_a_failure_before_a_greeting_ends_the_trust)
{
	int n;

	mail(0, 1);
	cr_assert_eq(take_all(d), 1);
	say_greeted(&d[0]);
	over(&d[0]);
	world_message(&w, "u@s00.silent.test", 1);
	cr_assert_eq(take_all(d), 1);
	world_site_failed(&w, &d[0]);
	world_run(&w);
	cr_expect_eq(w.s.schedule->ungreeted.ngreeted, 0);
	mail(0, 8);
	n = take_all(d);
	cr_expect_eq(n, 4, "%d", n);
}

/* A server that takes no more than so many connections refuses the next one in
 * its greeting. It is no silent server, as long as it talks beside that. */
Test(ungreeted, N47_a_refusal_beside_a_delivery_that_was_greeted_is_no_silence)
{
	world_message(&w, "u@smtp.test", 1);
	cr_assert_eq(take_all(d), 1);
	say_greeted(&d[0]);
	mail(0, 20);
	cr_assert_eq(take_all(d + 1), 4);
	world_message(&w, "u@smtp.test", 1);
	cr_assert_eq(take_all(d + 5), 1);
	world_site_failed(&w, &d[5]);
	world_run(&w);
	world_message(&w, "u@smtp.test", 1);
	cr_expect_eq(take_all(d + 5), 1, "beside the first one");
	say_greeted(&d[5]);
	over(&d[0]);
	over(&d[5]);
	cr_expect_eq(w.s.schedule->ungreeted.ngreeted, 1);
	world_message(&w, "u@smtp.test", 1);
	cr_assert_eq(take_all(d), 1);
	world_site_failed(&w, &d[0]);
	world_run(&w);
	cr_expect_eq(
	    w.s.schedule->ungreeted.ngreeted, 0, "none was greeted since");
}

Test(ungreeted, I18_an_agent_that_greets_what_it_has_not_is_dropped)
{
	mail(0, 1);
	cr_assert_eq(take_all(d), 1);
	say_greeted(&d[0]);
	cr_assert_not_null(w.s.agent[AGENT_PROGRAM_SMTP]);
	say_greeted(&d[0]);
	cr_expect_null(w.s.agent[AGENT_PROGRAM_SMTP], "twice");
	world_link_smtp(&w);
	world_run(&w);
	d[0].number = 4711;
	say_greeted(&d[0]);
	cr_expect_null(w.s.agent[AGENT_PROGRAM_SMTP], "unknown delivery");
	world_link_smtp(&w);
	world_run(&w);
}

static void
grow_older(usec_t age)
{
	struct delivery *delivery;

	TAILQ_FOREACH (
	    delivery, &w.s.agent[AGENT_PROGRAM_SMTP]->deliveries, of_agent)
		delivery->selected_at -= age;
	w.s.schedule->ungreeted.check_at = 0;
	send_wake(&w.s);
	w.cancelled = (struct msg_CANCEL){ 0 };
	take_all(d + 4);
}

Test(ungreeted, N46_a_slot_is_given_up_for_a_host_that_nobody_knows)
{
	mail(0, 4);
	cr_assert_eq(take_all(d), 4);
	grow_older(1800 * USEC_PER_SEC);
	cr_expect_eq(w.cancelled.job, 0, "nobody waits");
	world_reload(&w, CONF "smtp_ungreeted_time = 40m\n");
	world_message(&w, "u@smtp.test", 1);
	grow_older(0);
	cr_expect_eq(w.cancelled.job, 0, "the time is not over");
	world_reload(&w, CONF "smtp_ungreeted_time = 0\n");
	grow_older(1800 * USEC_PER_SEC);
	cr_expect_eq(w.cancelled.job, 0, "no slot is given up");
	world_reload(&w, CONF "smtp_ungreeted_time = 40m\n");
	grow_older(0);
	cr_expect_eq(w.cancelled.job, d[0].number, "the oldest");
	cr_expect_eq(w.cancelled.stage, AGENT_NOT_GREETED);
	world_site_failed(&w, &d[0]);
	cr_assert_eq(take_all(d + 4), 1);
	cr_expect_str_eq(d[4].nexthop, "smtp.test");
}

/* One more message of a host that has its delivery is none that waits. */
Test(ungreeted, N46_no_slot_is_given_up_for_its_own_host)
{
	mail(0, 4);
	mail(0, 4);
	cr_assert_eq(take_all(d), 4);
	grow_older(3600 * USEC_PER_SEC);
	cr_expect_eq(w.cancelled.job, 0);
}

Test(ungreeted, switched_off_all_slots_are_theirs)
{
	world_reload(&w, CONF "smtp_ungreeted_share = 100\n");
	mail(0, 20);
	cr_expect_eq(take_all(d), LIMIT);
}

/* A share that grows is for those that wait already. */
Test(ungreeted, a_reload_is_for_those_that_wait)
{
	mail(0, 20);
	cr_assert_eq(take_all(d), 4);
	world_reload(&w, CONF "smtp_ungreeted_share = 75\n");
	w.s.schedule->ungreeted.check_at = 0;
	send_wake(&w.s);
	cr_expect_eq(take_all(d), 2);
}

/* The share of two slots is held by s00 and s01; s09 is dead. */
static void
two_silent_and_one_dead(void)
{
	world_reload(&w,
	    "smtp_process_limit = 4\n"
	    "initial_destination_concurrency = 1\n"
	    "smtp_connection_cache_time_limit = 0\n"
	    "smtp_ungreeted_time = 1s\n");
	mail(9, 1);
	cr_assert_eq(take_all(d), 1);
	world_site_failed(&w, &d[0]);
	mail(0, 2);
	cr_assert_eq(take_all(d), 2);
}

/* Mail for a dead destination is suspended at once, and needs no slot. */
Test(ungreeted, N46_no_slot_is_given_up_for_a_dead_host)
{
	two_silent_and_one_dead();
	mail(9, 1);
	cr_assert_eq(take_all(d + 2), 0);
	cr_expect_eq(w.s.schedule->ungreeted.nheld, 0);
	grow_older(8 * USEC_PER_SEC);
	cr_expect_eq(w.cancelled.job, 0);
	/* One that waits for a slot has it. */
	mail(5, 1);
	grow_older(0);
	cr_expect_eq(w.cancelled.job, d[0].number, "the oldest");
}

/* It waited for a slot, and its mail is gone. */
Test(ungreeted, N46_no_slot_is_given_up_for_mail_that_is_gone)
{
	uint32_t running;
	uint64_t inode;

	two_silent_and_one_dead();
	inode = world_message(&w, "u@s05.silent.test", 1);
	cr_assert_eq(take_all(d + 2), 0);
	cr_assert_eq(w.s.schedule->ungreeted.nheld, 1);
	cr_assert_eq(world_act(&w, ACT_HOLD, inode, &running), 0);
	grow_older(8 * USEC_PER_SEC);
	cr_expect_eq(w.cancelled.job, 0);
}
