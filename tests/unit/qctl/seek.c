/* Messages that were gone when a command acted. */
#include "tests/unit/files.h"

#include "cut_queue.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "qctl/act/act.h"

static struct cut_queue q;
static struct task t;
static struct worker_totals totals;

static void
start(void)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };

	cut_queue_open(&q);
	cr_assert_eq(spool_create(q.base, 2, 3, &owner), 0);
	t = (struct task){
		.options = { .program = "qctl",
		    .verb = VERB_ACT,
		    .act = ACT_HOLD },
		.base = q.base,
		.queues = { 1, 2 },
		.nqueues = 2,
		.silence_limit = 15 * USEC_PER_SEC,
	};
	totals = (struct worker_totals){ 0 };
}

static void
end(void)
{
	free(t.targets);
	free(t.gone);
	cut_queue_close(&q);
}

TestSuite(seek, .init = start, .fini = end);

/* As the process that acts says it. */
static void
say_gone(const struct queue_id *id)
{
	const struct target gone = {
		.id = *id, .queue = 1, .dir = SPOOL_DEFERRED
	};

	seek_take_row(1, &gone, sizeof(gone), &t);
}

/* mutation: qctl/act/seek.c: seek_one() tells of no file. */
Test(seek, A14_a_message_that_went_to_another_queue_is_a_target_there)
{
	const struct queue_id here = cut_queue_put(&q, 1, 0),
			      there = cut_queue_put(&q, 1, 0);
	struct queue_id gone = there;
	const struct tally tally = { .done = 5 };
	struct spool other;

	cr_assert_eq(spool_open(&other, &spool_sys_real, q.base, 2), 0);
	cr_assert_eq(
	    spool_hand_over(&q.sp, &other, SPOOL_INCOMING, there.inode), 0);
	spool_close(&other);
	gone.nonce++; /* another message of that inode */
	say_gone(&gone);
	say_gone(&there);
	say_gone(&here);
	seek_take_row(1, &tally, sizeof(tally), &t);
	cr_assert_eq(t.ngone, 3);
	cr_assert_eq(seek_targets(&t, &totals), 0);
	cr_assert_eq(t.ntargets, 2);
	cr_expect_eq(t.targets[0].id.inode, there.inode);
	cr_expect_eq(t.targets[0].queue, 2);
	cr_expect_eq(t.targets[0].dir, SPOOL_INCOMING);
	cr_expect_eq(t.targets[1].id.inode, here.inode);
	cr_expect_eq(t.targets[1].queue, 1);
	cr_expect_eq(t.tally.gone, 1);
	cr_expect_eq(t.tally.done, 5);
	cr_expect_eq(totals.troubled + totals.silent, 0);
}

/* mutation: qctl/act/seek.c: count_gone() is silent of ids, too. */
Test(seek, A14_a_named_message_that_is_nowhere_is_missed)
{
	struct queue_id id = cut_queue_put(&q, 1, 0);

	id.nonce++;
	t.options.select.nids = 1;
	say_gone(&id);
	cr_assert_eq(seek_targets(&t, &totals), 0);
	cr_expect_eq(t.ntargets, 0);
	cr_expect_eq(t.tally.gone, 1);
	cr_expect_eq(totals.troubled, 1);
	/* Nothing is gone: nothing is looked for. */
	cr_assert_eq(seek_targets(&t, &totals), 0);
	cr_expect_eq(t.tally.gone, 1);
}

static void
damage(const struct queue_id *id)
{
	int fd = spool_open_file(&q.sp, SPOOL_INCOMING, id->inode, O_RDWR);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, 10), 0);
	close(fd);
}

/* mutation: qctl/act/seek.c: the search ends at the first bad file. */
Test(seek, A14_a_bad_file_hides_no_message_behind_it)
{
	const struct queue_id bad = cut_queue_put(&q, 1, 0),
			      good = cut_queue_put(&q, 1, 0);

	damage(&bad);
	say_gone(&bad);
	say_gone(&good);
	cr_assert_eq(seek_targets(&t, &totals), 0);
	cr_assert_eq(t.ntargets, 1);
	cr_expect_eq(t.targets[0].id.inode, good.inode);
	cr_expect_eq(totals.troubled, 1);
	/* Nobody knows that the message was delivered or removed. */
	cr_expect_eq(t.tally.gone, 0);
	cr_expect_eq(t.unfound, 1);
}

/* A named message adds one trouble, whichever was before. */
Test(seek, A14_what_was_not_found_is_not_told_as_gone)
{
	const struct queue_id bad = cut_queue_put(&q, 1, 0);

	cr_redirect_stderr();
	damage(&bad);
	t.options.select.nids = 1;
	say_gone(&bad);
	t.nqueues = 1;
	cr_assert_eq(seek_targets(&t, &totals), 0);
	cr_expect_eq(totals.troubled, 2);
	cr_expect_eq(t.tally.gone, 0);
	cr_expect_eq(t.unfound, 1);
}

/* mutation: qctl/act/acting.c: act_on_all() forgets the error of a row. */
Test(seek, A13_a_row_without_memory_is_an_error)
{
	cr_redirect_stderr();
	t.options.yes = true;
	t.options.select.nids = 1;
	cr_expect_eq(act_on_targets(&t), EX_OK);
	t.error = -ENOMEM;
	cr_expect_eq(act_on_targets(&t), EX_OSERR);
}
