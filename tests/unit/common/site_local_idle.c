/* What stays known of a destination that nobody has open. */
#include "site/site.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "site_local_scratch.h"

Test(site_local_idle, what_is_learned_survives_idleness)
{
	struct site_params p = plain;
	struct fixture t;
	struct site *a, *b, *c;

	p.positive = p.negative =
	    (struct window_feedback){ 0.25, WINDOW_FIXED };
	begin(&t, &p, &exact, 10, 1);
	a = open_at(&t, "A", 0);
	b = open_at(&t, "B", 0);
	c = open_at(&t, "C", 0);
	deliver(&t, a, SITE_DELIVERED, 0);
	deliver(&t, b, SITE_FAILED, 0);
	deliver(&t, c, SITE_AGENT_DIED, 0);
	t.f->close(t.table, c, 0);
	t.f->close(t.table, a, 0);
	t.f->close(t.table, b, 0);
	cr_expect(is_known(&t, "A", "a", MIN));
	cr_expect(is_known(&t, "B", "b", MIN));
	cr_expect_not(is_known(&t, "C", "c", MIN), "it has learned nothing");
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

Test(site_local_idle, a_death_survives_idleness)
{
	struct fixture t;
	struct site *a;

	begin(&t, &plain, &exact, 10, 1);
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

Test(site_local_idle, the_least_recently_used_is_forgotten_first)
{
	static const char *const upper[] = { "A", "B", "C", "D" };
	struct fixture t;
	struct site *all[4];
	int i;

	begin(&t, &plain, &exact, 3, 1);
	for (i = 0; i < 4; i++) {
		all[i] = open_at(&t, upper[i], 0);
		kill_at(&t, all[i], 0);
	}
	/* Closed as C, A, B; then A was used once more. */
	t.f->close(t.table, all[2], 1);
	t.f->close(t.table, all[0], 2);
	t.f->close(t.table, all[1], 3);
	cr_expect(is_known(&t, "A", "a", 4));
	t.f->close(t.table, all[3], 5);
	cr_expect(is_known(&t, "A", "a", 6));
	cr_expect(is_known(&t, "B", "b", 6));
	cr_expect(is_known(&t, "D", "d", 6));
	cr_expect_not(is_known(&t, "C", "c", 6));
	end(&t);
}

Test(site_local_idle, nothing_is_remembered_where_there_is_no_room)
{
	struct fixture t;
	struct site *a;

	begin(&t, &plain, &exact, 0, 1);
	a = open_at(&t, "A", 0);
	kill_at(&t, a, 0);
	t.f->close(t.table, a, 0);
	cr_expect_not(is_known(&t, "A", "a", 0));
	end(&t);
}

/* Twice the longest backoff, by any open or close. */
Test(site_local_idle, what_was_idle_for_long_is_forgotten)
{
	static const char *const upper[] = { "A", "B", "C", "D", "E" };
	struct fixture t;
	struct site *a, *other;
	int i;

	begin(&t, &plain, &exact, 10, 1);
	for (i = 0; i < 5; i++) {
		a = open_at(&t, upper[i], 0);
		kill_at(&t, a, 0);
		t.f->close(t.table, a, i);
	}
	other = open_at(&t, "other", 2 * MAX);
	cr_expect(is_known(&t, "A", "a", 2 * MAX), "used again now");
	t.f->close(t.table, other, 2 * MAX + 2);
	/* By now B alone is older. */
	cr_expect_not(is_known(&t, "B", "b", 2 * MAX + 2));
	cr_expect(is_known(&t, "A", "a", 2 * MAX + 2));
	cr_expect(is_known(&t, "C", "c", 2 * MAX + 2));
	end(&t);
}

/* Who is dead beyond that stays known until it opens. */
Test(site_local_idle, a_dead_one_is_not_forgotten_before_it_opens)
{
	const struct site_backoff shorter = { 1, 1, 0 };
	const struct site_params two[] = { plain, plain };
	struct fixture t;
	struct site *a;

	begin(&t, &plain, &exact, 10, 1);
	a = open_at(&t, "A", 0);
	kill_at(&t, a, 0);
	t.f->close(t.table, a, 0);
	cr_assert_eq(local_configure(t.sites, two, 2, &shorter), 0);
	a = open_at(&t, "other", MIN - 1);
	t.f->close(t.table, a, MIN - 1);
	cr_expect(is_known(&t, "A", "a", MIN - 1));
	a = open_at(&t, "other", MIN + 2);
	t.f->close(t.table, a, MIN + 2);
	cr_expect_not(is_known(&t, "A", "a", MIN + 2));
	end(&t);
}

/* A delivery may outlast the entries that somebody waits with. */
Test(site_local_idle, closed_before_the_last_delivery_ends)
{
	struct fixture t;
	struct site *a;

	begin(&t, &plain, &exact, 10, 1);
	a = open_at(&t, "A", 0);
	*t.f->user(a) = &t;
	take(&t, a, 0);
	take(&t, a, 0);
	t.f->close(t.table, a, 0);
	cr_expect_eq(open_at(&t, "a", 0), a);
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

Test(site_local_idle, closed_in_any_order)
{
	struct site *all[6];
	struct fixture t;
	static const int order[] = { 4, 0, 5, 2, 1, 3 };
	char name[2] = "a";
	size_t i;

	begin(&t, &plain, &exact, 2, 1);
	for (i = 0; i < 6; i++) {
		name[0] = (char)('A' + i);
		all[i] = open_at(&t, name, 0);
		kill_at(&t, all[i], 0);
	}
	for (i = 0; i < 6; i++)
		t.f->close(t.table, all[order[i]], 1);
	cr_expect(is_known(&t, "B", "b", 2));
	cr_expect(is_known(&t, "D", "d", 2));
	for (i = 0; i < 6; i++) {
		name[0] = (char)('A' + i);
		if (i != 1 && i != 3) {
			char other[2] = { (char)('a' + i), '\0' };

			cr_expect_not(is_known(&t, name, other, 2));
		}
	}
	end(&t);
}

Test(site_local_idle, freed_with_whatever_is_remembered)
{
	struct fixture t;
	struct site *a;
	int i;

	begin(&t, &plain, &exact, 100, 1);
	for (i = 0; i < 50; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%d", i);
		a = open_at(&t, name, 0);
		kill_at(&t, a, 0);
		t.f->close(t.table, a, 0);
	}
	end(&t);
	local_free(&t.sites);
}
