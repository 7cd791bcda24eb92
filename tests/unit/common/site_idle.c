/* What stays known of a destination that nobody has open. */
#include <criterion/criterion.h>

#include "site_scratch.h"

Test(site_idle, what_is_learned_survives_idleness)
{
	struct site_params p = plain;
	struct fixture t;
	struct site *a, *b;

	p.positive = p.negative =
	    (struct window_feedback){ 0.25, WINDOW_FIXED };
	begin(&t, &p, &exact, 1);
	a = open_at(&t, "A", 0);
	b = open_at(&t, "B", 0);
	deliver(a, SITE_DELIVERED, 0);
	deliver(b, SITE_FAILED, 0);
	site_close(a, 0);
	site_close(b, 0);
	a = open_at(&t, "a", MIN);
	cr_expect(view(a).success == 0.25);
	b = open_at(&t, "b", MIN);
	cr_expect_eq(view(b).window, 1);
	cr_expect(view(b).failure == 0.75);
	cr_expect(view(b).fail_cohorts == 0.5);
	site_close(a, MIN);
	site_close(b, MIN);
	end(&t);
}

Test(site_idle, a_death_survives_idleness)
{
	struct fixture t;
	struct site *a;

	begin(&t, &plain, &exact, 1);
	a = open_at(&t, "a", 0);
	kill_at(a, 0);
	site_close(a, 0);
	a = open_at(&t, "a", MIN - 1);
	cr_expect_eq(site_state(a, MIN - 1), SITE_DEAD);
	cr_expect_str_eq(view(a).why, "refused");
	site_close(a, MIN - 1);
	a = open_at(&t, "a", MIN);
	cr_expect_eq(site_state(a, MIN), SITE_ROOM);
	cr_expect_eq(view(a).deaths, 1);
	site_close(a, MIN);
	/* The longest that mail is deferred, and more. */
	a = open_at(&t, "a", MIN + MAX + MAX / 10);
	cr_expect_eq(view(a).deaths, 1);
	site_close(a, MIN + MAX + MAX / 10);
	end(&t);
}

/* Who is dead beyond that stays known until it opens. */
Test(site_idle, a_dead_one_is_not_forgotten_before_it_opens)
{
	const struct site_backoff shorter = { 1, MIN / 4, 0 };
	const struct site_params two[] = { plain, plain };
	struct fixture t;
	struct site *a;

	begin(&t, &plain, &exact, 1);
	a = open_at(&t, "A", 0);
	kill_at(a, 0);
	site_close(a, 0);
	cr_assert_eq(fixture_configure(&t, two, 2, &shorter), 0);
	/* Twice the new maximal_backoff_time, from now on. */
	a = open_at(&t, "A", MIN / 4);
	cr_expect_eq(view(a).state, SITE_DEAD);
	cr_expect_eq(view(a).dead_until, MIN / 4 * 3);
	site_close(a, MIN / 4);
	a = open_at(&t, "A", MIN);
	cr_expect_eq(view(a).deaths, 0);
	site_close(a, MIN);
	end(&t);
}

/* A delivery may outlast the entries that somebody waits with. */
Test(site_idle, closed_before_the_last_delivery_ends)
{
	struct fixture t;
	struct site *a;

	begin(&t, &plain, &exact, 1);
	a = open_at(&t, "A", 0);
	*site_user(a) = &t;
	take(a, 0);
	take(a, 0);
	site_close(a, 0);
	cr_expect_eq(open_at(&t, "a", 0), a, "its delivery runs");
	cr_expect_null(*site_user(a));
	cr_expect_eq(view(a).busy, 2);
	site_close(a, 0);
	done(a, SITE_AGENT_DIED, 0);
	done(a, SITE_FAILED, 0);
	a = open_at(&t, "a", 0);
	cr_expect(view(a).fail_cohorts == 0.5);
	site_close(a, 0);
	end(&t);
}
