#include "queue-send/backlog/backlog.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static uint64_t
ask(struct due_queue *q, usec_t now)
{
	const struct due *d = due_ask(q, now);

	return d == NULL ? 0 : d->inode;
}

Test(due, by_time_and_only_when_due)
{
	struct due_queue q;

	due_init(&q);
	cr_assert_eq(due_next(&q), USEC_NEVER);
	due_put(&q, 7, 300);
	due_put(&q, 8, 100);
	due_put(&q, 9, 200);
	cr_assert_eq(due_next(&q), 100);
	cr_assert_eq(ask(&q, 99), 0);
	cr_assert_eq(ask(&q, 250), 8);
	cr_assert_eq(ask(&q, 250), 9);
	cr_assert_eq(ask(&q, 250), 0);
	cr_assert_eq(q.asked, 2);
	cr_assert_eq(q.count, 3);
	due_done(&q);
}

Test(due, a_new_time_replaces_the_old_one)
{
	struct due_queue q;

	due_init(&q);
	due_put(&q, 7, 100);
	due_put(&q, 7, 500);
	cr_assert_eq(q.count, 1);
	cr_assert_eq(ask(&q, 499), 0);
	cr_assert_eq(ask(&q, 500), 7);
	due_put(&q, 7, 600); /* also of one that was asked for */
	cr_assert_eq(q.asked, 0);
	cr_assert_eq(ask(&q, 600), 7);
	due_done(&q);
}

/* mutation: due_put() does not forget it. */
Test(due, a_message_that_was_parked_is_untouched_until_it_is_put_again)
{
	struct due_queue q;

	due_init(&q);
	due_set_untouched(&q, 7, true);
	cr_expect_not(due_is_untouched(&q, 7));
	due_put(&q, 7, 100);
	due_set_untouched(&q, 7, true);
	cr_expect(due_is_untouched(&q, 7));
	cr_expect_eq(ask(&q, 100), 7);
	cr_expect(due_is_untouched(&q, 7));
	due_put(&q, 7, 500);
	cr_expect_not(due_is_untouched(&q, 7));
	due_done(&q);
}

Test(due, D22_a_dropped_inode_carries_nothing_over)
{
	struct due_queue q;
	struct due *d;

	due_init(&q);
	d = due_put(&q, 7, 100);
	d->deaths = 7;
	d->second = 5;
	cr_assert_eq(ask(&q, 100), 7);
	due_drop(&q, 7);
	due_drop(&q, 7);
	cr_assert_eq(q.count, 0);
	cr_assert_eq(q.asked, 0);
	d = due_put(&q, 7, 900);
	cr_assert_eq(d->deaths, 0);
	cr_assert_eq(d->second, 0);
	cr_assert_not(d->asked);
	cr_assert_eq(due_next(&q), 900);
	due_done(&q);
}

Test(due, the_peer_that_was_asked_is_gone)
{
	struct due_queue q;

	due_init(&q);
	due_put(&q, 1, 10);
	due_put(&q, 2, 20);
	due_put(&q, 3, 9000);
	cr_assert_eq(ask(&q, 50), 1);
	cr_assert_eq(ask(&q, 50), 2);
	due_unask_all(&q, 50);
	cr_assert_eq(q.asked, 0);
	cr_assert_eq(ask(&q, 50), 1);
	due_unask(&q, due_find(&q, 1), 70);
	cr_assert_eq(ask(&q, 60), 2);
	cr_assert_eq(ask(&q, 60), 0);
	cr_assert_eq(ask(&q, 70), 1);
	due_done(&q);
}

Test(due, flush)
{
	struct due_queue q;

	due_init(&q);
	due_put(&q, 1, 100);
	due_put(&q, 2, 200);
	due_flush(&q);
	cr_assert_lt(due_next(&q), 0);
	due_put(&q, 3, 50);  /* after the flush: by its time */
	due_put(&q, 2, 300); /* tried again after it */
	cr_assert_eq(ask(&q, 0), 1);
	cr_assert_eq(ask(&q, 0), 0);
	due_flush(&q);
	due_put(&q, 4, 1000);
	due_flush(&q); /* while some of the last one wait */
	cr_assert_eq(ask(&q, 0), 3);
	cr_assert_eq(ask(&q, 0), 2);
	cr_assert_eq(ask(&q, 0), 4);
	cr_assert_eq(ask(&q, 0), 0);
	due_drop(&q, 3);
	due_done(&q);
}

/* A flush takes the same few steps however many wait. mutation: due_flush()
 * moves nodes. */
Test(due, A9_flushes_while_others_go_on)
{
	struct due_queue q;
	unsigned i, n;

	due_init(&q);
	for (i = 1; i <= 2 * DUE_EPOCHS; i++) {
		due_put(&q, i, 1000 - i);
		due_flush(&q);
	}
	due_put(&q, 100, 5000); /* after the last flush that had a tree */
	cr_expect(q.flush_waits);
	for (n = 1; n <= 2 * DUE_EPOCHS; n++)
		cr_expect_neq(ask(&q, 0), 0, "%u", n);
	cr_expect_eq(ask(&q, 0), 100, "the flush that waited");
	cr_expect_not(q.flush_waits);
	cr_expect_eq(ask(&q, 0), 0);
	due_put(&q, 1, 5000);
	cr_expect_eq(ask(&q, 4999), 0, "no flush is left");
	due_done(&q);
}

/* Any sequence, beside a plain table. */
Test(due, any_sequence)
{
	enum {
		N = 200,
		NEVER = 1000000
	};
	struct due_queue q;
	struct {
		bool there, asked, flushed;
		usec_t at;
	} want[N] = { 0 };
	usec_t now = 0;
	int step, i, k, waited = 0;

	due_init(&q);
	srand(4);
	for (step = 0; step < 100000; step++, now++) {
		const bool waits = q.flush_waits;
		bool flushes = false;
		struct due *d;

		i = rand() % (N - 1) + 1;
		switch (rand() % 8) {
		case 0:
		case 1:
		case 2:
			want[i].there = true;
			want[i].asked = want[i].flushed = false;
			want[i].at = now + rand() % 400;
			due_put(&q, (uint64_t)i, want[i].at);
			break;
		case 3:
			want[i].there = false;
			due_drop(&q, (uint64_t)i);
			break;
		case 4:
			if (rand() % 100 != 0)
				break;
			due_flush(&q);
			flushes = !q.flush_waits;
			i = 0;
			break;
		case 5:
			d = due_find(&q, (uint64_t)i);
			cr_assert_eq(d != NULL, want[i].there);
			if (d == NULL || !d->asked)
				break;
			cr_assert(want[i].asked);
			want[i].asked = want[i].flushed = false;
			want[i].at = now;
			due_unask(&q, d, now);
			break;
		default:
			d = due_ask(&q, now);
			if (d == NULL) {
				for (i = 1; i < N; i++)
					cr_assert_not(want[i].there &&
					    !want[i].asked &&
					    (want[i].flushed ||
						want[i].at <= now));
				break;
			}
			i = (int)d->inode;
			cr_assert(want[i].there && !want[i].asked);
			cr_assert(want[i].flushed || want[i].at <= now);
			want[i].asked = true;
		}
		/* One that waited comes when a node leaves its tree. */
		for (k = 1; k < N && (flushes || waits > q.flush_waits); k++)
			if (k != i)
				want[k].flushed =
				    want[k].there && !want[k].asked;
		waited += waits > q.flush_waits;
	}
	cr_expect_gt(waited, 0);
	due_done(&q);
}
