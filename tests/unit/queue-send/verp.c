/* A sender of its own for each recipient (docs/DELIVERY.md, "VERP"). */
#include "tests/unit/queue-send/world.h"

#include "spool/reason.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct world w;

static void
start(void)
{
	world_start(&w, "error_interval = 1h\n");
	w.sender = "list-@site.test-@[]";
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(verp, .init = start, .fini = end, .timeout = 120);

/* "u0@here.test": "list-u0=here.test@site.test" */
static void
expect_sender(const struct world_delivery *d)
{
	char want[ADDRESS_MAX + 1];

	snprintf(want, sizeof(want), "list-%.*s=%s@site.test",
	    (int)address_local_len(d->first), d->first,
	    address_domain(d->first));
	cr_expect_str_eq(d->sender, want);
}

Test(verp, C14_a_delivery_has_one_recipient_and_its_sender)
{
	uint64_t inode = world_message(&w, "@here.test", 5);
	struct world_delivery d;
	uint32_t n = 0;

	world_run(&w);
	while (world_take(&w, &d)) {
		cr_expect_eq(d.nrcpts, 1);
		expect_sender(&d);
		world_result(&w, &d, 0, AGENT_SENT);
		world_done(&w, &d);
		world_run(&w);
		n++;
	}
	cr_expect_eq(n, 5);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	world_is_empty(&w);
}

Test(verp, an_ordinary_sender_still_has_them_together)
{
	struct world_delivery d;

	w.sender = NULL;
	world_message(&w, "@here.test", 5);
	world_take_one(&w, &d);
	cr_expect_eq(d.nrcpts, 5);
	cr_expect_str_eq(d.sender, "s@here.test");
}

/* The sender of the second message would have 513 octets. */
Test(verp, C14_a_sender_that_would_be_too_long_fails_its_recipient)
{
	char sender[ADDRESS_MAX + 1];

	memset(sender, 'l', ADDRESS_MAX);
	memcpy(sender + 501, "@s-@[]", 7);
	w.sender = sender;
	world_message(&w, "u@h.test", 1); /* 501 + "u=h.test" + "@s" */
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	world_message(&w, "uuu@h.test", 1);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 0);
	world_run(&w);
	cr_expect_not_null(strstr(world_report(&w), "5.1.7"));
}

/* ---- reports ---- */

static void
expect_reports(uint32_t count)
{
	char text[64];
	uint32_t i;
	uint64_t last;

	for (i = 0; i < count; i++) {
		snprintf(text, sizeof(text),
		    "\nTo: <list-r%u=here.test@site.test>\n", i);
		cr_expect(world_has_report(&w, text), "%u", i);
		snprintf(text, sizeof(text),
		    "\nFinal-Recipient: rfc822; r%u@here.test\n", i);
		cr_expect(world_has_report(&w, text), "%u", i);
	}
	cr_expect_eq(world_clear_incoming(&w, &last), count);
}

Test(verp, C15_each_failure_is_reported_to_its_sender)
{
	world_message(&w, "@here.test", 3);
	cr_expect_eq(world_deliver(&w, AGENT_FAILED), 3);
	world_run(&w);
	cr_expect(world_has_report(&w,
	    "\nX-Qscheduler-Sender: rfc822; list-r1=here.test@site.test\n"));
	expect_reports(3);
	world_is_empty(&w);
}

/* More than one task makes. */
Test(verp, C15_many_failures_are_all_reported)
{
	world_message(&w, "@here.test", 45);
	cr_expect_eq(world_deliver(&w, AGENT_FAILED), 45);
	world_run(&w);
	expect_reports(45);
	world_is_empty(&w);
}

Test(verp, a_later_failure_has_a_report_of_its_own)
{
	uint64_t inode = world_message(&w, "@here.test", 2), last;
	struct world_delivery d[2];

	world_take_one(&w, &d[0]);
	cr_assert(world_take(&w, &d[1]));
	world_result(&w, &d[0], 0, AGENT_FAILED);
	world_result(&w, &d[1], 0, AGENT_DEFERRED);
	world_done(&w, &d[0]);
	world_done(&w, &d[1]);
	world_run(&w);
	cr_expect(world_has_report(&w, "list-r0=here.test@site.test"));
	cr_expect_eq(world_clear_incoming(&w, &last), 1);
	world_offer_again(&w, inode);
	cr_assert_eq(world_deliver(&w, AGENT_FAILED), 1);
	world_run(&w);
	cr_expect(world_has_report(&w, "list-r1=here.test@site.test"));
	cr_expect_eq(world_clear_incoming(&w, &last), 1);
	world_is_empty(&w);
}

/* A line without an index tells of all in front of it: it is that of `requeue
 * --failed`, or of a version without VERP. */
Test(verp, C15_a_report_of_all_recipients_is_told_once)
{
	uint64_t inode = world_message(&w, "@here.test", 3), last;
	const struct reason reason = { .index = 0,
		.address = "r0@here.test",
		.dsn = "5.0.0",
		.relay = "none",
		.text = "told" };
	struct world_delivery d[3];

	for (size_t i = 0; i < 3; i++) {
		world_run(&w);
		cr_assert(world_take(&w, &d[i]));
	}
	world_result(&w, &d[0], 0, AGENT_FAILED);
	world_result(&w, &d[1], 0, AGENT_FAILED);
	world_result(&w, &d[2], 0, AGENT_DEFERRED);
	for (size_t i = 0; i < 3; i++)
		world_done(&w, &d[i]);
	world_run(&w);
	cr_expect_eq(world_clear_incoming(&w, &last), 2);
	cr_assert_eq(reason_add(&w.s.sp, SPOOL_BOUNCE, inode, &reason), 0);
	cr_assert_eq(
	    reason_add_report(&w.s.sp, inode, w.s.now_wall, "none"), 0);
	world_offer_again(&w, inode);
	cr_assert_eq(world_deliver(&w, AGENT_FAILED), 1);
	world_run(&w);
	cr_expect(world_has_report(&w, "list-r2=here.test@site.test"));
	cr_expect_eq(world_clear_incoming(&w, &last), 1);
	world_is_empty(&w);
}

/* A program that reads the address would take a warning for a failure. */
Test(verp, no_warning_of_a_delay)
{
	uint64_t inode, last;

	world_reload(&w, "delay_warning_time = 1h\n");
	inode = world_file(&w, "@here.test", 2, 2 * 3600);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_DEFERRED), 2);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_eq(world_clear_incoming(&w, &last), 0);
}

/* A death at step n of the reports of two failures. False: there is no such
 * step. */
static bool
die_at(unsigned n, bool settle_first)
{
	uint64_t inode = world_message(&w, "@here.test", 2);
	struct world_delivery d[2];
	bool cut;

	world_take_one(&w, &d[0]);
	cr_assert(world_take(&w, &d[1]));
	world_result(&w, &d[0], 0, AGENT_FAILED);
	world_done(&w, &d[0]);
	world_result(&w, &d[1], 0, AGENT_FAILED);
	world_run(&w);
	world_cut(n);
	world_done(&w, &d[1]);
	world_run(&w);
	cut = world_was_cut();
	world_again(&w);
	if (settle_first)
		world_settle(&w);
	world_offer_again(&w, inode);
	world_settle(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_NDIRS, "step %u", n);
	expect_reports(2);
	cr_assert_eq(world_count(&w, SPOOL_PREPARED), 0, "step %u", n);
	cr_assert_eq(world_count(&w, SPOOL_BOUNCE), 0, "step %u", n);
	return cut;
}

/* mutation: queue-send/reports/report_rcpts.c: a recipient is never TOLD. */
Test(verp, C15_a_death_at_any_step_makes_one_report_of_each)
{
	unsigned n, steps = 0;

	for (n = 1; die_at(n, (n & 1) != 0); n++)
		steps++;
	cr_expect_geq(steps, 10);
}

/* report_rate_limit is that of the list, not of each of its addresses. */
Test(verp, C15_the_rate_of_reports_holds_for_all_of_them)
{
	uint64_t inode, last;

	world_reload(&w, "report_rate_limit = 1\n");
	inode = world_message(&w, "@here.test", 25);
	cr_expect_eq(world_deliver(&w, AGENT_FAILED), 25);
	world_run(&w);
	cr_expect_eq(world_clear_incoming(&w, &last), 20);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	world_reload(&w, "report_rate_limit = 0\n");
	world_offer_again(&w, inode);
	world_run(&w);
	cr_expect_eq(world_clear_incoming(&w, &last), 5);
	world_is_empty(&w);
}
