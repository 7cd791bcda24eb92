/* Failures are reported to the sender, exactly once (docs/REPORTS.md). */
#include "queue-send/reports/own.h"
#include "tests/unit/queue-send/world.h"

#include "queue-send/backlog/backlog.h"
#include "spool/prepared.h"
#include "spool/reason.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct world w;

static void
start(void)
{
	world_start(&w, "error_interval = 1h\n");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(reports, .init = start, .fini = end, .timeout = 120);

/* The recipient of the only message in incoming/, and its flags. */
static void
is_for(const char *recipient, uint32_t flags)
{
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct queue_file file;
	struct spool_scan scan;
	struct spool_item item;
	int fd;

	spool_scan_begin(&scan, &w.s.sp, SPOOL_INCOMING);
	cr_assert_eq(spool_scan_next(&scan, false, &item), 1);
	spool_scan_done(&scan);
	fd = spool_open_file(&w.s.sp, SPOOL_INCOMING, item.inode, O_RDONLY);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	queue_rcpt_begin(&cursor, &file);
	cr_assert_eq(queue_rcpt_next(&cursor, fd, &rcpt), 1);
	close(fd);
	cr_expect_str_eq(rcpt.address, recipient);
	cr_expect_eq(file.flags, flags);
}

static bool
reported(const char *what)
{
	return strstr(world_report(&w), what) != NULL;
}

/* ---- what is reported ---- */

Test(reports, one_report_of_all_failures_of_an_attempt)
{
	static const enum agent_outcome outcomes[] = { AGENT_FAILED, AGENT_SENT,
		AGENT_FAILED };
	uint64_t inode = world_message(&w, "d", 3);
	struct world_delivery delivery;
	size_t i;

	for (i = 0; i < ARRAY_LEN(outcomes); i++) {
		world_take_one(&w, &delivery);
		world_result(&w, &delivery, 0, outcomes[i]);
		world_done(&w, &delivery);
		world_run(&w);
	}
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_expect(reported("\nFinal-Recipient: rfc822; r0@d0.test\n"));
	cr_expect_not(reported("r1@d1.test"));
	cr_expect(reported("\nFinal-Recipient: rfc822; r2@d2.test\n"));
	cr_expect(reported("\nX-Qscheduler-Sender: rfc822; s@here.test\n"));
	cr_expect(reported("\nTo: <s@here.test>\n"));
	cr_expect(reported("\nContent-Type: message/rfc822\n"));
	is_for("s@here.test", QUEUE_FILE_REPORT);
	world_is_empty(&w);
}

/* An attempt at two recipients: the first fails, the second is deferred. */
static void
fail_one_of_two(void)
{
	struct world_delivery delivery;

	world_take_one(&w, &delivery);
	world_result(&w, &delivery, 0, AGENT_FAILED);
	world_done(&w, &delivery);
	world_take_one(&w, &delivery);
	world_result(&w, &delivery, 0, AGENT_DEFERRED);
	world_done(&w, &delivery);
	world_run(&w);
}

Test(reports, a_later_failure_has_a_report_of_its_own)
{
	uint64_t inode = world_message(&w, "d", 2), first;

	fail_one_of_two();
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect(reported("r0@d0.test"));
	cr_expect_not(reported("r1@d1.test"));
	cr_assert_eq(world_clear_incoming(&w, &first), 1);
	world_offer_again(&w, inode);
	cr_assert_eq(world_deliver(&w, AGENT_FAILED), 1);
	world_run(&w);
	cr_expect_not(reported("r0@d0.test"));
	cr_expect(reported("r1@d1.test"));
	world_is_empty(&w);
}

Test(reports, an_attempt_without_a_failure_makes_none)
{
	uint64_t inode = world_message(&w, "d", 2), first;

	fail_one_of_two();
	cr_assert_eq(world_clear_incoming(&w, &first), 1);
	world_offer_again(&w, inode);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
	world_run(&w);
	cr_expect_eq(world_count(&w, SPOOL_INCOMING), 0);
	world_is_empty(&w);
}

/* mutation: queue-send/reports/reports.c: told_to() looks at no flag. */
Test(reports, D36_a_report_that_fails_goes_to_postmaster_and_that_is_the_end)
{
	uint64_t inode;

	w.sender = "";
	world_message(&w, "d", 1);
	cr_assert_eq(world_deliver(&w, AGENT_FAILED), 1);
	world_run(&w);
	is_for("postmaster", QUEUE_FILE_REPORT | QUEUE_FILE_FINAL);
	cr_expect(reported("\nSubject: Postmaster Copy: Undelivered Mail\n"));
	/* That one fails, too. */
	{
		struct spool_scan scan;
		struct spool_item item;

		spool_scan_begin(&scan, &w.s.sp, SPOOL_INCOMING);
		cr_assert_eq(spool_scan_next(&scan, false, &item), 1);
		spool_scan_done(&scan);
		inode = item.inode;
	}
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_assert_eq(world_deliver(&w, AGENT_FAILED), 1);
	world_run(&w);
	cr_expect_eq(world_count(&w, SPOOL_INCOMING), 0);
	world_is_empty(&w);
}

Test(reports, nobody_is_told_where_there_is_no_postmaster)
{
	world_reload(&w, "error_interval = 1h\ndouble_bounce_recipient =\n");
	w.sender = "";
	world_message(&w, "d", 1);
	cr_assert_eq(world_deliver(&w, AGENT_FAILED), 1);
	world_run(&w);
	cr_expect_eq(world_count(&w, SPOOL_INCOMING), 0);
	world_is_empty(&w);
}

Test(reports, a_large_message_returns_its_header)
{
	world_reload(&w, "error_interval = 1h\nbounce_size_limit = 4\n");
	world_message(&w, "d", 1);
	cr_assert_eq(world_deliver(&w, AGENT_FAILED), 1);
	world_run(&w);
	cr_expect(reported("\nContent-Type: text/rfc822-headers\n"));
	world_is_empty(&w);
}

/* mutation: queue-send/reports/report_rcpts.c: tell_line() tells the address of
 * the reason. */
Test(reports, an_address_is_told_as_the_message_has_it)
{
	/* A joiner is no text that a log may show. */
	world_message(&w, "z\xe2\x80\x8cw@d.test", 1);
	cr_assert_eq(world_deliver(&w, AGENT_FAILED), 1);
	world_run(&w);
	cr_expect(reported("\nFinal-Recipient: utf-8; z\\x{200C}w@d.test\n"),
	    "%s", world_report(&w));
}

Test(reports, a_failure_without_a_reason_is_told_all_the_same)
{
	uint64_t inode = world_message(&w, "d", 2);
	struct world_delivery delivery;

	world_take_one(&w, &delivery);
	world_result(&w, &delivery, 0, AGENT_FAILED);
	world_done(&w, &delivery);
	world_run(&w);
	cr_assert_eq(reason_clear(&w.s.sp, SPOOL_BOUNCE, inode), 0);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
	world_run(&w);
	cr_expect(reported("\nFinal-Recipient: rfc822; r0@d0.test\n"));
	cr_expect(reported("the reason was lost"));
	world_is_empty(&w);
}

/* ---- exactly once ---- */

/* A death at step n of the end of a message; what is left then goes on, with
 * the settling of todo-proc first or last. False: there is no such step. */
static bool
die_at(unsigned n, bool settle_first)
{
	uint64_t inode = world_message(&w, "d", 2), report;
	struct world_delivery delivery;
	bool cut;

	world_take_one(&w, &delivery);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_take_one(&w, &delivery);
	world_result(&w, &delivery, 0, AGENT_FAILED);
	world_run(&w);
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
	cr_assert(reported("\nFinal-Recipient: rfc822; r1@d1.test\n"),
	    "step %u: one report", n);
	cr_assert_eq(world_clear_incoming(&w, &report), 1, "step %u", n);
	cr_assert_eq(world_count(&w, SPOOL_PREPARED), 0, "step %u", n);
	cr_assert_eq(world_count(&w, SPOOL_BOUNCE), 0, "step %u", n);
	return cut;
}

/* mutation: queue-send/message/removal.c: remove_with_reasons() removes all
 * reasons first. */
Test(reports, D36_a_death_at_any_step_makes_one_report)
{
	unsigned n, steps = 0;

	for (n = 1; die_at(n, (n & 1) != 0); n++)
		steps++;
	for (n = 1; die_at(n, (n & 1) == 0); n++)
		;
	cr_expect_geq(steps, 10, "%u", steps);
}

/* mutation: queue-send/message/record_task.c: write_both() marks first. */
Test(reports, D43_D36_the_same_while_a_thread_writes_results)
{
	unsigned n;

	world_use_threads(&w);
	for (n = 1; die_at(n, (n & 1) != 0); n++)
		;
}

/* The calls that make the report of a failure. */
static void
is_made_by(const char *want)
{
	struct world_delivery delivery;
	const char *trace;

	world_message(&w, "d", 1);
	world_take_one(&w, &delivery);
	world_result(&w, &delivery, 0, AGENT_FAILED);
	world_run(&w);
	w.s.sync.synced = w.s.sync.epoch++;
	(void)world_trace();
	world_done(&w, &delivery);
	world_run(&w);
	trace = world_trace();
	trace += strspn(trace, "a"); /* of the report */
	cr_expect_eq(strncmp(trace, want, strlen(want)), 0, "%s", trace);
}

/* After a power cut behind the line each report counts that has its number in
 * prepared/: none that was removed may be back there.
 * mutation: queue-send/reports/report_task.c: prepare_report() leaves
 * opt.strict as it is. */
Test(reports, D36_btrfs_syncs_the_name_before_the_line)
{
	w.s.sp.keeps_order = false;
	is_made_by("ffaf");
}

Test(reports, D36_a_journal_of_names_needs_one_sync_before_the_line)
{
	w.s.sp.keeps_order = true;
	is_made_by("faf");
}

static uint64_t
fail_with(enum world_call call, int error, int times)
{
	uint64_t inode = world_message(&w, "d", 2);
	struct world_delivery delivery;

	world_take_one(&w, &delivery);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_take_one(&w, &delivery);
	world_result(&w, &delivery, 0, AGENT_FAILED);
	world_run(&w);
	/* The marks are on disk: the next sync is of the report. */
	w.s.sync.synced = w.s.sync.epoch++;
	world_fail(call, error, times);
	world_done(&w, &delivery);
	world_run(&w);
	return inode;
}

/* mutations: queue-send/reports/report_task.c: make_report() goes on after an
 * error; tell_all() settles nothing after one. */
Test(reports, D36_what_the_disk_refuses_is_reported_later_and_once)
{
	const struct world_refusal *row;
	uint64_t inode, report;
	size_t i;

	for (i = 0; i < WORLD_REFUSALS; i++) {
		row = &world_refusals[i];
		inode = fail_with(row->call, row->error, 1);
		cr_expect_eq(
		    world_where(&w, inode), SPOOL_DEFERRED, "%s", row->name);
		cr_expect_eq(world_count(&w, SPOOL_PREPARED), 0,
		    "%s: nothing of it takes room", row->name);
		world_offer_again(&w, inode);
		cr_expect_eq(
		    world_where(&w, inode), SPOOL_NDIRS, "%s", row->name);
		cr_expect(reported("r1@d1.test"), "%s", row->name);
		cr_expect_eq(
		    world_clear_incoming(&w, &report), 1, "%s", row->name);
		world_is_empty(&w);
	}
}

Test(reports, D36_a_sealed_queue_keeps_the_message)
{
	uint64_t inode = world_message(&w, "d", 1), report;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/queue1/" SPOOL_SEALED, w.dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	close(fd);
	cr_assert_eq(world_deliver(&w, AGENT_FAILED), 1);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_eq(w.s.health.errors, 0);
	cr_assert_eq(unlink(path), 0);
	world_offer_again(&w, inode);
	cr_expect(reported("r0@d0.test"));
	cr_expect_eq(world_clear_incoming(&w, &report), 1);
	world_is_empty(&w);
}

/* mutation: queue-send/reports/reports.c: failed() puts -EAGAIN off. */
Test(reports, D36_a_message_that_is_being_settled_waits_for_that)
{
	uint64_t inode = world_message(&w, "d", 1), report;
	int fd = spool_open_file(&w.s.sp, SPOOL_ACTIVE, inode, O_RDONLY);

	cr_assert_eq(prepared_lock(fd), 0);
	cr_assert_eq(world_deliver(&w, AGENT_FAILED), 1);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_ACTIVE);
	close(fd);
	w.s.reports->not_before = 0;
	send_wake(&w.s);
	world_run(&w);
	cr_expect(reported("r0@d0.test"));
	cr_expect_eq(world_clear_incoming(&w, &report), 1);
	world_is_empty(&w);
}

static void
walk(void)
{
	deferred_walk(&w.s);
	send_wake(&w.s);
	world_run(&w);
}

/* A queue that gives a message away lends its reasons before the message.
 * mutation: common/spool/reason.c: reason_clear_lost() looks at no name. */
Test(reports, reasons_that_another_queue_lends_wait_for_their_message)
{
	const struct reason reason = { .dsn = "5.1.1",
		.relay = "none",
		.address = "a@d.test",
		.text = "no such user" };
	char leaf[SPOOL_PATH_MAX], other[128];

	cr_assert_eq(reason_add(&w.s.sp, SPOOL_BOUNCE, 4711, &reason), 0);
	spool_leaf(&w.s.sp, SPOOL_BOUNCE, 4711, leaf, sizeof(leaf));
	snprintf(other, sizeof(other), "%s/lent", w.dir);
	cr_assert_eq(
	    linkat(w.s.sp.dir[SPOOL_BOUNCE], leaf, AT_FDCWD, other, 0), 0);
	walk();
	cr_expect_eq(world_count(&w, SPOOL_BOUNCE), 1);
	cr_assert_eq(unlink(other), 0);
	walk();
	cr_expect_eq(world_count(&w, SPOOL_BOUNCE), 0);
}
