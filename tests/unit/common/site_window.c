/* The arithmetic of one window. */
#include "site/window.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#define NEAR(a, b) (fabs((a) - (b)) < WINDOW_EPSILON)

/* Busy enough that nothing is held back. */
#define ALL_BUSY   1000000

static struct window
at(uint32_t window)
{
	return (struct window){ .window = window };
}

Test(site_window, amounts_of_a_window)
{
	static const struct {
		double x;
		enum window_form shape;
		uint32_t window;
		double want;
	} rows[] = {
		{ 1, WINDOW_FIXED, 1, 1 },
		{ 1, WINDOW_FIXED, 1000, 1 },
		{ 0.25, WINDOW_FIXED, 9, 0.25 },
		{ 0, WINDOW_FIXED, 9, 0 },
		{ 1, WINDOW_PER_N, 1, 1 },
		{ 1, WINDOW_PER_N, 20, 0.05 },
		{ 0.5, WINDOW_PER_N, 20, 0.025 },
		{ 1, WINDOW_PER_N, UINT32_MAX, 1.0 / UINT32_MAX },
		{ 1, WINDOW_PER_ROOT_N, 1, 1 },
		{ 1, WINDOW_PER_ROOT_N, 16, 0.25 },
		{ 0.5, WINDOW_PER_ROOT_N, 16, 0.125 },
		{ 1, WINDOW_PER_ROOT_N, 2, 0.70710678118654752 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct window_feedback f = { rows[i].x, rows[i].shape };

		cr_expect_float_eq(window_amount(&f, rows[i].window),
		    rows[i].want, 1e-15, "row %zu", i);
	}
}

Test(site_window, the_start)
{
	static const struct {
		uint32_t initial, limit, want;
	} rows[] = {
		{ 5, 20, 5 },
		{ 5, 0, 5 },
		{ 5, 2, 2 },
		{ 1, 1, 1 },
		{ 20, 20, 20 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct window_rules rules = { .initial = rows[i].initial,
			.limit = rows[i].limit };
		struct window w = { 99, 1, 1, 1, 1 };

		window_init(&w, &rules);
		cr_expect_eq(w.window, rows[i].want, "row %zu", i);
		cr_expect(w.success == 0 && w.failure == 0 &&
		    w.fail_cohorts == 0 && w.doubted == 0);
	}
}

/* The whole one comes with the last of 1/g successes, for every N: the sum of
 * N steps of 1/N is not 1 in binary. */
Test(site_window, growth_at_the_end_of_n_successes)
{
	uint32_t n, i;

	for (n = 1; n <= 10000; n++) {
		struct window_rules rules = { .initial = n,
			.positive = { 1.0 / n, WINDOW_FIXED } };
		struct window w = at(n);

		for (i = 1; i < n; i++)
			window_success(&w, &rules, ALL_BUSY);
		cr_assert_eq(w.window, n, "%u: too early", n);
		window_success(&w, &rules, ALL_BUSY);
		cr_assert_eq(w.window, n + 1, "%u: too late", n);
		cr_assert(w.success == 0, "%u: %g is left", n, w.success);
	}
}

Test(site_window, growth_of_one_each_window_with_x_per_n)
{
	struct window_rules rules = { .initial = 1,
		.positive = { 1, WINDOW_PER_N } };
	struct window w = at(1);
	uint32_t n, i;

	for (n = 1; n <= 4000; n++) {
		cr_assert_eq(w.window, n);
		for (i = 0; i < n; i++)
			window_success(&w, &rules, ALL_BUSY);
	}
	cr_assert_eq(w.window, n);
}

/* And a decrease with the first of 1/f failures. */
Test(site_window, decrease_at_the_beginning_of_n_failures)
{
	uint32_t n, i;

	for (n = 1; n <= 10000; n++) {
		struct window_rules rules = { .initial = 1,
			.negative = { 1.0 / n, WINDOW_FIXED } };
		struct window w = at(100);

		cr_assert_not(window_failure(&w, &rules));
		cr_assert_eq(w.window, 99, "%u: too late", n);
		for (i = 1; i < n; i++)
			window_failure(&w, &rules);
		cr_assert_eq(w.window, 99, "%u: too early", n);
		cr_assert(w.failure == 0, "%u: %g is left", n, w.failure);
		window_failure(&w, &rules);
		cr_assert_eq(w.window, 98, "%u: the second step", n);
	}
}

/* 1/3 is no binary number; the error of a step must not add up. */
Test(site_window, a_long_life_does_not_drift)
{
	struct window_rules rules = { .initial = 1,
		.positive = { 1.0 / 3, WINDOW_FIXED },
		.negative = { 1.0 / 3, WINDOW_FIXED } };
	struct window w = at(1000000);
	int i;

	for (i = 0; i < 900000; i++)
		window_failure(&w, &rules);
	cr_expect_eq(w.window, 700000);
	cr_expect(w.failure == 0);
	for (i = 0; i < 900000; i++)
		window_success(&w, &rules, ALL_BUSY);
	cr_expect_eq(w.window, 1000000);
	cr_expect(w.success == 0);
}

Test(site_window, one_failure_takes_one_step_with_1)
{
	struct window_rules rules = { .initial = 5,
		.negative = { 1, WINDOW_FIXED } };
	struct window w = at(5);
	uint32_t want;

	for (want = 4; want >= 1; want--) {
		window_failure(&w, &rules);
		cr_expect_eq(w.window, want);
		cr_expect(w.failure == 0);
	}
	window_failure(&w, &rules);
	cr_expect_eq(w.window, 1, "never below 1");
}

/* A step of one direction takes back what the other has gathered. */
Test(site_window, hysteresis_both_ways)
{
	struct window_rules rules = { .initial = 5,
		.positive = { 0.25, WINDOW_FIXED },
		.negative = { 0.25, WINDOW_FIXED } };
	struct window w = at(5);
	int i;

	for (i = 0; i < 3; i++)
		window_success(&w, &rules, ALL_BUSY);
	cr_expect_eq(w.window, 5);
	cr_expect(NEAR(w.success, 0.75));
	window_failure(&w, &rules);
	cr_expect_eq(w.window, 4);
	cr_expect(w.success == 0, "a decrease takes the successes");
	cr_expect(NEAR(w.failure, 0.75));
	window_failure(&w, &rules);
	cr_expect_eq(w.window, 4, "the second of four");
	for (i = 0; i < 3; i++)
		window_success(&w, &rules, ALL_BUSY);
	cr_expect(NEAR(w.failure, 0.5), "successes alone leave it");
	window_success(&w, &rules, ALL_BUSY);
	cr_expect_eq(w.window, 5);
	cr_expect(w.failure == 0, "an increase takes the failures");
}

Test(site_window, no_feedback_moves_nothing)
{
	struct window_rules rules = { .initial = 5 };
	struct window w = at(5);
	int i;

	for (i = 0; i < 100; i++) {
		window_success(&w, &rules, ALL_BUSY);
		window_failure(&w, &rules);
	}
	cr_expect_eq(w.window, 5);
	cr_expect(w.success == 0 && w.failure == 0);
}

/* Even those below the tolerance. */
Test(site_window, the_smallest_amounts_count)
{
	struct window_rules rules = { .initial = 5,
		.negative = { 1e-10, WINDOW_FIXED } };
	struct window w = at(5);

	window_failure(&w, &rules);
	cr_expect_eq(w.window, 4);
	window_failure(&w, &rules);
	cr_expect_eq(w.window, 4);
	cr_expect(w.failure < 1);
}

Test(site_window, no_growth_beyond_the_limit_or_what_is_used)
{
	static const struct {
		uint32_t window, limit, initial, busy, want;
	} rows[] = {
		{ 19, 20, 5, 19, 20 },
		{ 20, 20, 5, 20, 20 },
		{ 25, 20, 5, 25, 25 }, /* a reload cuts, feedback does not */
		{ 20, 0, 5, 20, 21 },
		{ 5, 20, 5, 1, 6 },
		{ 6, 20, 5, 2, 7 },
		{ 6, 20, 5, 1, 6 }, /* window >= busy + initial */
		{ 7, 20, 5, 1, 7 },
		{ 2, 0, 1, 1, 2 },
		{ 1, 0, 1, 1, 2 },
		{ 9, 20, 5, UINT32_MAX, 10 },
		{ UINT32_MAX, 0, UINT32_MAX, UINT32_MAX, UINT32_MAX },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct window_rules rules = { .initial = rows[i].initial,
			.limit = rows[i].limit,
			.positive = { 1, WINDOW_FIXED } };
		struct window w = { .window = rows[i].window,
			.fail_cohorts = 0.5 };

		window_success(&w, &rules, rows[i].busy);
		cr_expect_eq(w.window, rows[i].want, "row %zu: %u", i,
		    (unsigned)w.window);
		cr_expect(w.success == 0, "row %zu", i);
		cr_expect(w.fail_cohorts == 0, "row %zu", i);
	}
}

/* How many failures in a row kill: no success between, no feedback. */
Test(site_window, failed_cohorts)
{
	static const struct {
		uint32_t window;
		double limit;
		int want; /* failures until death; 0: never */
	} rows[] = {
		{ 1, 1, 1 },
		{ 5, 1, 5 },
		{ 10000, 1, 10000 },
		{ 3, 1, 3 },
		{ 49, 1, 49 },
		{ 5, 0.2, 1 },
		{ 5, 0.5, 3 },
		{ 5, 2.5, 13 },
		{ 1, 0.1, 1 },
		{ 3, 10, 30 },
		{ 1, 0, 0 },
		{ 5, 0, 0 },
	};
	size_t i;
	int n;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct window_rules rules = { .initial = 5,
			.failed_cohort_limit = rows[i].limit };
		struct window w = at(rows[i].window);

		for (n = 1; n <= 20000; n++)
			if (window_failure(&w, &rules))
				break;
		cr_expect_eq(
		    n > 20000 ? 0 : n, rows[i].want, "row %zu: %d", i, n);
		cr_expect_eq(w.window, rows[i].window);
	}
}

Test(site_window, a_success_forgives_the_cohorts)
{
	struct window_rules rules = { .initial = 5, .failed_cohort_limit = 1 };
	struct window w = at(5);
	int i;

	for (i = 0; i < 100; i++) {
		cr_assert_not(window_failure(&w, &rules));
		if (i % 4 == 3)
			window_success(&w, &rules, 5);
	}
}

/* However often, one message alone is no failure of the site; the second one
 * counts each time, until a success. */
Test(site_window, doubts)
{
	static const struct window_rules rules = { .initial = 3,
		.negative = { 1, WINDOW_FIXED },
		.failed_cohort_limit = 1 };
	struct window w = at(3), was;
	int i;

	cr_expect_not(window_doubt(&w, &rules, 7));
	cr_expect_not(window_is_fresh(&w, &rules), "the message is known");
	was = w;
	for (i = 0; i < 1000; i++)
		cr_assert_not(window_doubt(&w, &rules, 7));
	cr_expect(w.window == was.window && w.fail_cohorts == 0);
	cr_expect_not(window_doubt(&w, &rules, 8));
	cr_expect_eq(w.window, 2);
	cr_expect_not(window_doubt(&w, &rules, 7), "the first is none still");
	cr_expect_eq(w.window, 2);
	window_success(&w, &rules, 1);
	cr_expect_not(window_doubt(&w, &rules, 8), "the first now");
	cr_expect(w.fail_cohorts == 0);
	cr_expect_not(window_doubt(&w, &rules, 7));
	cr_expect(window_doubt(&w, &rules, 9), "dead");
	window_init(&w, &rules);
	cr_expect_eq(w.doubted, 0);
}

/* The failure that kills takes no step of the window. */
Test(site_window, the_deadly_failure_leaves_the_window)
{
	struct window_rules rules = { .initial = 2,
		.negative = { 1, WINDOW_FIXED },
		.failed_cohort_limit = 1.5 };
	struct window w = at(2);

	cr_expect_not(window_failure(&w, &rules));
	cr_expect_eq(w.window, 1);
	cr_expect(window_failure(&w, &rules));
	cr_expect_eq(w.window, 1);
	w = at(7);
	rules.failed_cohort_limit = 0.1;
	cr_expect(window_failure(&w, &rules));
	cr_expect_eq(w.window, 7);
}

Test(site_window, a_new_limit_cuts)
{
	static const struct {
		uint32_t window, limit, want;
	} rows[] = { { 9, 3, 3 }, { 9, 9, 9 }, { 9, 10, 9 }, { 9, 0, 9 } };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct window_rules rules = { .initial = 1,
			.limit = rows[i].limit };
		struct window w = { rows[i].window, 7, 0.5, 0.25, 0.125 };

		window_fit(&w, &rules);
		cr_expect_eq(w.window, rows[i].want, "row %zu", i);
		cr_expect(w.success == 0.5 && w.failure == 0.25 &&
		    w.fail_cohorts == 0.125 && w.doubted == 7);
	}
}
