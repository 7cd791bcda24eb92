/* The sender of late mail is told so, exactly once (docs/REPORTS.md). */
#include "tests/unit/queue-send/world.h"

#include "base/io.h"
#include "queue-send/message/path.h"
#include "spool/reason.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define HOUR 3600

static struct world w;

static void
start(void)
{
	world_start(&w, "error_interval = 1h\ndelay_warning_time = 4h\n");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(delays, .init = start, .fini = end, .timeout = 120);

/* One attempt of a message of that age, its recipients deferred. */
static uint64_t
defer(uint32_t n, int64_t age_s)
{
	uint64_t inode = world_file(&w, "d", n, age_s);

	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), n);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	return inode;
}

static void
again(uint64_t inode, enum agent_outcome outcome)
{
	world_offer_again(&w, inode);
	cr_assert_geq(world_deliver(&w, outcome), 1);
}

/* mutation: queue-send/message/active.c: look_at_reports() clears in any case.
 */
Test(delays, D37_a_sender_is_warned_once)
{
	uint64_t inode = defer(2, 5 * HOUR), report;

	cr_expect(world_has_report(&w, "\nSubject: Delayed Mail "));
	cr_expect(
	    world_has_report(&w, "\nFinal-Recipient: rfc822; r0@d0.test\n"));
	cr_expect(
	    world_has_report(&w, "\nFinal-Recipient: rfc822; r1@d1.test\n"));
	cr_expect(world_has_report(&w, "\nAction: delayed\nStatus: 4.2.1\n"));
	cr_expect(world_has_report(&w, "\nWill-Retry-Until: "));
	cr_expect(
	    world_has_report(&w, "\nContent-Type: text/rfc822-headers\n"));
	cr_expect_eq(world_clear_incoming(&w, &report), 1);
	again(inode, AGENT_DEFERRED);
	cr_expect_eq(world_count(&w, SPOOL_INCOMING), 0);
	world_again(&w);
	again(inode, AGENT_DEFERRED);
	cr_expect_eq(world_count(&w, SPOOL_INCOMING), 0);
	again(inode, AGENT_SENT);
	cr_expect_eq(world_count(&w, SPOOL_INCOMING), 0);
	world_is_empty(&w);
}

Test(delays, only_pending_recipients_are_named)
{
	static const enum agent_outcome outcomes[] = { AGENT_SENT, AGENT_FAILED,
		AGENT_DEFERRED };
	uint64_t inode = world_file(&w, "d", 3, 5 * HOUR), report;
	struct world_delivery delivery;
	size_t i;

	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	for (i = 0; i < ARRAY_LEN(outcomes); i++) {
		world_take_one(&w, &delivery);
		world_result(&w, &delivery, 0, outcomes[i]);
		world_done(&w, &delivery);
		world_run(&w);
	}
	cr_expect(world_has_report(
	    &w, "\nFinal-Recipient: rfc822; r1@d1.test\nAction: failed\n"));
	cr_expect(world_has_report(
	    &w, "\nFinal-Recipient: rfc822; r2@d2.test\nAction: delayed\n"));
	cr_expect_not(world_has_report(&w, "r0@d0.test"));
	cr_expect_not(world_has_report(&w, "r1@d1.test\nAction: delayed\n"));
	cr_expect_eq(world_clear_incoming(&w, &report), 2);
	/* A failure after the warning is told of, and the first one is not. */
	again(inode, AGENT_FAILED);
	cr_expect(world_has_report(&w, "r2@d2.test\nAction: failed\n"));
	cr_expect_not(world_has_report(&w, "r1@d1.test"));
	cr_expect_eq(world_clear_incoming(&w, &report), 1);
	world_is_empty(&w);
}

/* mutation: queue-send/reports/reports.c: is_to_warn() asks for no age. */
Test(delays, nobody_else_is_warned)
{
	static const struct {
		const char *name, *conf, *sender, *content;
		int64_t age;
		uint32_t want;
	} rows[] = {
		{ "late", "delay_warning_time = 4h\n", "s@x.test", NULL, 5, 1 },
		{ "young", "delay_warning_time = 4h\n", "s@x.test", NULL, 3,
		    0 },
		{ "off", "", "s@x.test", NULL, 5, 0 },
		{ "no sender", "delay_warning_time = 4h\n", "", NULL, 5, 0 },
		{ "given up before",
		    "delay_warning_time = 4h\nmaximal_queue_lifetime = 4h\n",
		    "s@x.test", NULL, 5, 0 },
		{ "bulk", "delay_warning_time = 4h\n", "s@x.test",
		    "Precedence: bulk\n\nb\n", 5, 0 },
		{ "a list", "delay_warning_time = 4h\n", "s@x.test",
		    "Subject: a\nList-Id: <l.x.test>\n\nb\n", 5, 0 },
		{ "an answer", "delay_warning_time = 4h\n", "s@x.test",
		    "Auto-Submitted: auto-replied\n\nb\n", 5, 0 },
		{ "a person", "delay_warning_time = 4h\n", "s@x.test",
		    "Auto-Submitted: no\nSubject: List-Id: x\n\nList-Id: y\n",
		    5, 1 },
	};
	uint64_t inode, report;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		world_reload(&w, rows[i].conf);
		w.sender = rows[i].sender;
		w.content = rows[i].content;
		inode = defer(1, rows[i].age * HOUR);
		cr_expect_eq(world_count(&w, SPOOL_INCOMING), rows[i].want,
		    "%s", rows[i].name);
		(void)world_clear_incoming(&w, &report);
		again(inode, AGENT_SENT);
		world_is_empty(&w);
	}
}

Test(delays, a_late_message_that_is_delivered_warns_nobody)
{
	uint64_t inode = world_file(&w, "d", 1, 5 * HOUR);

	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_eq(world_count(&w, SPOOL_INCOMING), 0);
	world_is_empty(&w);
}

/* D22: the file of another message, which a crash left. */
Test(delays, D37_a_warning_of_the_last_message_of_the_inode_counts_for_none)
{
	uint64_t inode = world_file(&w, "d", 1, 5 * HOUR), report;
	const struct queue_id other = { .inode = inode, .queue = 1 };

	cr_assert_eq(reason_add_warning(&w.s.sp, &other, w.s.now_wall, "A"), 0);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_expect(world_has_report(&w, "Action: delayed"));
	(void)world_clear_incoming(&w, &report);
	again(inode, AGENT_SENT);
	world_is_empty(&w);
}

/* mutation: queue-send/reports/report_rcpts.c: is_meant() looks at no wish. */
Test(delays, a_sender_who_asked_is_told_what_he_asked)
{
	static const struct {
		const char *name, *content;
		uint8_t notify;
		uint32_t want;
	} rows[] = {
		{ "delay", NULL, DSN_DELAY, 1 },
		{ "failure alone", NULL, DSN_FAILURE, 0 },
		{ "never", NULL, DSN_NEVER, 0 },
		{ "bulk, asked for", "Precedence: bulk\n\nb\n", DSN_DELAY, 1 },
		{ "bulk, failure alone", "Precedence: bulk\n\nb\n", DSN_FAILURE,
		    0 },
	};
	uint64_t inode, report;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		w.notify = rows[i].notify;
		w.content = rows[i].content;
		inode = defer(1, 5 * HOUR);
		cr_expect_eq(world_count(&w, SPOOL_INCOMING), rows[i].want,
		    "%s", rows[i].name);
		(void)world_clear_incoming(&w, &report);
		again(inode, AGENT_SENT);
		world_is_empty(&w);
	}
}

/* ---- exactly once ---- */

/* A death at step n of the end of an attempt; what is left goes on, and is
 * deferred again. False: there is no such step. */
static bool
die_at(unsigned n, bool settle_first)
{
	uint64_t inode = world_file(&w, "d", 1, 5 * HOUR), report;
	struct world_delivery delivery;
	uint32_t reports = 0;
	bool cut;
	int i;

	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	world_take_one(&w, &delivery);
	world_result(&w, &delivery, 0, AGENT_DEFERRED);
	world_run(&w);
	world_cut(n);
	world_done(&w, &delivery);
	world_run(&w);
	cut = world_was_cut();
	world_again(&w);
	if (settle_first)
		world_settle(&w);
	for (i = 0; i < 2; i++) {
		world_offer_again(&w, inode);
		cr_assert_eq(
		    world_deliver(&w, AGENT_DEFERRED), 1, "step %u", n);
		world_settle(&w);
		cr_assert_eq(
		    world_where(&w, inode), SPOOL_DEFERRED, "step %u", n);
		cr_assert_eq(world_count(&w, SPOOL_PREPARED), 0, "step %u", n);
		reports += world_clear_incoming(&w, &report);
	}
	cr_assert_eq(reports, 1, "step %u: %u", n, reports);
	again(inode, AGENT_SENT);
	world_is_empty(&w);
	return cut;
}

/* mutation: common/spool/reason.c: is_warning_of() compares no parent. */
Test(delays, D37_a_death_at_any_step_makes_one_warning)
{
	unsigned n, steps = 0;

	for (n = 1; die_at(n, (n & 1) != 0); n++)
		steps++;
	for (n = 1; die_at(n, (n & 1) == 0); n++)
		;
	cr_expect_geq(steps, 7, "%u", steps);
}

/* mutation: queue-send/reports/report_task.c: make_report() goes on after an
 * error. */
Test(delays, D37_what_the_disk_refuses_is_told_later_and_once)
{
	const struct world_refusal *row;
	struct world_delivery delivery;
	uint64_t inode, report;
	uint32_t reports;
	size_t i;

	for (i = 0; i < WORLD_REFUSALS; i++) {
		row = &world_refusals[i];
		inode = world_file(&w, "d", 1, 5 * HOUR);
		world_offer(&w, SPOOL_INCOMING, inode);
		world_run(&w);
		world_take_one(&w, &delivery);
		world_result(&w, &delivery, 0, AGENT_DEFERRED);
		world_run(&w);
		world_fail(row->call, row->error, 1);
		world_done(&w, &delivery);
		world_run(&w);
		cr_expect_eq(
		    world_where(&w, inode), SPOOL_DEFERRED, "%s", row->name);
		reports = world_clear_incoming(&w, &report);
		again(inode, AGENT_DEFERRED);
		world_settle(&w);
		reports += world_clear_incoming(&w, &report);
		cr_expect_eq(reports, 1, "%s: %u", row->name, reports);
		again(inode, AGENT_SENT);
		world_is_empty(&w);
	}
}
