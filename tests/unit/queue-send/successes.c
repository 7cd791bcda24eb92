/* Deliveries are told of, exactly once, where the sender asked for it; and
 * failures are not, where the sender asked for that (docs/REPORTS.md). */
#include "tests/unit/queue-send/world.h"

#include "queue-send/reports/reports.h"
#include "spool/reason.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

TestSuite(successes, .init = start, .fini = end, .timeout = 120);

/* The next delivery ends with this outcome. */
static void
one(enum agent_outcome outcome)
{
	struct world_delivery delivery;

	world_take_one(&w, &delivery);
	world_result(&w, &delivery, 0, outcome);
	world_done(&w, &delivery);
	world_run(&w);
}

/* mutation: queue-send/message/success.c: note() writes no line. */
Test(successes, a_delivery_is_told_of)
{
	uint64_t report;

	w.notify = DSN_SUCCESS;
	w.orcpt = "rfc822;Bob+2Bx@q.test";
	w.dsn = (struct dsn_mail){ DSN_RET_FULL, "QQ+2B1" };
	world_message(&w, "d", 1);
	one(AGENT_SENT);
	cr_expect(
	    world_has_report(&w, "\nSubject: Successful Mail Delivery Report"));
	cr_expect(world_has_report(&w, "\nOriginal-Envelope-Id: QQ+1\n"));
	cr_expect(world_has_report(
	    &w, "\nOriginal-Recipient: rfc822; Bob+x@q.test\n"));
	cr_expect(
	    world_has_report(&w, "\nFinal-Recipient: rfc822; r0@d0.test\n"));
	cr_expect(world_has_report(&w, "\nAction: delivered\nStatus: 2."));
	cr_expect_not(world_has_report(&w, "lost with its file"));
	/* RET is for failures: the message was delivered. */
	cr_expect(
	    world_has_report(&w, "\nContent-Type: text/rfc822-headers\n"));
	cr_expect_eq(world_clear_incoming(&w, &report), 1);
	world_is_empty(&w);
}

/* The next delivery, by a transport to other hosts. */
static void
one_elsewhere(bool passed_on)
{
	const int i = conf_transport_find(&w.conf, "discard");
	struct world_delivery delivery;

	cr_assert_geq(i, 0);
	world_take_one(&w, &delivery);
	w.conf.transports[i].kind = AGENT_SMTP;
	if (passed_on)
		world_send(w.agent,
		    &(struct msg){ .type = MSG_PASSED_ON,
			.u.PASSED_ON = { delivery.number, delivery.rcpt[0] } });
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_run(&w);
	w.conf.transports[i].kind = AGENT_DISCARD;
	world_done(&w, &delivery);
	world_run(&w);
}

Test(successes, what_another_host_took_is_relayed)
{
	uint64_t report;

	w.notify = DSN_SUCCESS | DSN_FAILURE;
	world_message(&w, "d", 1);
	one_elsewhere(false);
	cr_expect(world_has_report(&w, "\nAction: relayed\n"));
	cr_expect_eq(world_clear_incoming(&w, &report), 1);
	world_is_empty(&w);
}

/* mutation: queue-send/agents/delivery.c: begin_report() forgets that it was.
 */
Test(successes, N20_a_server_that_has_the_wishes_tells_by_itself)
{
	uint64_t report;

	w.notify = DSN_SUCCESS | DSN_FAILURE;
	world_message(&w, "d", 1);
	one_elsewhere(true);
	cr_expect_eq(world_clear_incoming(&w, &report), 0);
	world_is_empty(&w);
}

/* mutation: queue-send/message/success.c: success_is_wanted() looks at no wish.
 */
Test(successes, nobody_else_is_told_of_a_delivery)
{
	static const struct {
		const char *name, *sender;
		uint8_t notify;
		const char *orcpt;
	} rows[] = {
		{ "not given", NULL, 0, NULL },
		{ "ORCPT alone", NULL, 0, "rfc822;x" },
		{ "failures", NULL, DSN_FAILURE | DSN_DELAY, NULL },
		{ "never", NULL, DSN_NEVER, NULL },
		{ "the null sender", "", DSN_SUCCESS, NULL },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		w.sender = rows[i].sender;
		w.notify = rows[i].notify;
		w.orcpt = rows[i].orcpt;
		world_message(&w, "d", 1);
		one(AGENT_SENT);
		cr_expect_eq(
		    world_count(&w, SPOOL_INCOMING), 0, "%s", rows[i].name);
		world_is_empty(&w);
	}
}

/* mutation: queue-send/reports/report_rcpts.c: is_meant() takes each failure.
 */
Test(successes, a_failure_is_told_of_as_asked)
{
	static const struct {
		uint8_t notify, ret;
		uint32_t want;
		const char *type;
	} rows[] = {
		{ 0, 0, 1, "message/rfc822" },
		{ 0, DSN_RET_FULL, 1, "message/rfc822" },
		{ 0, DSN_RET_HDRS, 1, "text/rfc822-headers" },
		{ DSN_FAILURE, DSN_RET_HDRS, 1, "text/rfc822-headers" },
		{ DSN_NEVER, 0, 0, NULL },
		{ DSN_SUCCESS, 0, 0, NULL },
		{ DSN_DELAY, DSN_RET_FULL, 0, NULL },
	};
	char field[64];
	uint64_t report;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		w.notify = rows[i].notify;
		w.dsn.ret = rows[i].ret;
		world_message(&w, "d", 1);
		one(AGENT_FAILED);
		if (rows[i].want > 0) {
			snprintf(field, sizeof(field), "\nContent-Type: %s\n",
			    rows[i].type);
			cr_expect(world_has_report(&w, field), "%zu", i);
		}
		cr_expect_eq(
		    world_clear_incoming(&w, &report), rows[i].want, "%zu", i);
		world_is_empty(&w);
	}
}

Test(successes, RET_lifts_no_limit)
{
	world_reload(&w, "error_interval = 1h\nbounce_size_limit = 4\n");
	w.dsn.ret = DSN_RET_FULL;
	world_message(&w, "d", 1);
	one(AGENT_FAILED);
	cr_expect(
	    world_has_report(&w, "\nContent-Type: text/rfc822-headers\n"));
}

Test(successes, one_report_of_failures_and_deliveries)
{
	uint64_t report;

	w.notify = DSN_SUCCESS | DSN_FAILURE;
	world_message(&w, "d", 3);
	one(AGENT_SENT);
	one(AGENT_FAILED);
	one(AGENT_SENT);
	cr_expect(world_has_report(&w, "\nSubject: Undelivered Mail "));
	cr_expect(world_has_report(&w, "Others below have it"));
	cr_expect(world_has_report(
	    &w, "rfc822; r0@d0.test\nAction: delivered\nStatus: 2."));
	cr_expect(world_has_report(
	    &w, "rfc822; r1@d1.test\nAction: failed\nStatus: 5."));
	cr_expect(world_has_report(
	    &w, "rfc822; r2@d2.test\nAction: delivered\nStatus: 2."));
	cr_expect_eq(world_clear_incoming(&w, &report), 1);
	world_is_empty(&w);
}

Test(successes, each_attempt_tells_of_its_own)
{
	uint64_t inode, report;

	w.notify = DSN_SUCCESS;
	inode = world_message(&w, "d", 2);
	one(AGENT_SENT);
	one(AGENT_DEFERRED);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect(world_has_report(&w, "r0@d0.test"));
	cr_assert_eq(world_clear_incoming(&w, &report), 1);
	world_offer_again(&w, inode);
	one(AGENT_DEFERRED);
	cr_expect_eq(world_clear_incoming(&w, &report), 0);
	world_offer_again(&w, inode);
	one(AGENT_SENT);
	cr_expect(world_has_report(&w, "r1@d1.test"));
	cr_expect_not(world_has_report(&w, "r0@d0.test"));
	cr_assert_eq(world_clear_incoming(&w, &report), 1);
	world_is_empty(&w);
}

/* ---- marks and lines ---- */

static void
set_mark(uint64_t inode, uint32_t index, enum rcpt_mark mark)
{
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct queue_file file;
	int fd = spool_open_file(&w.s.sp, SPOOL_ACTIVE, inode, O_RDWR);

	cr_assert_eq(queue_file_read(fd, &file), 0);
	queue_rcpt_begin(&cursor, &file);
	while (queue_rcpt_next(&cursor, fd, &rcpt) > 0)
		if (rcpt.index == index)
			queue_file_mark(&spool_sys_real, fd, rcpt.offset, mark);
	close(fd);
}

/* An expansion marks its recipient before it says so. */
Test(successes, the_mark_of_an_expansion_says_what_is_told)
{
	static const struct {
		enum rcpt_mark mark;
		uint32_t want;
		const char *action;
	} rows[] = {
		{ RCPT_EXPANDED, 1, "\nAction: expanded\n" },
		{ RCPT_PASSED, 0, NULL },
		{ RCPT_DONE, 1, "\nAction: delivered\n" },
	};
	uint64_t inode, report;
	size_t i;

	w.notify = DSN_SUCCESS;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		inode = world_message(&w, "d", 1);
		set_mark(inode, 0, rows[i].mark);
		one(AGENT_SENT);
		if (rows[i].want > 0)
			cr_expect(
			    world_has_report(&w, rows[i].action), "%zu", i);
		cr_expect_eq(
		    world_clear_incoming(&w, &report), rows[i].want, "%zu", i);
		world_is_empty(&w);
	}
}

/* mutation: queue-send/message/success.c: mark_with_wishes() marks RCPT_DONE.
 */
Test(successes, a_line_that_is_lost_leaves_the_action)
{
	uint64_t inode, report;

	w.notify = DSN_SUCCESS;
	inode = world_message(&w, "d", 1);
	world_fail(CALL_WRITE, ENOSPC, 1);
	one_elsewhere(false);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS, "not sent again");
	cr_expect(world_has_report(&w, "\nAction: relayed\nStatus: 2.0.0\n"));
	cr_expect(world_has_report(&w, "the answer was lost with its file"));
	cr_expect_eq(world_clear_incoming(&w, &report), 1);
	world_is_empty(&w);
}

/* ---- exactly once ---- */

/* The answer of an expansion that has marked its recipient dies with the
 * scheduler; the sender has had a report before.
 * mutation: queue-send/reports/report_rcpts.c: note_all_lost() writes no line.
 */
Test(successes, D39_an_expansion_whose_answer_is_lost_is_told_of_once)
{
	struct world_delivery delivery;
	uint64_t inode, report;

	w.notify = DSN_SUCCESS;
	inode = world_message(&w, "d", 3);
	one(AGENT_SENT);
	one(AGENT_DEFERRED);
	one(AGENT_DEFERRED);
	cr_assert_eq(world_clear_incoming(&w, &report), 1);
	world_offer_again(&w, inode);
	world_take_one(&w, &delivery);
	set_mark(inode, 1, RCPT_EXPANDED);
	world_again(&w);
	world_offer_again(&w, inode);
	one(AGENT_DEFERRED);
	cr_expect(world_has_report(
	    &w, "\nFinal-Recipient: rfc822; r1@d1.test\nAction: expanded\n"));
	cr_expect_not(world_has_report(&w, "r0@d0.test"));
	cr_assert_eq(world_clear_incoming(&w, &report), 1);
	world_offer_again(&w, inode);
	one(AGENT_SENT);
	cr_expect_not(world_has_report(&w, "r1@d1.test"));
	cr_expect(world_has_report(&w, "r2@d2.test"));
	cr_assert_eq(world_clear_incoming(&w, &report), 1);
	world_is_empty(&w);
}

/* A death at step n of the end of a message, the delivery itself included. A
 * delivery whose mark was not written is done again, and told of once. */
static bool
die_at(unsigned n, bool settle_first, bool after_mark)
{
	uint64_t inode, report;
	struct world_delivery delivery;
	bool cut;

	w.notify = DSN_SUCCESS;
	inode = world_message(&w, "d", 1);
	world_take_one(&w, &delivery);
	if (!after_mark)
		world_cut(n);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_run(&w);
	if (after_mark)
		world_cut(n);
	world_done(&w, &delivery);
	world_run(&w);
	cut = world_was_cut();
	world_again(&w);
	if (settle_first)
		world_settle(&w);
	world_offer_again(&w, inode);
	(void)world_deliver(&w, AGENT_SENT);
	world_settle(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_NDIRS, "step %u", n);
	cr_assert(world_has_report(&w, "\nFinal-Recipient: rfc822; r0@d0.test"),
	    "step %u: one report", n);
	cr_assert_eq(world_clear_incoming(&w, &report), 1, "step %u", n);
	cr_assert_eq(world_count(&w, SPOOL_PREPARED), 0, "step %u", n);
	cr_assert_eq(world_count(&w, SPOOL_BOUNCE), 0, "step %u", n);
	return cut;
}

/* mutation: queue-send/message/recover.c: read_marks() counts no delivery to
 * tell.
 */
Test(successes, D39_a_death_at_any_step_makes_one_report)
{
	unsigned n, steps = 0;

	for (n = 1; die_at(n, (n & 1) != 0, true); n++)
		steps++;
	for (n = 1; die_at(n, (n & 1) == 0, true); n++)
		;
	cr_expect_geq(steps, 8, "%u", steps);
	for (n = 1; die_at(n, (n & 1) != 0, false); n++)
		;
	for (n = 1; die_at(n, (n & 1) == 0, false); n++)
		;
}

/* mutation: queue-send/message/success.c: the mark is written before the line.
 */
Test(successes, D43_D39_the_same_while_a_thread_writes_results)
{
	unsigned n;

	world_use_threads(&w);
	for (n = 1; die_at(n, (n & 1) != 0, false); n++)
		;
}

Test(successes, D39_what_the_disk_refuses_is_told_later_and_once)
{
	const struct world_refusal *row;
	struct world_delivery delivery;
	uint64_t inode, report;
	size_t i;

	w.notify = DSN_SUCCESS;
	for (i = 0; i < WORLD_REFUSALS; i++) {
		row = &world_refusals[i];
		inode = world_message(&w, "d", 1);
		world_take_one(&w, &delivery);
		world_result(&w, &delivery, 0, AGENT_SENT);
		world_run(&w);
		w.s.sync.synced = w.s.sync.epoch++;
		world_fail(row->call, row->error, 1);
		world_done(&w, &delivery);
		world_run(&w);
		cr_expect_eq(
		    world_where(&w, inode), SPOOL_DEFERRED, "%s", row->name);
		world_offer_again(&w, inode);
		cr_expect_eq(
		    world_where(&w, inode), SPOOL_NDIRS, "%s", row->name);
		cr_expect(world_has_report(&w, "r0@d0.test"), "%s", row->name);
		cr_expect_eq(
		    world_clear_incoming(&w, &report), 1, "%s", row->name);
		world_is_empty(&w);
	}
}

/* To agents that reach other hosts, where something was asked for. */
Test(successes, wishes_go_to_the_agent_of_another_host)
{
	struct world_delivery delivery;

	world_link_smtp(&w);
	world_message(&w, "u@smtp.test", 1);
	world_take_one(&w, &delivery);
	cr_expect_eq(w.wishes.number, 0, "nothing was asked for");
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	w.notify = DSN_SUCCESS;
	w.orcpt = "rfc822;Bob+2Bx@q.test";
	w.dsn = (struct dsn_mail){ DSN_RET_FULL, "QQ+2B1" };
	world_message(&w, "u@smtp.test", 1);
	world_take_one(&w, &delivery);
	cr_expect_eq(w.wishes.number, delivery.number);
	cr_expect_eq(w.wishes.notify, DSN_SUCCESS);
	cr_expect_eq(w.wishes.ret, DSN_RET_FULL);
	cr_expect_str_eq(w.wishes.envid, "QQ+2B1");
	cr_expect_str_eq(w.wishes.orcpt, "rfc822;Bob+2Bx@q.test");
	world_result(&w, &delivery, 0, AGENT_FAILED);
	world_done(&w, &delivery);
	world_run(&w);
}

static off_t
size_of_reasons(uint64_t inode)
{
	struct stat st;
	int fd = reason_open(&w.s.sp, SPOOL_BOUNCE, inode);

	cr_assert_geq(fd, 0);
	cr_assert_eq(fstat(fd, &st), 0);
	close(fd);
	return st.st_size;
}

/* mutation: queue-send/message/success.c: note() writes at each try. */
Test(successes, D4_a_mark_that_is_tried_again_has_one_line)
{
	uint64_t inode;
	off_t size;

	w.notify = DSN_SUCCESS;
	inode = world_message(&w, "d", 2);
	world_fail(CALL_PWRITE, EIO, 0);
	one(AGENT_SENT);
	cr_assert_eq(w.s.counters.delivered, 0);
	size = size_of_reasons(inode);
	world_fail(CALL_NONE, 0, 0);
	w.s.health.probe_at = w.s.record_at = 0;
	send_wake(&w.s);
	world_run(&w);
	cr_expect_eq(w.s.counters.delivered, 1);
	cr_expect_eq(size_of_reasons(inode), size);
}
