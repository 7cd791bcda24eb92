/* Messages that were gone when a command acted. */
#include "tests/unit/files.h"

#include "cut_queue.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdlib.h>
#include <unistd.h>

#include "qctl/act/task.h"

static const uint32_t queues[] = { 1, 2 };
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
	cr_assert_eq(seek_targets(&t, queues, ARRAY_LEN(queues), &totals), 0);
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
	cr_assert_eq(seek_targets(&t, queues, ARRAY_LEN(queues), &totals), 0);
	cr_expect_eq(t.ntargets, 0);
	cr_expect_eq(t.tally.gone, 1);
	cr_expect_eq(totals.troubled, 1);
	/* Nothing is gone: nothing is looked for. */
	cr_assert_eq(seek_targets(&t, queues, ARRAY_LEN(queues), &totals), 0);
	cr_expect_eq(t.tally.gone, 1);
}
