#include "qtop/model.h"

#include "fake.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static struct model model;

Test(qtop_model, rows_and_sums)
{
	fake_make(3);
	fake.queues[0].local_used = 5;
	fake.queues[0].maildrop = 1;
	fake.queues[0].incoming = 2;
	fake.queues[0].oldest_wall = FAKE_WALL - 60 * USEC_PER_SEC;
	fake.queues[1].remote_used = 20;
	fake.queues[1].rate_in = 150;
	fake.queues[1].oldest_wall = FAKE_WALL - 90 * USEC_PER_SEC;
	fake.queues[2].deferred = 7;
	fake.queues[1].untried = 3;
	fake.queues[2].untried = 4;
	fake.sched.rows[2].restarts = 4;
	fake_sample(&model);
	cr_assert_eq(model.nrows, 3);
	cr_expect_eq(model.error, 0);
	cr_expect_not(model.stale);
	cr_expect_eq(model.rows[0].load_pct, 50);
	cr_expect_eq(model.rows[0].in, 3);
	cr_expect_eq(model.rows[0].oldest_age, 60 * USEC_PER_SEC);
	cr_expect_eq(model.rows[1].load_pct, 100);
	cr_expect_eq(model.rows[2].oldest_age, -1);
	cr_expect_eq(model.total.load_pct, 50);
	cr_expect_eq(model.total.in, 3);
	cr_expect_eq(model.total.page.local_limit, 30);
	cr_expect_eq(model.total.page.remote_used, 20);
	cr_expect_eq(model.total.page.deferred, 7);
	cr_expect_eq(model.total.page.untried, 7);
	cr_expect_eq(model.total.page.rate_in, 150);
	cr_expect_eq(model.total.sched.restarts, 4);
	cr_expect_eq(model.total.oldest_age, 90 * USEC_PER_SEC);
}

/* Only open queues count for the mean, and only those whose load is known, as
 * for growth. */
Test(qtop_model, mean_load_of_the_open)
{
	fake_make(2);
	fake.queues[0].local_used = 8;
	fake.sched.rows[1].state = QUEUE_STATE_CLOSING;
	fake_sample(&model);
	cr_expect_eq(model.total.load_pct, 80);
	fake.sched.rows[0].state = QUEUE_STATE_QUARANTINED;
	fake_sample(&model);
	cr_expect_eq(model.total.load_pct, 0, "none is open");
}

Test(qtop_model, mean_load_of_those_that_tell_it)
{
	fake_make(3);
	fake.queues[0].local_used = 8;
	fake.queues[1].local_used = 6;
	fake.queues[1].head.beat_mono = FAKE_MONO - PAGE_STALE - 1;
	fake.queues[2].head.beat_mono = FAKE_MONO - PAGE_STALE - 1;
	fake_sample(&model);
	cr_expect_eq(model.total.load_pct, 80, "two are stale");
	fake.sched.rows[1].flags = SCHED_ROW_MANUAL;
	fake.sched.rows[1].load_pct = 20;
	fake.sched.rows[1].manual_until_mono = FAKE_MONO + USEC_PER_SEC;
	fake_sample(&model);
	cr_expect_eq(model.total.load_pct, 50, "one is stale");
}

Test(qtop_model, load_of_setqload_until_it_ends)
{
	fake_make(1);
	fake.sched.rows[0].load_pct = 95;
	fake.sched.rows[0].flags = SCHED_ROW_MANUAL;
	fake.sched.rows[0].manual_until_mono = FAKE_MONO + USEC_PER_SEC;
	fake_sample(&model);
	cr_expect(model.rows[0].manual);
	cr_expect_eq(model.rows[0].load_pct, 95);
	cr_expect_eq(model.rows[0].manual_left, USEC_PER_SEC);
	fake.sched.rows[0].manual_until_mono = FAKE_MONO;
	fake_sample(&model);
	cr_expect_not(model.rows[0].manual);
	cr_expect_eq(model.rows[0].load_pct, 0);
}

Test(qtop_model, I10_pages_that_cannot_be_read)
{
	fake_make(2);
	fake.queues[0].deferred = 99;
	fake.queue_error = -ENOENT;
	fake_sample(&model);
	cr_assert_eq(model.nrows, 2);
	cr_expect_eq(model.rows[0].error, -ENOENT);
	cr_expect_not(model.rows[0].stale);
	cr_expect_eq(model.rows[0].page.deferred, 0, "believed");
	fake.sched_error = -EBADMSG;
	fake_sample(&model);
	cr_expect_eq(model.error, -EBADMSG);
	cr_expect_eq(model.nrows, 0);
	cr_expect_eq(model.sched.qcount, 0);
}

Test(qtop_model, I12_stale)
{
	fake_make(2);
	fake.sched.head.beat_mono = FAKE_MONO - PAGE_STALE - 1;
	fake.queues[1].head.beat_mono = FAKE_MONO - PAGE_STALE - 1;
	fake_sample(&model);
	cr_expect(model.stale);
	cr_expect_eq(model.sched_age, PAGE_STALE + 1);
	cr_expect_not(model.rows[0].stale);
	cr_expect(model.rows[1].stale);
}

Test(qtop_model, I7_I12_numbers_that_are_no_queue)
{
	static const struct {
		uint32_t queue, state, want;
	} rows[] = {
		{ 0, QUEUE_STATE_OPEN, 0 },
		{ 1, QUEUE_STATE_NONE, 0 },
		{ 1, QUEUE_STATE_OPEN, 1 },
		{ 4095, QUEUE_STATE_OPEN, 1 },
		{ 4096, QUEUE_STATE_OPEN, 0 },
		{ UINT32_MAX, QUEUE_STATE_OPEN, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		fake_make(1);
		fake.sched.rows[0].queue = rows[i].queue;
		fake.sched.rows[0].state = rows[i].state;
		fake_sample(&model);
		cr_expect_eq(model.nrows, rows[i].want, "row %zu", i);
	}
}

/* Every number at its largest, in every row. */
Test(qtop_model, I12_absurd_values_saturate)
{
	uint32_t i;

	fake_make(PAGE_QUEUES_MAX);
	for (i = 0; i < PAGE_QUEUES_MAX; i++) {
		struct queue_page *p = &fake.queues[i];

		p->local_used = p->local_limit = INT32_MAX;
		p->remote_used = p->remote_limit = INT32_MAX;
		p->maildrop = p->incoming = UINT64_MAX;
		p->active = p->deferred = p->hold = p->corrupt = UINT64_MAX;
		p->rate_in = p->rate_out = UINT64_MAX;
		p->oldest_wall = INT64_MAX;
		p->head.beat_mono = INT64_MIN;
		fake.sched.rows[i].restarts = UINT32_MAX;
		fake.sched.rows[i].load_pct = UINT32_MAX;
		fake.sched.rows[i].flags = SCHED_ROW_MANUAL;
		fake.sched.rows[i].manual_until_mono = INT64_MAX;
	}
	fake_sample(&model);
	cr_assert_eq(model.nrows, PAGE_QUEUES_MAX);
	cr_expect_eq(model.rows[0].in, UINT64_MAX);
	cr_expect_eq(model.rows[0].oldest_age, 0, "of the future");
	cr_expect_eq(model.rows[0].page_age, USEC_NEVER);
	cr_expect_eq(model.total.in, UINT64_MAX);
	cr_expect_eq(model.total.page.local_used, INT32_MAX);
	cr_expect_eq(model.total.page.rate_out, UINT64_MAX);
	cr_expect_eq(model.total.sched.restarts, UINT32_MAX);
	cr_expect_eq(model.total.load_pct, UINT32_MAX);
}

Test(qtop_model, I12_negative_values)
{
	fake_make(1);
	fake.queues[0].oldest_wall = INT64_MIN;
	fake.queues[0].head.beat_mono = -1;
	fake.queues[0].local_used = INT32_MIN;
	fake.queues[0].local_limit = INT32_MIN;
	fake.sched.rows[0].flags = SCHED_ROW_MANUAL;
	fake.sched.rows[0].manual_until_mono = INT64_MIN;
	fake_sample(&model);
	cr_expect_eq(model.rows[0].oldest_age, -1);
	cr_expect(model.rows[0].stale);
	cr_expect_eq(model.rows[0].load_pct, 0);
	cr_expect_not(model.rows[0].manual);
}
