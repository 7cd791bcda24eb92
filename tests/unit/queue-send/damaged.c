/* The sender of a message in corrupt/ is warned, once (docs/REPORTS.md,
 * "Damaged mail"). */
#include "queue-send/reports/own.h"
#include "tests/unit/queue-send/world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue-send/backlog/backlog.h"
#include "queue-send/reports/report_task.h"
#include "spool/reason.h"

static struct world w;

static void
start(void)
{
	world_start(&w, "delay_warning_time = 4h\n");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(damaged, .init = start, .fini = end, .timeout = 60);

static uint64_t
damaged(void)
{
	const uint64_t inode = world_file(&w, "d", 2, 0);

	cr_assert_eq(
	    spool_move(&w.s.sp, SPOOL_INCOMING, SPOOL_CORRUPT, inode), 0);
	return inode;
}

static void
walk(void)
{
	w.s.walks[WALK_CORRUPT].wanted = true;
	send_wake(&w.s);
	world_run(&w);
	cr_assert_not(w.s.walks[WALK_CORRUPT].running);
	cr_assert_not(w.s.reports->warns);
	cr_assert_eq(w.s.reports->tasks, 0);
}

/* The reports that were made. */
static uint32_t
reports(void)
{
	uint64_t report;

	return world_clear_incoming(&w, &report);
}

static bool
is_marked(uint64_t inode)
{
	const struct queue_id id = world_id(&w, inode);
	int marks = reason_marks(&w.s.sp, &id);

	return marks > 0 && (marks & REASON_WARNED) != 0;
}

/* mutation: queue-send/reports/report_rcpts.c: is_of_damage() is false. */
Test(damaged, D44_a_sender_is_warned_once)
{
	const uint64_t inode = damaged();
	const struct reason late = { .dsn = "4.2.2",
		.relay = "none",
		.address = "r0@d0.test",
		.text = "mailbox full" };
	struct stat before, after;
	char leaf[SPOOL_PATH_MAX];

	cr_assert_eq(reason_add(&w.s.sp, SPOOL_DEFER, inode, &late), 0);
	cr_assert_eq(spool_set_due(&w.s.sp, inode, 7 * USEC_PER_SEC), 0);
	spool_leaf(&w.s.sp, SPOOL_DEFER, inode, leaf, sizeof(leaf));
	cr_assert_eq(fstatat(w.s.sp.dir[SPOOL_DEFER], leaf, &before, 0), 0);
	walk();
	cr_expect(world_has_report(&w, "r0@d0.test\nAction: delayed\n"));
	cr_expect(world_has_report(&w, "r1@d1.test\nAction: delayed\n"));
	cr_expect(world_has_report(&w, "\nStatus: 4.3.0\n"));
	cr_expect_not(world_has_report(&w, "mailbox full"));
	cr_expect_eq(reports(), 1);
	cr_expect(is_marked(inode));
	cr_assert_eq(fstatat(w.s.sp.dir[SPOOL_DEFER], leaf, &after, 0), 0);
	cr_expect_eq(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
	cr_expect_str_eq(world_reason(&w, SPOOL_DEFER, inode, 0),
	    "4.2.2 mailbox full", "defer/ is left alone");
	walk();
	world_again(&w);
	walk();
	cr_expect_eq(reports(), 0);
}

/* A task that was made before the mark.
 * mutation: queue-send/reports/report_task.c: tell_damage() reads no marks. */
Test(damaged, D44_a_second_task_tells_nobody)
{
	const uint64_t inode = damaged();
	const struct queue_id id = world_id(&w, inode);
	struct report_task *t = report_task_new(&w.s, &id, NULL);

	cr_assert_not_null(t);
	t->warn = t->corrupt = true;
	t->kind = REPORT_FAILURE;
	walk();
	cr_expect_eq(reports(), 1);
	cr_expect_eq(report_task_work(&t->task), 0);
	cr_expect_eq(reports(), 0);
	/* A task makes no report if an act has moved the message. */
	cr_assert_eq(
	    spool_move(&w.s.sp, SPOOL_CORRUPT, SPOOL_DELETED, inode), 0);
	cr_expect_eq(report_task_work(&t->task), -ENOENT);
	sync_task_free(&t->task);
}

/* mutation: queue-send/reports/report_task.c: tell_damage() marks nothing. */
Test(damaged, who_wants_no_warning_is_asked_once)
{
	uint64_t inode;

	w.notify = DSN_FAILURE;
	inode = damaged();
	walk();
	cr_expect_eq(reports(), 0);
	cr_expect(is_marked(inode));
}

/* mutation: queue-send/reports/corrupt.c: delay_warning_time is not looked at.
 */
Test(damaged, without_delay_warning_time_nobody_is_told)
{
	uint64_t inode;

	world_reload(&w, "");
	inode = damaged();
	walk();
	cr_expect_eq(reports(), 0);
	cr_expect_not(is_marked(inode));
}

/* mutation: queue-send/reports/corrupt.c: told_is_above() is not asked. */
Test(damaged, D44_an_address_gets_report_rate_limit)
{
	uint32_t i;

	world_reload(&w, "delay_warning_time = 4h\nreport_rate_limit = 2\n");
	for (i = 0; i < 5; i++)
		(void)damaged();
	walk();
	cr_expect_eq(reports(), 2);
	walk();
	cr_expect_eq(reports(), 0);
	/* An hour later. */
	for (i = 0; i < TOLD_PAIRS; i++)
		w.s.reports->told.pairs[i].full = 0;
	walk();
	cr_expect_eq(reports(), 2, "the next walk tells of others");
}

/* mutation: queue-send/operators/acts.c: an act out of corrupt/ wants a walk.
 */
Test(damaged, D44_an_act_out_of_corrupt_wants_no_walk)
{
	const uint64_t inode = damaged();
	uint32_t running;

	walk();
	cr_assert_eq(w.s.walks[WALK_CORRUPT].count, 1);
	w.s.walks[WALK_CORRUPT].found = 99; /* a walk would begin at 0 */
	cr_expect_eq(world_act(&w, ACT_DELETE, inode, &running), 0);
	world_run(&w);
	cr_expect_eq(w.s.walks[WALK_CORRUPT].found, 99);
	cr_expect_eq(world_where(&w, inode), SPOOL_DELETED);
	cr_expect_eq(w.s.walks[WALK_CORRUPT].count, 0);
	cr_expect_not(w.s.walks[WALK_CORRUPT].wanted);
	cr_expect_not(w.s.walks[WALK_CORRUPT].running);
}

/* A warning that is under way holds up the walk, and no other report.
 * mutation: queue-send/backlog/deferred.c: step() looks at no warning. */
Test(damaged, D44_one_warning_is_under_way)
{
	(void)damaged();
	w.s.reports->warns = true;
	w.s.walks[WALK_CORRUPT].wanted = true;
	send_wake(&w.s);
	world_run(&w);
	cr_expect(w.s.walks[WALK_CORRUPT].running);
	cr_expect_eq(reports(), 0);
	w.s.reports->warns = false;
	walk();
	cr_expect_eq(reports(), 1);
}
