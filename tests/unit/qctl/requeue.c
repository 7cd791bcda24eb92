/* requeue --failed, cut at every call. */
#include "cut_queue.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "qctl/act/actor.h"
#include "spool/prepared.h"
#include "spool/reason.h"

static struct cut_queue q;

static void
start(void)
{
	cut_queue_open(&q);
}

static void
end(void)
{
	cut_queue_close(&q);
}

TestSuite(requeue, .init = start, .fini = end);

/* On hold: one has it, one failed, one is pending; the sender, who had asked
 * for both, was told of the first two. */
static struct queue_id
told_message(bool warned)
{
	const struct queue_id id =
	    cut_queue_put(&q, 3, DSN_SUCCESS | DSN_FAILURE);

	cut_queue_marks(&q, SPOOL_INCOMING, id.inode, "DF.");
	cr_assert_eq(
	    spool_move(&q.sp, SPOOL_INCOMING, SPOOL_HOLD, id.inode), 0);
	cut_queue_add_reason(&q, SPOOL_BOUNCE, id.inode, 0);
	cut_queue_add_reason(&q, SPOOL_BOUNCE, id.inode, 1);
	cr_assert_eq(reason_add_report(&q.sp, id.inode, USEC_PER_SEC, "X"), 0);
	if (warned)
		cr_assert_eq(
		    reason_add_warning(&q.sp, &id, USEC_PER_SEC, "X"), 0);
	return id;
}

/* As queue-send asks before it makes a report: a delivery without a line gets
 * one, and lines behind the last report are told. */
static void
nothing_told_is_untold(const struct queue_id *id, unsigned nth)
{
	uint32_t reports = 0;

	cr_assert_eq(reason_count_reports(&q.sp, id->inode, &reports), 0);
	cr_expect_gt(reports, 0, "call %u", nth);
	cr_expect_gt(
	    cut_queue_lines(&q, id->inode, 0, 0), 0, "call %u: its line", nth);
	cr_expect_eq(cut_queue_lines(&q, id->inode, 0, reports), 0,
	    "call %u: told again", nth);
	cr_expect_eq(cut_queue_lines(&q, id->inode, 1, reports), 0,
	    "call %u: told again", nth);
}

static bool
is_warned(const struct queue_id *id)
{
	int marks = reason_marks(&q.sp, id);

	return marks > 0 && ((unsigned)marks & REASON_WARNED) != 0;
}

Test(requeue, P1_death_at_every_call_repeats_no_notice)
{
	unsigned nth, warned;
	bool was_cut;

	for (warned = 0; warned < 2; warned++)
		for (nth = 1, was_cut = true; was_cut; nth++) {
			const struct queue_id id = told_message(warned == 1);

			cut_queue_at(nth);
			(void)requeue_forget(&q.sp, &id);
			was_cut = cut_queue_was_cut();
			cut_queue_at(0);
			nothing_told_is_untold(&id, nth);
			cr_expect_eq(is_warned(&id), warned == 1);
			/* The same command again. */
			cr_expect_eq(requeue_forget(&q.sp, &id), 0);
			cr_expect_str_eq(
			    cut_queue_marks(&q, SPOOL_HOLD, id.inode, NULL),
			    "D..");
			nothing_told_is_untold(&id, nth);
			cr_expect_eq(is_warned(&id), warned == 1);
			cr_assert_lt(nth, 40);
		}
}

Test(requeue, another_message_of_the_inode_is_left_alone)
{
	const struct queue_id id = told_message(false);
	struct queue_id gone = id;

	gone.nonce++;
	cr_expect_eq(requeue_forget(&q.sp, &gone), -ENOENT);
	cr_expect_str_eq(
	    cut_queue_marks(&q, SPOOL_HOLD, id.inode, NULL), "DF.");
	cr_expect_gt(cut_queue_lines(&q, id.inode, 1, 0), 0);
}

Test(requeue, what_failed_is_forgotten)
{
	const struct queue_id id = told_message(false);

	cr_expect_eq(requeue_forget(&q.sp, &id), 0);
	cr_expect_str_eq(
	    cut_queue_marks(&q, SPOOL_HOLD, id.inode, NULL), "D..");
	cr_expect_eq(cut_queue_lines(&q, id.inode, 1, 0), 0);
}

/* Of two deliveries a report told of the first: one that had no room for more,
 * or one of a VERP message.
 * mutations: qctl/act/requeue.c: find_last_lines() looks for no part;
 * note_told() takes each report for one of all. */
Test(requeue, P1_a_delivery_that_no_report_told_is_told_later)
{
	struct queue_id id;
	int i;

	for (i = 0; i < 2; i++) {
		id = cut_queue_put(&q, 3, DSN_SUCCESS | DSN_FAILURE);
		cut_queue_marks(&q, SPOOL_INCOMING, id.inode, "DDF");
		cr_assert_eq(
		    spool_move(&q.sp, SPOOL_INCOMING, SPOOL_HOLD, id.inode), 0);
		cut_queue_add_reason(&q, SPOOL_BOUNCE, id.inode, 0);
		cut_queue_add_reason(&q, SPOOL_BOUNCE, id.inode, 2);
		cut_queue_add_reason(&q, SPOOL_BOUNCE, id.inode, 1);
		cr_assert_eq(i == 0 ? reason_add_part_report(
					  &q.sp, id.inode, USEC_PER_SEC, "X", 2)
				    : reason_add_rcpt_report(&q.sp, id.inode,
					  USEC_PER_SEC, "X", 0),
		    0);
		cr_expect_eq(requeue_forget(&q.sp, &id), 0);
		cr_expect_eq(cut_queue_lines(&q, id.inode, 0, 0), 1, "%d", i);
		cr_expect_eq(cut_queue_lines(&q, id.inode, 0, 1), 0, "%d", i);
		cr_expect_eq(cut_queue_lines(&q, id.inode, 1, 1), 1, "%d", i);
		cr_expect_eq(cut_queue_lines(&q, id.inode, 2, 0), 0, "%d", i);
	}
}

Test(requeue, nothing_is_left_where_nothing_was_told)
{
	const struct queue_id id = cut_queue_put(&q, 2, DSN_FAILURE);

	cut_queue_marks(&q, SPOOL_INCOMING, id.inode, "F.");
	cr_assert_eq(
	    spool_move(&q.sp, SPOOL_INCOMING, SPOOL_HOLD, id.inode), 0);
	cut_queue_add_reason(&q, SPOOL_BOUNCE, id.inode, 0);
	cr_expect_eq(requeue_forget(&q.sp, &id), 0);
	cr_expect_eq(reason_marks(&q.sp, &id), -ENOENT);
}

/* Its line would count for nothing any more. */
Test(requeue, a_report_that_was_made_leaves_first)
{
	const struct queue_id id = cut_queue_put(&q, 2, DSN_FAILURE);
	const struct queue_id report = cut_queue_put(&q, 1, 0);
	const struct prepared p = { .parent = id, .index = PREPARED_REPORT };
	char name[PREPARED_NAME_MAX], leaf[SPOOL_PATH_MAX];

	cut_queue_marks(&q, SPOOL_INCOMING, id.inode, "F.");
	cr_assert_eq(
	    spool_move(&q.sp, SPOOL_INCOMING, SPOOL_HOLD, id.inode), 0);
	cut_queue_add_reason(&q, SPOOL_BOUNCE, id.inode, 0);
	cr_assert_eq(reason_add_report(&q.sp, id.inode, USEC_PER_SEC, "X"), 0);
	prepared_name(&p, name);
	spool_leaf(&q.sp, SPOOL_INCOMING, report.inode, leaf, sizeof(leaf));
	cr_assert_eq(renameat(q.sp.dir[SPOOL_INCOMING], leaf,
			 q.sp.dir[SPOOL_PREPARED], name),
	    0);
	cr_expect_eq(requeue_forget(&q.sp, &id), 0);
	cr_expect(spool_has(&q.sp, report.inode));
}

/* ---- the order of calls ---- */

/* m: a mark; f: a sync; r: the reasons are replaced. */
static char calls[32];

static void
note(char letter)
{
	const size_t n = strlen(calls);

	cr_assert_lt(n + 1, sizeof(calls));
	calls[n] = letter;
}

static ssize_t
pwrite_noted(int fd, const void *data, size_t len, off_t off)
{
	note('m');
	return spool_sys_real.pwrite(fd, data, len, off);
}

static int
fsync_noted(int fd)
{
	note('f');
	return spool_sys_real.fsync(fd);
}

static int
replaceat_noted(int dir, const char *old, const char *name)
{
	note('r');
	return spool_sys_real.replaceat(dir, old, name);
}

/* After a power cut a failure whose reasons have gone would be reported once
 * more.
 * mutations: qctl/act/requeue.c: take_marks_back() does not sync;
 * requeue_forget() forgets the reasons first. */
Test(requeue, D36_marks_are_on_disk_before_the_reasons_go)
{
	const struct queue_id id = told_message(false);
	const struct spool_sys *before = q.sp.sys;
	struct spool_sys sys = spool_sys_real;

	sys.pwrite = pwrite_noted;
	sys.fsync = fsync_noted;
	sys.replaceat = replaceat_noted;
	q.sp.sys = &sys;
	cr_expect_eq(requeue_forget(&q.sp, &id), 0);
	q.sp.sys = before;
	cr_expect_str_eq(calls, "mffr", "%s", calls);
}

/* mutation: qctl/act/requeue.c: requeue_forget() takes no lock. */
Test(requeue, D38_a_message_that_another_process_reports_is_left_alone)
{
	const struct queue_id id = told_message(false);
	int fd = spool_open_file(&q.sp, SPOOL_HOLD, id.inode, O_RDONLY);

	cr_assert_geq(fd, 0);
	cr_assert_eq(prepared_lock(fd), 0);
	cr_expect_eq(requeue_forget(&q.sp, &id), -EAGAIN);
	cr_expect_str_eq(
	    cut_queue_marks(&q, SPOOL_HOLD, id.inode, NULL), "DF.");
	close(fd);
	cr_expect_eq(requeue_forget(&q.sp, &id), 0);
}
