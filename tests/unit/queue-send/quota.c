/* The part of the loop's time that requests of operators get, under a virtual
 * clock. */
#include "queue-send/state/pure.h"

#include <criterion/criterion.h>

#define MS USEC_PER_MSEC
#define S  USEC_PER_SEC

/* A loop that always has other work: turns of random length, requests as many
 * as may be. */
struct loop {
	struct quota q;
	usec_t now, ends;
	usec_t spent;   /* by requests */
	usec_t longest; /* request */
	usec_t waited;  /* at most, for the next one to begin */
	usec_t last;    /* the end of the last one */
	uint32_t seed;
};

static usec_t
random_up_to(struct loop *l, usec_t most)
{
	l->seed = l->seed * 1664525u + 1013904223u;
	return most == 0 ? 0 : (usec_t)(l->seed >> 8) % (most + 1);
}

static void
serve(struct loop *l, usec_t most)
{
	while (quota_is_open(&l->q)) {
		const usec_t took = random_up_to(l, most);

		if (l->now - l->last > l->waited)
			l->waited = l->now - l->last;
		l->now += took;
		l->spent += took;
		l->longest = took > l->longest ? took : l->longest;
		l->last = l->now;
		quota_spend(&l->q, took);
	}
}

static struct loop
run(uint32_t seed, usec_t turn, usec_t request)
{
	struct loop l = { .now = 5 * S, .last = 5 * S, .seed = seed };

	quota_init(&l.q, l.now);
	for (l.ends = l.now + 100 * S; l.now < l.ends;) {
		quota_earn(&l.q, l.now);
		serve(&l, request);
		l.now += random_up_to(&l, turn);
	}
	return l;
}

/* mutation: quota_spend() forgets what is owed. */
Test(quota, A9_beside_other_work_requests_have_their_part_and_no_more)
{
	static const struct {
		usec_t turn, request;
	} rows[] = {
		{ 100, 20 },
		{ 5 * MS, 20 },
		{ 20 * MS, 3 },
		{ 20 * MS, 2 * MS },
		{ 1 * MS, 50 * MS },
		{ 100 * MS, 10 * MS },
	};
	uint32_t seed;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		for (seed = 1; seed <= 10; seed++) {
			const struct loop l =
			    run(seed, rows[i].turn, rows[i].request);
			const usec_t all = l.now - 5 * S;
			const usec_t part = all / QUOTA_PARTS;

			cr_expect_leq(l.spent, part + QUOTA_SLICE + l.longest,
			    "row %zu: %ld", i, (long)l.spent);
			/* A turn that is longer than QUOTA_PARTS slices brings
			 * no more than one. */
			if (rows[i].turn <= QUOTA_PARTS * QUOTA_SLICE)
				cr_expect_geq(l.spent,
				    part - QUOTA_SLICE - l.longest,
				    "row %zu: %ld", i, (long)l.spent);
			cr_expect_gt(l.spent, part / 8, "row %zu", i);
		}
}

/* mutation: quota_spend() has no end of what is owed. */
Test(quota, A9_slow_requests_are_put_off_and_not_for_ever)
{
	const struct loop l = run(1, 1 * MS, 3 * S);

	cr_expect_gt(l.longest, S);
	cr_expect_leq(l.waited, QUOTA_PARTS * QUOTA_DEBT + 2 * MS);
}

Test(quota, an_idle_loop_does_nothing_else)
{
	struct quota q;
	usec_t now = S, spent = 0;

	quota_init(&q, now);
	while (now < 11 * S) {
		while (quota_is_open(&q)) {
			quota_spend(&q, 30);
			now += 30;
			spent += 30;
		}
		now += 5; /* a look at the sockets */
		quota_fill(&q, now);
	}
	cr_expect_geq(spent, 99 * (10 * S) / 100);
}

Test(quota, opens_when_it_says)
{
	struct quota q;

	quota_init(&q, S);
	quota_spend(&q, QUOTA_SLICE);
	cr_expect_not(quota_is_open(&q));
	quota_earn(&q, quota_opens_at(&q) - 1);
	cr_expect_not(quota_is_open(&q));
	quota_earn(&q, quota_opens_at(&q));
	cr_expect(quota_is_open(&q));
	cr_expect_leq(quota_opens_at(&q), q.at);
}

/* A clock that goes back brings nothing, and takes nothing. */
Test(quota, odd_times_are_harmless)
{
	struct quota q, before;

	quota_init(&q, S);
	quota_spend(&q, QUOTA_SLICE);
	before = q;
	quota_earn(&q, S / 2);
	cr_expect_eq(q.credit, before.credit);
	quota_spend(&q, -5);
	cr_expect_eq(q.credit, before.credit);
	quota_spend(&q, INT64_MAX);
	cr_expect_leq(quota_opens_at(&q), q.at + QUOTA_PARTS * QUOTA_DEBT + 1);
	quota_earn(&q, INT64_MAX);
	cr_expect(quota_is_open(&q));
}
