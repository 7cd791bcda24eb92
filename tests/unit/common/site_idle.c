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
	deliver(&t, a, SITE_DELIVERED, 0);
	deliver(&t, b, SITE_FAILED, 0);
	t.f->close(t.table, a, 0);
	t.f->close(t.table, b, 0);
	a = open_at(&t, "a", MIN);
	cr_expect(view(&t, a).success == 0.25);
	b = open_at(&t, "b", MIN);
	cr_expect_eq(view(&t, b).window, 1);
	cr_expect(view(&t, b).failure == 0.75);
	cr_expect(view(&t, b).fail_cohorts == 0.5);
	t.f->close(t.table, a, MIN);
	t.f->close(t.table, b, MIN);
	end(&t);
}

Test(site_idle, a_death_survives_idleness)
{
	struct fixture t;
	struct site *a;

	begin(&t, &plain, &exact, 1);
	a = open_at(&t, "a", 0);
	kill_at(&t, a, 0);
	t.f->close(t.table, a, 0);
	a = open_at(&t, "a", MIN - 1);
	cr_expect_eq(t.f->state(t.table, a, MIN - 1), SITE_DEAD);
	cr_expect_str_eq(view(&t, a).why, "refused");
	t.f->close(t.table, a, MIN - 1);
	a = open_at(&t, "a", MIN);
	cr_expect_eq(t.f->state(t.table, a, MIN), SITE_ROOM);
	cr_expect_eq(view(&t, a).deaths, 1);
	t.f->close(t.table, a, MIN);
	/* The longest that mail is deferred, and more. */
	a = open_at(&t, "a", MIN + MAX + MAX / 10);
	cr_expect_eq(view(&t, a).deaths, 1);
	t.f->close(t.table, a, MIN + MAX + MAX / 10);
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
	kill_at(&t, a, 0);
	t.f->close(t.table, a, 0);
	cr_assert_eq(fixture_configure(&t, two, 2, &shorter), 0);
	/* Twice the new maximal_backoff_time, from now on. */
	a = open_at(&t, "A", MIN / 4);
	cr_expect_eq(view(&t, a).state, SITE_DEAD);
	cr_expect_eq(view(&t, a).dead_until, MIN / 4 * 3);
	t.f->close(t.table, a, MIN / 4);
	a = open_at(&t, "A", MIN);
	cr_expect_eq(view(&t, a).deaths, 0);
	t.f->close(t.table, a, MIN);
	end(&t);
}

/* A delivery may outlast the entries that somebody waits with. */
Test(site_idle, closed_before_the_last_delivery_ends)
{
	struct fixture t;
	struct site *a;

	begin(&t, &plain, &exact, 1);
	a = open_at(&t, "A", 0);
	*t.f->user(a) = &t;
	take(&t, a, 0);
	take(&t, a, 0);
	t.f->close(t.table, a, 0);
	cr_expect_eq(open_at(&t, "a", 0), a, "its delivery runs");
	cr_expect_null(*t.f->user(a));
	cr_expect_eq(view(&t, a).busy, 2);
	t.f->close(t.table, a, 0);
	done(&t, a, SITE_AGENT_DIED, 0);
	done(&t, a, SITE_FAILED, 0);
	a = open_at(&t, "a", 0);
	cr_expect(view(&t, a).fail_cohorts == 0.5);
	t.f->close(t.table, a, 0);
	end(&t);
}
