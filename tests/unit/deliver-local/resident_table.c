/* The table of processes that stay; none of these is a process. */
#include "deliver-local/local.h"

#include <criterion/criterion.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

static struct event_base *base;
static struct strays strays;
static struct residents *residents;
static pid_t killed;
static uint32_t kills;

static int
note_kill(pid_t pid, int sig UNUSED)
{
	killed = pid;
	kills++;
	return 0;
}

static void
setup(void)
{
	base = event_base_new();
	cr_assert_eq(strays_init(&strays, base), 0);
	cr_assert_eq(residents_new(base, &strays, note_kill, &residents), 0);
	residents_renew(residents, USEC_PER_SEC);
}

static void
teardown(void)
{
	residents_free(&residents);
	cr_expect_null(residents);
	strays_done(&strays);
	event_base_free(base);
}

TestSuite(resident_table, .init = setup, .fini = teardown);

static struct agent_delivery one;

static struct child_plan
plan_of(usec_t started_at)
{
	static char nexthop[] = "bob";

	one = (struct agent_delivery){ .kind = AGENT_LOCAL,
		.nexthop = nexthop,
		.content = "x",
		.content_len = 1,
		.fd = -1 };
	return (struct child_plan){ .delivery = &one,
		.maildir_path = "%h/Maildir",
		.maildir_user = "",
		.asks = "bob",
		.started_at = started_at };
}

/* A process of bob that is idle. Its number is that of none: it has gone as
 * soon as anybody looks. */
static void
keep_one(void)
{
	const struct child_plan plan = plan_of(0);
	struct resident *r = resident_new(residents, &plan);

	cr_assert_not_null(r);
	resident_keep(residents, r, 0x7ffffffe, dup(2));
}

static bool
is_served(const struct child_plan *plan)
{
	pid_t pid;
	int fd;
	struct resident *r = resident_take(residents, plan, &pid, &fd);

	if (r == NULL)
		return false;
	cr_expect(resident_serves(r));
	io_close(&fd);
	resident_free(&r);
	return true;
}

/* mutation: deliver-local/resident.c, fits() without the time. */
Test(resident_table, X17_an_account_holds_for_a_time)
{
	const struct child_plan same = plan_of(RESIDENT_HOLDS - 1);
	const struct child_plan late = plan_of(RESIDENT_HOLDS);

	keep_one();
	cr_expect_not(is_served(&late));
	cr_expect(is_served(&same));
	cr_expect_not(is_served(&same), "one process serves one at a time");
}

Test(resident_table, X17_what_is_looked_up_under_another_name_is_not_served)
{
	struct child_plan plan = plan_of(0);

	keep_one();
	memcpy(plan.asks, "eve", sizeof("eve"));
	cr_expect_not(is_served(&plan));
}

Test(resident_table, only_mail_into_a_maildir_that_is_in_memory)
{
	struct child_plan plan = plan_of(0);

	keep_one();
	one.content = NULL;
	cr_expect_not(is_served(&plan), "a descriptor");
	one.content = "x";
	one.kind = AGENT_ALIAS;
	cr_expect_not(is_served(&plan), "an alias");
	one.kind = AGENT_PIPE;
	cr_expect_not(is_served(&plan), "a program");
	one.kind = AGENT_LOCAL;
	plan.maildir_user = "games";
	cr_expect_not(is_served(&plan), "a home that has to be looked up");
	plan.maildir_user = "";
	cr_expect(is_served(&plan));
}

Test(resident_table, X17_a_reload_ends_all_of_them)
{
	const struct child_plan plan = plan_of(0);
	struct resident *runs;

	runs = resident_new(residents, &plan);
	keep_one();
	residents_renew(residents, USEC_PER_SEC);
	cr_expect_eq(kills, 1);
	cr_expect_not(is_served(&plan));
	resident_keep(residents, runs, 0x7ffffffe, dup(2));
	cr_expect_eq(kills, 2, "one that delivered meanwhile");
	cr_expect_not(is_served(&plan));
}

/* mutation: deliver-local/resident.c: the timer is set to a fixed time; not
 * anew when one is taken. */
Test(resident_table, the_loop_wakes_up_for_the_end_of_one_alone)
{
	const struct child_plan plan = plan_of(0);
	const int none =
	    event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED);

	residents_renew(residents, 600 * USEC_PER_MSEC);
	keep_one();
	cr_expect(is_served(&plan));
	cr_expect_eq(
	    event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED), none);
	keep_one();
	(void)event_base_loop(base, EVLOOP_ONCE);
	cr_expect_eq(kills, 1);
	/* The process is collected with the next look. */
	(void)event_base_loop(base, EVLOOP_ONCE);
	cr_expect_eq(
	    event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED), none);
}

Test(resident_table, idle_ones_are_bounded)
{
	uint32_t i;

	for (i = 0; i < RESIDENTS_MAX + 5; i++)
		keep_one();
	cr_expect_eq(kills, 5);
}

Test(resident_table, a_process_does_not_serve_for_ever)
{
	const struct child_plan plan = plan_of(0);
	struct resident *r;
	uint32_t i;
	pid_t pid;
	int fd;

	keep_one();
	for (i = 1; (r = resident_take(residents, &plan, &pid, &fd)) != NULL;
	     i++)
		resident_keep(residents, r, pid, fd);
	cr_expect_eq(i, RESIDENT_SERVES);
	cr_expect_eq(kills, 1);
	cr_expect_eq(killed, 0x7ffffffe);
}
