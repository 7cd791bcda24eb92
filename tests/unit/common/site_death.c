/* Dead destinations: for how long, and what opens them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "site_scratch.h"

Test(site_death, a_cohort_of_failures_kills)
{
	struct site_view v;
	struct fixture t;
	struct site *a;

	begin(&t, &plain, &exact, 1);
	a = open_at(&t, "a", 7);
	take(a, 7);
	take(a, 7);
	done(a, SITE_FAILED, 8);
	cr_expect_eq(site_state(a, 8), SITE_ROOM);
	done(a, SITE_FAILED, 9);
	cr_expect_eq(site_state(a, 9), SITE_DEAD);
	cr_expect_eq(site_take(a, 9), SITE_DEAD);
	v = view(a);
	cr_expect_eq(v.state, SITE_DEAD);
	cr_expect_eq(v.busy, 0);
	cr_expect_eq(v.deaths, 1);
	cr_expect_eq(v.dead_until, 9 + MIN);
	cr_expect_eq(v.window, 2, "as it was");
	cr_expect(v.fail_cohorts == 1);
	cr_expect_str_eq(v.why, "refused");
	site_close(a, 9);
	end(&t);
}

Test(site_death, a_dead_one_opens_when_its_time_has_come)
{
	struct site_params p = plain;
	struct site_view v;
	struct fixture t;
	struct site *a;

	p.negative = (struct window_feedback){ 0.5, WINDOW_FIXED };
	p.failed_cohort_limit = 1.1;
	begin(&t, &p, &exact, 1);
	a = open_at(&t, "a", 0);
	cr_assert_eq(kill_at(a, 0), MIN);
	cr_expect_eq(site_state(a, MIN - 1), SITE_DEAD);
	cr_expect_eq(site_state(a, MIN), SITE_ROOM);
	v = view(a);
	cr_expect_eq(v.window, 2);
	cr_expect(v.success == 0 && v.failure == 0 && v.fail_cohorts == 0);
	cr_expect_eq(v.deaths, 1, "no success between");
	cr_expect_null(v.why);
	kill_at(a, MIN);
	cr_expect_eq(site_take(a, 3 * MIN - 1), SITE_DEAD);
	cr_expect_eq(site_take(a, 3 * MIN), SITE_ROOM);
	cr_expect_eq(view(a).deaths, 2);
	done(a, SITE_DELIVERED, 3 * MIN);
	cr_expect_eq(view(a).deaths, 0, "a success between");
	site_close(a, 0);
	end(&t);
}

/* Doubled for each death in a row, at most the maximum, for ever. */
Test(site_death, suspensions_grow)
{
	static const struct {
		usec_t min, max;
		usec_t want[6], last;
	} rows[] = {
		{ MIN, MAX,
		    { 300 * SEC, 600 * SEC, 1200 * SEC, 2400 * SEC, 4000 * SEC,
			4000 * SEC },
		    4000 * SEC },
		{ 5, 40, { 5, 10, 20, 40, 40, 40 }, 40 },
		{ 5, 39, { 5, 10, 20, 39, 39, 39 }, 39 },
		{ 7, 7, { 7, 7, 7, 7, 7, 7 }, 7 },
		{ 9, 7, { 7, 7, 7, 7, 7, 7 }, 7 },
		{ 1, USEC_NEVER, { 1, 2, 4, 8, 16, 32 }, USEC_NEVER / 8 },
	};
	size_t i;
	int n;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct site_backoff b = { rows[i].min, rows[i].max, 0 };
		struct fixture t;
		struct site *a;

		begin(&t, &plain, &b, 1);
		a = open_at(&t, "a", 0);
		for (n = 0; n < 200; n++) {
			usec_t got = kill_at(a, 0);
			usec_t want = n < 6 ? rows[i].want[n] : rows[i].last;

			if (n < 6 || n > 70)
				cr_expect_eq(got, want,
				    "row %zu, death %d: %lld", i, n + 1,
				    (long long)got);
			site_flush(t.shared, 0);
		}
		site_close(a, 0);
		end(&t);
	}
}

Test(site_death, no_suspension_ends_beyond_the_end_of_time)
{
	const struct site_backoff b = { 1, USEC_NEVER, 90 };
	struct fixture t;
	struct site *a;
	int n;

	begin(&t, &plain, &b, 1);
	a = open_at(&t, "a", 0);
	for (n = 0; n < 100; n++) {
		usec_t until = kill_at(a, USEC_NEVER - 5);

		cr_assert(until >= USEC_NEVER - 5);
		site_flush(t.shared, 0);
	}
	site_close(a, USEC_NEVER);
	end(&t);
}

/* Every time within the spread, both ends of it come near, and the mean is
 * that without one. */
Test(site_death, suspensions_are_spread)
{
	static const uint32_t pcts[] = { 0, 1, 10, 90, 100, 400 };
	size_t i;
	int n;

	for (i = 0; i < ARRAY_LEN(pcts); i++) {
		const struct site_backoff b = { MIN, MIN, pcts[i] };
		usec_t half =
		    MIN / 100 * (usec_t)(pcts[i] < 100 ? pcts[i] : 100);
		usec_t least = USEC_NEVER, most = 0, sum = 0;
		struct fixture t;
		struct site *a;

		begin(&t, &plain, &b, 42);
		a = open_at(&t, "a", 0);
		for (n = 0; n < 4000; n++) {
			usec_t time = kill_at(a, 1) - 1;

			least = time < least ? time : least;
			most = time > most ? time : most;
			sum += time;
			site_flush(t.shared, 0);
		}
		cr_expect(least >= MIN - half && most <= MIN + half,
		    "%u %%: %lld to %lld", (unsigned)pcts[i], (long long)least,
		    (long long)most);
		cr_expect(least <= MIN - half + half / 50 &&
		    most >= MIN + half - half / 50);
		cr_expect(llabs(sum / 4000 - MIN) <= half / 20);
		site_close(a, 1);
		end(&t);
	}
}

/* Capped first, then spread: at the maximum they must not meet. */
Test(site_death, the_longest_suspensions_are_spread_too)
{
	const struct site_backoff b = { MIN, MAX, 10 };
	bool above = false, below = false;
	struct fixture t;
	struct site *a;
	int n;

	begin(&t, &plain, &b, 1);
	a = open_at(&t, "a", 0);
	for (n = 0; n < 100; n++) {
		usec_t time = kill_at(a, 0);

		above = above || time > MAX;
		below = below || (n > 10 && time < MAX);
		site_flush(t.shared, 0);
	}
	cr_expect(above && below);
	site_close(a, 0);
	end(&t);
}

Test(site_death, the_same_seed_gives_the_same_times)
{
	const struct site_backoff b = { MIN, MAX, 50 };
	struct fixture t[3];
	struct site *a[3];
	int i, n, different = 0;

	for (i = 0; i < 3; i++) {
		begin(&t[i], &plain, &b, i == 2 ? 8 : 7);
		a[i] = open_at(&t[i], "a", 0);
	}
	for (n = 0; n < 50; n++) {
		usec_t until[3];

		for (i = 0; i < 3; i++) {
			until[i] = kill_at(a[i], 0);
			site_flush(t[i].shared, 0);
		}
		cr_expect_eq(until[0], until[1]);
		different += until[0] != until[2];
	}
	cr_expect_gt(different, 40);
	for (i = 0; i < 3; i++) {
		site_close(a[i], 0);
		end(&t[i]);
	}
}

/* Deliveries that began before the death. */
Test(site_death, a_late_success_opens)
{
	static const struct {
		uint32_t running, limit, want;
	} rows[] = { { 1, 20, 1 }, { 4, 20, 4 }, { 9, 20, 9 }, { 9, 0, 9 } };
	size_t i;
	uint32_t n;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct site_params p = plain;
		struct site_view v;
		struct fixture t;
		struct site *a;

		p.initial_destination_concurrency = 11;
		p.destination_concurrency_limit = rows[i].limit;
		begin(&t, &p, &exact, 1);
		a = open_at(&t, "a", 0);
		for (n = 0; n < rows[i].running; n++)
			take(a, 0);
		kill_at(a, 0);
		cr_assert_eq(view(a).deaths, 1);
		done(a, SITE_DELIVERED, 5);
		v = view(a);
		cr_expect_eq(v.window, rows[i].want, "row %zu: %u", i,
		    (unsigned)v.window);
		cr_expect_eq(v.busy, rows[i].running - 1);
		cr_expect_eq(v.deaths, 0);
		cr_expect(v.success == 0 && v.fail_cohorts == 0);
		cr_expect_eq(site_state(a, 5), SITE_ROOM);
		for (n = 1; n < rows[i].running; n++)
			done(a, SITE_AGENT_DIED, 6);
		site_close(a, 6);
		end(&t);
	}
}

/* It was busier than it may be now. */
Test(site_death, a_late_success_opens_within_the_limit)
{
	struct site_params less[] = { plain, plain };
	struct fixture t;
	struct site *a;
	int i;

	less[0].initial_destination_concurrency = 9;
	begin(&t, &less[0], &exact, 1);
	a = open_at(&t, "a", 0);
	for (i = 0; i < 8; i++)
		take(a, 0);
	kill_at(a, 0);
	less[0].destination_concurrency_limit = 4;
	cr_assert_eq(fixture_configure(&t, less, 2, &exact), 0);
	done(a, SITE_DELIVERED, 1);
	cr_expect_eq(view(a).window, 4);
	cr_expect_eq(view(a).busy, 7);
	for (i = 0; i < 7; i++)
		done(a, SITE_AGENT_DIED, 1);
	site_close(a, 1);
	end(&t);
}

/* After the time has come it is no late success any more. */
Test(site_death, a_success_after_the_time_finds_it_open)
{
	struct fixture t;
	struct site *a;

	begin(&t, &plain, &exact, 1);
	a = open_at(&t, "a", 0);
	take(a, 0);
	kill_at(a, 0);
	done(a, SITE_DELIVERED, MIN);
	cr_expect_eq(view(a).window, 2);
	cr_expect_eq(view(a).deaths, 0);
	site_close(a, MIN);
	end(&t);
}

Test(site_death, a_failure_of_a_dead_one_is_no_other_death)
{
	struct fixture t;
	struct site *a;
	usec_t until;

	begin(&t, &plain, &exact, 1);
	a = open_at(&t, "a", 0);
	take(a, 0);
	until = kill_at(a, 0);
	done(a, SITE_FAILED, 100);
	cr_expect_eq(view(a).deaths, 1);
	cr_expect_eq(view(a).dead_until, until);
	cr_expect_eq(view(a).busy, 0);
	site_close(a, 100);
	end(&t);
}

/* Those that are idle, too. */
Test(site_death, a_flush_opens_all)
{
	struct site *all[20];
	struct fixture t;
	char name[16];
	int i;

	begin(&t, &plain, &exact, 1);
	for (i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		all[i] = open_at(&t, name, 0);
		if (i % 3 != 0)
			kill_at(all[i], 0);
		if (i % 2 != 0)
			site_close(all[i], 0);
	}
	site_flush(t.shared, 1);
	for (i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		all[i] = i % 2 == 0 ? all[i] : open_at(&t, name, 1);
		cr_expect_eq(site_state(all[i], 1), SITE_ROOM);
		cr_expect_eq(view(all[i]).window, 2);
		cr_expect_eq(
		    view(all[i]).deaths, i % 3 != 0, "a flush is no success");
		site_close(all[i], 1);
	}
	end(&t);
}
