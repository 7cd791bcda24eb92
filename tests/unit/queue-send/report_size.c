/* A report has a bounded size; what does not fit is told by another one. */
#include "tests/unit/queue-send/world.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/message/path.h"
#include "report/report.h"
#include "spool/reason.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RCPTS 40
#define LONG  1500 /* of a reason: 20 recipients fit */

static struct world w;
static char text[LONG + 1];

static void
start(void)
{
	world_start(&w,
	    "error_interval = 1h\nbounce_size_limit = 4k\n"
	    "report_rate_limit = 0\n");
	memset(text, 'x', LONG);
	w.said = text;
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(report_size, .init = start, .fini = end, .timeout = 240);

static void
expect_each_once(const char *format, unsigned step)
{
	char field[80];
	uint32_t i;

	for (i = 0; i < RCPTS; i++) {
		snprintf(field, sizeof(field),
		    "\nFinal-Recipient: rfc822; r%u@%s%u.test\n", i, format, i);
		cr_assert_eq(world_count_reported(&w, field), 1,
		    "step %u: recipient %u: %u", step, i,
		    world_count_reported(&w, field));
	}
}

static void
expect_bounded(void)
{
	struct spool_scan scan;
	struct spool_item item;

	spool_scan_begin(&scan, &w.s.sp, SPOOL_INCOMING);
	while (spool_scan_next(&scan, true, &item) == 1)
		cr_expect_lt(item.size, REPORT_RCPTS_MIN + 16384);
	spool_scan_done(&scan);
}

/* mutation: queue-send/reports/report_task.c: measure() never ends. */
Test(report_size, X30_what_does_not_fit_is_told_by_another_report)
{
	uint64_t report;

	world_message(&w, "d", RCPTS);
	cr_assert_eq(world_deliver(&w, AGENT_FAILED), RCPTS);
	world_run(&w);
	expect_each_once("d", 0);
	expect_bounded();
	/* All but the last say that others follow; that one has the message. */
	cr_expect_eq(world_count_reported(&w, "that further reports tell of"),
	    world_count_reported(&w, "\nReporting-MTA:") - 1);
	cr_expect_eq(
	    world_count_reported(&w, "\nContent-Type: message/rfc822\n"), 1);
	cr_expect_geq(world_clear_incoming(&w, &report), 2);
	world_is_empty(&w);
}

/* The last part has deliveries alone.
 * mutation: queue-send/reports/report_text.c: report_take_part() counts all
 * that is left as failures. */
Test(report_size, X30_the_last_report_of_a_failure_returns_the_message)
{
	struct world_delivery delivery;
	uint64_t report;
	uint32_t i;

	w.notify = DSN_SUCCESS | DSN_FAILURE;
	world_message(&w, "d", RCPTS);
	for (i = 0; i < RCPTS; i++) {
		world_take_one(&w, &delivery);
		world_result(
		    &w, &delivery, 0, i < 5 ? AGENT_FAILED : AGENT_SENT);
		world_done(&w, &delivery);
		world_run(&w);
	}
	expect_each_once("d", 0);
	cr_expect_gt(world_count_reported(&w, "\nSubject: Successful Mail"), 0);
	cr_expect_eq(
	    world_count_reported(&w, "\nContent-Type: message/rfc822\n"), 1);
	cr_expect_eq(world_count_reported(&w, "returns the message"), 0);
	cr_expect_geq(world_clear_incoming(&w, &report), 2);
	world_is_empty(&w);
}

/* mutation: queue-send/reports/report_rcpts.c: note_lost_failures() does
 * nothing. */
Test(report_size, X30_failures_without_a_reason_are_told_in_parts_too)
{
	uint64_t inode = world_message(&w, "d", RCPTS), report;
	struct world_delivery delivery;
	uint32_t i;

	for (i = 0; i + 1 < RCPTS; i++) {
		world_take_one(&w, &delivery);
		world_result(&w, &delivery, 0, AGENT_FAILED);
		world_done(&w, &delivery);
		world_run(&w);
	}
	cr_assert_eq(reason_clear(&w.s.sp, SPOOL_BOUNCE, inode), 0);
	cr_assert_eq(world_deliver(&w, AGENT_FAILED), 1);
	world_run(&w);
	expect_each_once("d", 0);
	cr_expect_gt(world_clear_incoming(&w, &report), 0);
	world_is_empty(&w);
}

/* A later attempt: the first one told of its failures in parts. */
Test(report_size, X30_later_failures_are_told_once)
{
	uint64_t inode = world_message(&w, "d", RCPTS), report;
	struct world_delivery delivery;
	uint32_t i;

	for (i = 0; i < RCPTS; i++) {
		world_take_one(&w, &delivery);
		world_result(&w, &delivery, 0,
		    i % 2 == 0 ? AGENT_FAILED : AGENT_DEFERRED);
		world_done(&w, &delivery);
		world_run(&w);
	}
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_gt(world_count_reported(&w, "\nReporting-MTA:"), 0);
	world_offer_again(&w, inode);
	cr_assert_eq(world_deliver(&w, AGENT_FAILED), RCPTS / 2);
	world_run(&w);
	expect_each_once("d", 0);
	expect_bounded();
	cr_expect_gt(world_clear_incoming(&w, &report), 0);
	world_is_empty(&w);
}

/* Nothing is lost by a warning that names some: each recipient is still tried.
 */
Test(report_size, X30_a_warning_counts_what_does_not_fit)
{
	uint64_t inode, report;

	world_reload(&w,
	    "error_interval = 1h\nbounce_size_limit = 4k\n"
	    "delay_warning_time = 4h\n");
	inode = world_file(&w, "d", RCPTS, 5 * 3600);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), RCPTS);
	cr_expect_gt(world_count_reported(&w, "\nFinal-Recipient:"), 0);
	cr_expect_lt(world_count_reported(&w, "\nFinal-Recipient:"), RCPTS);
	cr_expect_eq(world_count_reported(&w, "has no room"), 1);
	expect_bounded();
	cr_expect_eq(world_clear_incoming(&w, &report), 1);
	world_offer_again(&w, inode);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), RCPTS);
	world_is_empty(&w);
}

/* mutation: queue-send/reports/report_task.c: tell_damage() marks the message
 * while recipients are left. */
Test(report_size, X30_each_part_of_a_damaged_message_counts)
{
	const uint64_t inode = world_file(&w, "d", RCPTS, 0);
	struct reason reason = {
		.dsn = "5.1.1", .relay = "none", .address = "r", .text = text
	};
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct queue_file file;
	uint64_t report;
	uint32_t i;
	int fd = spool_open_file(&w.s.sp, SPOOL_INCOMING, inode, O_RDWR);

	cr_assert_eq(queue_file_read(fd, &file), 0);
	queue_rcpt_begin(&cursor, &file);
	while (queue_rcpt_next(&cursor, fd, &rcpt) > 0) {
		reason.index = rcpt.index;
		cr_assert_eq(
		    reason_add(&w.s.sp, SPOOL_BOUNCE, inode, &reason), 0);
		cr_assert_eq(queue_file_mark(
				 &spool_sys_real, fd, rcpt.offset, RCPT_FAILED),
		    0);
	}
	close(fd);
	cr_assert_eq(
	    spool_move(&w.s.sp, SPOOL_INCOMING, SPOOL_CORRUPT, inode), 0);
	world_reload(&w,
	    "error_interval = 1h\nbounce_size_limit = 4k\n"
	    "delay_warning_time = 4h\nreport_rate_limit = 1\n");
	for (i = 0; i < 2; i++) {
		w.s.walks[WALK_CORRUPT].wanted = true;
		send_wake(&w.s);
		world_run(&w);
		cr_expect_eq(
		    world_count_reported(&w, "\nReporting-MTA:"), 1, "%u", i);
	}
	world_reload(&w,
	    "error_interval = 1h\nbounce_size_limit = 4k\n"
	    "delay_warning_time = 4h\nreport_rate_limit = 0\n");
	w.s.walks[WALK_CORRUPT].wanted = true;
	send_wake(&w.s);
	world_run(&w);
	expect_each_once("d", 0);
	cr_expect_gt(world_clear_incoming(&w, &report), 1);
	w.s.walks[WALK_CORRUPT].wanted = true;
	send_wake(&w.s);
	world_run(&w);
	cr_expect_eq(world_clear_incoming(&w, &report), 0, "once");
}

/* A death at step n of the end of a message. False: there is no such step. */
static bool
die_at(unsigned n, bool settle_first)
{
	uint64_t inode = world_message(&w, "d", RCPTS), report;
	struct world_delivery delivery;
	uint32_t i;
	bool cut;

	for (i = 0; i < RCPTS; i++) {
		world_take_one(&w, &delivery);
		world_result(&w, &delivery, 0, AGENT_FAILED);
		if (i + 1 < RCPTS)
			world_done(&w, &delivery);
		world_run(&w);
	}
	world_cut(n);
	world_done(&w, &delivery);
	world_run(&w);
	cut = world_was_cut();
	world_again(&w);
	if (settle_first)
		world_settle(&w);
	world_offer_again(&w, inode);
	world_settle(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_NDIRS, "step %u", n);
	expect_each_once("d", n);
	cr_assert_geq(world_clear_incoming(&w, &report), 2, "step %u", n);
	cr_assert_eq(world_count(&w, SPOOL_PREPARED), 0, "step %u", n);
	cr_assert_eq(world_count(&w, SPOOL_BOUNCE), 0, "step %u", n);
	return cut;
}

/* mutation: queue-send/reports/report_task.c: add_commit() tells of all. */
Test(report_size, D36_X30_a_death_at_any_step_tells_of_each_once)
{
	unsigned n, steps = 0;

	for (n = 1; die_at(n, (n & 1) != 0); n++)
		steps++;
	cr_expect_geq(steps, 16, "%u", steps);
}
