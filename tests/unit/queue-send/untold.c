/* Reports that are not made now, and of attempts that something else ends. */
#include "queue-send/reports/own.h"
#include "tests/unit/queue-send/world.h"

#include "base/io.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/operators.h"
#include "queue-send/message/path.h"
#include "spool/prepared.h"
#include "spool/reason.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct world w;

static void
start(void)
{
	world_start(&w, "error_interval = 1h\nreport_rate_limit = 2\n");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(untold, .init = start, .fini = end, .timeout = 120);

static void
one(enum agent_outcome outcome)
{
	struct world_delivery delivery;

	world_take_one(&w, &delivery);
	world_result(&w, &delivery, 0, outcome);
	world_done(&w, &delivery);
	world_run(&w);
}

static uint64_t
fail_all(const char *format, uint32_t n)
{
	uint64_t inode = world_message(&w, format, n);

	cr_assert_eq(world_deliver(&w, AGENT_FAILED), n);
	world_run(&w);
	return inode;
}

/* ---- the rate ---- */

/* mutation: queue-send/state/told.c: told_wait() always answers 0. */
Test(untold, C9_reports_above_the_rate_go_later)
{
	uint64_t late, report;
	struct due *d;

	fail_all("a", 1);
	fail_all("b", 1);
	cr_expect_eq(world_clear_incoming(&w, &report), 2);
	late = fail_all("c", 1);
	cr_expect_eq(world_count(&w, SPOOL_INCOMING), 0);
	cr_assert_eq(world_where(&w, late), SPOOL_DEFERRED);
	d = due_find(&w.s.due, late);
	cr_assert_not_null(d);
	cr_expect_gt(d->at_mono, w.s.now + TOLD_PERIOD / 2 - 10 * USEC_PER_SEC);
	cr_expect_leq(d->at_mono, w.s.now + TOLD_PERIOD / 2 + USEC_PER_SEC);
	/* Others get theirs. */
	w.sender = "other@here.test";
	fail_all("d", 1);
	cr_expect_eq(world_clear_incoming(&w, &report), 1);
	/* An hour later. */
	memset(w.s.reports->told.pairs, 0, sizeof(w.s.reports->told.pairs));
	world_offer_again(&w, late);
	cr_expect(world_has_report(&w, "r0@c0.test"));
	cr_expect_eq(world_clear_incoming(&w, &report), 1);
	world_is_empty(&w);
}

/* mutation: queue-send/reports/reports.c: rate_of() counts by the uid. */
Test(untold, X28_subordinate_uids_share_the_rate_of_their_owner)
{
	uint64_t report;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/subuid", w.dir);
	f = fopen(path, "we");
	cr_assert_not_null(f);
	fprintf(f, "1000:100000:65536\n");
	fclose(f);
	w.s.subuid_file = path;
	world_reload(&w, "error_interval = 1h\nreport_rate_limit = 2\n");
	for (w.uid = 100000; w.uid < 100004; w.uid++)
		fail_all("a", 1);
	w.uid = 1000;
	fail_all("b", 1);
	cr_expect_eq(world_clear_incoming(&w, &report), 2);
	w.uid = 165536;
	fail_all("c", 1);
	cr_expect_eq(world_clear_incoming(&w, &report), 1, "another owner");
}

Test(untold, C9_failures_that_wait_are_told_together)
{
	uint64_t inode, report;

	fail_all("a", 1);
	fail_all("b", 1);
	inode = world_message(&w, "c", 2);
	one(AGENT_FAILED);
	one(AGENT_DEFERRED);
	cr_expect_eq(world_clear_incoming(&w, &report), 2);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	world_reload(&w, "error_interval = 1h\nreport_rate_limit = 0\n");
	world_offer_again(&w, inode);
	one(AGENT_FAILED);
	cr_expect(world_has_report(&w, "r0@c0.test"));
	cr_expect(world_has_report(&w, "r1@c1.test"));
	cr_expect_eq(world_clear_incoming(&w, &report), 1);
	world_is_empty(&w);
}

static usec_t
due_in(uint64_t inode)
{
	const struct due *d = due_find(&w.s.due, inode);

	cr_assert_not_null(d);
	return d->at_mono - w.s.now;
}

/* Its failure was told; the address has had its reports since then. */
Test(untold, C9_a_message_with_nothing_to_tell_does_not_wait)
{
	const uint64_t inode = world_message(&w, "c", 2);
	uint64_t report, never;

	one(AGENT_FAILED);
	one(AGENT_DEFERRED);
	fail_all("a", 1);
	cr_expect_eq(world_clear_incoming(&w, &report), 2);
	world_offer_again(&w, inode);
	one(AGENT_DEFERRED);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_leq(due_in(inode), w.s.retry.maximal);
	cr_expect_lt(due_in(inode), TOLD_PERIOD / 2 - 10 * USEC_PER_SEC);
	cr_expect_eq(world_count(&w, SPOOL_INCOMING), 0);
	/* Nor does one whose sender wants no report; it goes. */
	w.notify = DSN_NEVER;
	never = fail_all("d", 1);
	cr_expect_eq(world_where(&w, never), SPOOL_NDIRS);
	/* The last recipient of the first one, too. */
	world_offer_again(&w, inode);
	one(AGENT_SENT);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_expect_eq(world_count(&w, SPOOL_INCOMING), 0);
}

/* ---- a lock, and what cannot be read ---- */

/* mutation: queue-send/reports/reports.c: is_locked() has no end. */
Test(untold, D38_a_lock_that_stays_holds_up_one_report_for_a_while)
{
	uint64_t inode = world_message(&w, "d", 1), report;
	int i, fd = spool_open_file(&w.s.sp, SPOOL_ACTIVE, inode, O_RDONLY);

	cr_assert_eq(prepared_lock(fd), 0);
	cr_assert_eq(world_deliver(&w, AGENT_FAILED), 1);
	for (i = 0; i < 200; i++) {
		w.s.reports->not_before = 0;
		send_wake(&w.s);
		world_run(&w);
	}
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	close(fd);
	world_offer_again(&w, inode);
	cr_expect(world_has_report(&w, "r0@d0.test"));
	cr_expect_eq(world_clear_incoming(&w, &report), 1);
	world_is_empty(&w);
}

/* Its reasons are no file, as a damaged file system shows them. */
static uint64_t
fail_without_reasons(int64_t age_s)
{
	uint64_t inode = world_file(&w, "d", 2, age_s);
	char leaf[SPOOL_PATH_MAX];

	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	one(AGENT_FAILED);
	spool_leaf(&w.s.sp, SPOOL_BOUNCE, inode, leaf, sizeof(leaf));
	cr_assert_eq(unlinkat(w.s.sp.dir[SPOOL_BOUNCE], leaf, 0), 0);
	cr_assert_eq(mkdirat(w.s.sp.dir[SPOOL_BOUNCE], leaf, 0700), 0);
	one(AGENT_SENT);
	world_run(&w);
	return inode;
}

static void
mend_reasons(uint64_t inode)
{
	char leaf[SPOOL_PATH_MAX];

	spool_leaf(&w.s.sp, SPOOL_BOUNCE, inode, leaf, sizeof(leaf));
	cr_assert_eq(unlinkat(w.s.sp.dir[SPOOL_BOUNCE], leaf, AT_REMOVEDIR), 0);
}

/* mutation: queue-send/reports/report_task.c: beside_message() changes no
 * error. */
Test(untold, D38_what_is_wrong_with_reasons_is_no_damage_of_the_message)
{
	uint64_t inode = fail_without_reasons(0), report;

	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	mend_reasons(inode);
	world_offer_again(&w, inode);
	cr_expect(world_has_report(&w, "the reason was lost"));
	cr_expect_eq(world_clear_incoming(&w, &report), 1);
	world_is_empty(&w);
}

/* mutation: queue-send/reports/reports.c: not_made() asks for no age. */
Test(untold, D38_what_can_never_be_reported_is_kept_where_it_is_found)
{
	uint64_t inode;

	inode = fail_without_reasons(5 * 86400 + 7200);
	cr_expect_eq(
	    world_where(&w, inode), SPOOL_DEFERRED, "an hour after the start");
	w.s.expire_after = 0;
	world_offer_again(&w, inode);
	cr_expect_eq(world_where(&w, inode), SPOOL_CORRUPT);
	cr_expect_eq(world_count(&w, SPOOL_INCOMING), 0);
	mend_reasons(inode);
}

/* mutation: queue-send/walks/walks.c: age_is_known() asks for no age. */
Test(untold, D38_what_todo_proc_can_never_read_is_kept_where_it_is_found)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_NOW },
		{ .tv_nsec = UTIME_NOW } };
	uint64_t inode = world_message(&w, "d", 1);
	char leaf[SPOOL_PATH_MAX];
	struct msg msg = { .type = MSG_GONE };
	int i;

	one(AGENT_DEFERRED);
	w.s.expire_after = 0;
	msg.u.GONE.inode = inode;
	msg.u.GONE.error = -EIO;
	spool_leaf(&w.s.sp, SPOOL_DEFERRED, inode, leaf, sizeof(leaf));
	for (i = 0; i < 2; i++) {
		deferred_flush(&w.s);
		send_wake(&w.s);
		world_run(&w);
		world_send(w.todo, &msg);
		world_run(&w);
		cr_expect_eq(world_where(&w, inode),
		    i == 0 ? SPOOL_DEFERRED : SPOOL_CORRUPT);
		times[1] =
		    (struct timespec){ .tv_sec = time(NULL) - 6 * 86400 };
		if (i == 0)
			cr_assert_eq(utimensat(w.s.sp.dir[SPOOL_DEFERRED], leaf,
					 times, 0),
			    0);
	}
	cr_expect_null(due_find(&w.s.due, inode));
}

/* ---- attempts that an operator ends ---- */

static int
act(enum spool_act what, uint64_t inode)
{
	uint32_t running;

	return world_act(&w, what, inode, &running);
}

/* mutation: queue-send/message/leave.c: FATE_HELD and FATE_DELETED tell
 * nothing.
 */
Test(untold, D38_failures_before_an_act_are_told)
{
	static const struct {
		enum spool_act act;
		enum spool_dir to;
		uint32_t reports;
	} rows[] = {
		{ ACT_HOLD, SPOOL_HOLD, 1 },
		{ ACT_DELETE, SPOOL_DELETED, 1 },
		{ ACT_REQUEUE, SPOOL_DEFERRED, 0 },
	};
	struct world_delivery delivery;
	uint64_t inode, report;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		world_reload(&w, "report_rate_limit = 0\n");
		inode = world_message(&w, "d", 2);
		one(AGENT_FAILED);
		world_take_one(&w, &delivery);
		cr_assert_eq(act(rows[i].act, inode), 0);
		world_result(&w, &delivery, 0, AGENT_DEFERRED);
		world_done(&w, &delivery);
		world_run(&w);
		cr_expect_eq(world_where(&w, inode), rows[i].to, "row %zu", i);
		cr_expect_eq(world_clear_incoming(&w, &report), rows[i].reports,
		    "row %zu", i);
	}
	/* That of the requeued message is told by its next attempt. */
	world_offer_again(&w, inode);
	one(AGENT_SENT);
	cr_expect(world_has_report(&w, "r0@d0.test"));
	cr_expect_eq(world_clear_incoming(&w, &report), 1);
}
