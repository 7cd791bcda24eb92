/* What is known of a destination: names, places, steps, parameters. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "site_scratch.h"

/* ---- finding ---- */

Test(site_table, names_compare_without_case)
{
	struct fixture t;
	struct site *a, *b;

	begin(&t, &plain, &exact, 1);
	a = open_at(&t, "MX.Example.ORG", 0);
	b = open_at(&t, "mx.example.org", 0);
	cr_expect_eq(a, b);
	cr_expect_str_eq(t.f->name(a), "MX.Example.ORG");
	*t.f->user(a) = &t;
	t.f->close(t.table, a, 0);
	cr_expect_eq(*t.f->user(b), &t, "opened twice, closed once");
	t.f->close(t.table, b, 0);
	a = open_at(&t, "mx.example.org", 0);
	cr_expect_null(*t.f->user(a));
	cr_expect_str_eq(t.f->name(a), "mx.example.org", "as it is opened");
	t.f->close(t.table, a, 0);
	end(&t);
}

Test(site_table, names_of_two_transports_are_two_sites)
{
	struct fixture t;
	struct site *a, *b;

	begin(&t, &plain, &exact, 1);
	a = t.f->open(t.table, 0, "a", 0);
	b = t.f->open(t.table, 1, "a", 0);
	cr_expect_neq(a, b);
	kill_at(&t, a, 0);
	cr_expect_eq(t.f->state(t.table, b, 0), SITE_ROOM);
	t.f->close(t.table, a, 0);
	t.f->close(t.table, b, 0);
	end(&t);
}

#define MANY 500

Test(site_table, many_are_all_found_again)
{
	static struct site *all[MANY];
	struct fixture t;
	char name[32];
	int i;

	begin(&t, &plain, &exact, 1);
	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "Host%d.example", i);
		all[i] = open_at(&t, name, 0);
		*t.f->user(all[i]) = &all[i];
		kill_at(&t, all[i], 0);
	}
	for (i = MANY - 1; i >= 0; i--) {
		snprintf(name, sizeof(name), "hOST%d.EXAMPLE", i);
		cr_assert_eq(open_at(&t, name, 0), all[i]);
		cr_assert_eq(*t.f->user(all[i]), &all[i]);
		t.f->close(t.table, all[i], 0);
	}
	for (i = 0; i < MANY; i += 2)
		t.f->close(t.table, all[i], 0);
	for (i = 1; i < MANY; i += 2)
		t.f->close(t.table, all[i], 0);
	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "Host%d.example", i);
		all[i] = open_at(&t, name, 1);
		cr_assert_eq(view(&t, all[i]).state, SITE_DEAD);
		cr_assert_null(*t.f->user(all[i]));
		t.f->close(t.table, all[i], 1);
	}
	end(&t);
}

/* Longer than a name should be, or none: the table does not mind. */
Test(site_table, names_of_any_length)
{
	struct fixture t;
	char name[3 * SITE_NAME_MAX];
	struct site *a, *b;

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	begin(&t, &plain, &exact, 1);
	a = open_at(&t, name, 0);
	b = open_at(&t, "", 0);
	cr_expect_str_eq(t.f->name(a), name);
	cr_expect_str_eq(t.f->name(b), "");
	t.f->close(t.table, b, 0);
	t.f->close(t.table, a, 0);
	end(&t);
}

/* ---- places ---- */

Test(site_table, places_are_taken_and_given_back)
{
	struct fixture t;
	struct site *a;

	begin(&t, &plain, &exact, 1);
	a = open_at(&t, "a", 0);
	take(&t, a, 0);
	cr_expect_eq(t.f->state(t.table, a, 0), SITE_ROOM);
	take(&t, a, 0);
	cr_expect_eq(t.f->state(t.table, a, 0), SITE_FULL);
	cr_expect_eq(t.f->take(t.table, a, 0), SITE_FULL);
	cr_expect_eq(view(&t, a).busy, 2);
	cr_expect_eq(view(&t, a).state, SITE_FULL);
	done(&t, a, SITE_DELIVERED, 0);
	cr_expect_eq(t.f->state(t.table, a, 0), SITE_ROOM);
	done(&t, a, SITE_AGENT_DIED, 0);
	cr_expect_eq(view(&t, a).busy, 0);
	t.f->close(t.table, a, 0);
	end(&t);
}

Test(site_table, an_initial_of_nothing_is_one_and_never_above_the_limit)
{
	static const struct {
		uint32_t initial, limit, want;
	} rows[] = { { 0, 5, 1 }, { 0, 0, 1 }, { 9, 5, 5 }, { 9, 0, 9 } };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct site_params p = plain;
		struct fixture t;
		struct site *a;

		p.initial_destination_concurrency = rows[i].initial;
		p.destination_concurrency_limit = rows[i].limit;
		begin(&t, &p, &exact, 1);
		a = open_at(&t, "a", 0);
		cr_expect_eq(view(&t, a).window, rows[i].want, "row %zu", i);
		t.f->close(t.table, a, 0);
		end(&t);
	}
}

/* What says nothing about the site changes nothing but the place. */
Test(site_table, a_dead_agent_and_an_untried_entry_are_no_feedback)
{
	struct site_params p = plain;
	struct site_view before, after;
	struct fixture t;
	struct site *a;

	p.initial_destination_concurrency = 4;
	p.positive = p.negative =
	    (struct window_feedback){ 0.25, WINDOW_FIXED };
	begin(&t, &p, &exact, 1);
	a = open_at(&t, "a", 0);
	deliver(&t, a, SITE_FAILED, 0);
	take(&t, a, 0);
	deliver(&t, a, SITE_DELIVERED, 0);
	take(&t, a, 0);
	done(&t, a, SITE_FAILED, 0);
	before = view(&t, a);
	cr_assert(before.failure > 0 && before.fail_cohorts > 0);
	done(&t, a, SITE_UNTRIED, 0);
	after = view(&t, a);
	cr_expect_eq(after.busy, before.busy);
	done(&t, a, SITE_AGENT_DIED, 0);
	after = view(&t, a);
	cr_expect_eq(after.busy, before.busy - 1);
	cr_expect_eq(after.window, before.window);
	cr_expect(after.success == before.success &&
	    after.failure == before.failure &&
	    after.fail_cohorts == before.fail_cohorts);
	t.f->close(t.table, a, 0);
	end(&t);
}

/* ---- reasons and steps ---- */

Test(site_table, reasons)
{
	static char long_one[SITE_WHY_MAX + 2], wide[SITE_WHY_MAX + 2];
	static const struct {
		const char *why;
		size_t want; /* bytes of it; 0: "unknown" */
	} rows[] = {
		{ "connection refused", 18 },
		{ NULL, 0 },
		{ "", 0 },
		{ long_one, SITE_WHY_MAX },
		{ long_one + 1, SITE_WHY_MAX },
		{ long_one + 2, SITE_WHY_MAX - 1 },
		/* Its last character ends beyond. */
		{ wide, SITE_WHY_MAX - 1 },
	};
	size_t i;

	memset(long_one, 'x', SITE_WHY_MAX + 1);
	memset(wide, 'x', SITE_WHY_MAX - 1);
	memcpy(wide + SITE_WHY_MAX - 1, "\xc3\xa4", 2);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct fixture t;
		struct site *a;
		const char *got;

		begin(&t, &plain, &exact, 1);
		a = open_at(&t, "a", 0);
		take(&t, a, 0);
		take(&t, a, 0);
		t.f->done(t.table, a,
		    &(struct site_report){ SITE_FAILED, 0, "another" }, 0,
		    NULL);
		t.f->done(t.table, a,
		    &(struct site_report){ SITE_FAILED, 0, rows[i].why }, 0,
		    NULL);
		got = view(&t, a).why;
		cr_assert_not_null(got);
		if (rows[i].want == 0) {
			cr_expect_str_eq(got, "unknown", "row %zu", i);
		} else {
			cr_expect_eq(strlen(got), rows[i].want, "row %zu", i);
			cr_expect_eq(
			    strncmp(got, rows[i].why, rows[i].want), 0);
		}
		t.f->close(t.table, a, 0);
		end(&t);
	}
}

Test(site_table, a_step_tells_what_it_did)
{
	struct site_params p = plain;
	struct site_step step;
	struct fixture t;
	struct site *a;

	p.positive = (struct window_feedback){ 0.5, WINDOW_FIXED };
	begin(&t, &p, &exact, 1);
	a = open_at(&t, "a", 0);
	take(&t, a, 0);
	take(&t, a, 0);
	t.f->done(t.table, a, &(struct site_report){ SITE_DELIVERED, 0, NULL },
	    0, &step);
	cr_expect_eq(step.result, SITE_DELIVERED);
	cr_expect_eq(step.before.busy, 2);
	cr_expect_eq(step.before.state, SITE_FULL);
	cr_expect(step.before.success == 0);
	cr_expect_eq(step.after.busy, 1);
	cr_expect_eq(step.after.state, SITE_ROOM);
	cr_expect(step.after.success == 0.5);
	take(&t, a, 0);
	done(&t, a, SITE_FAILED, 0);
	take(&t, a, 0);
	t.f->done(t.table, a, &(struct site_report){ SITE_FAILED, 0, "gone" },
	    0, &step);
	cr_expect_eq(step.before.state, SITE_FULL);
	cr_expect(step.before.fail_cohorts == 0.5);
	cr_expect_null(step.before.why);
	cr_expect_eq(step.after.state, SITE_DEAD);
	cr_expect(step.after.fail_cohorts == 1);
	cr_expect_eq(step.after.deaths, 1);
	cr_expect_eq(step.after.dead_until, MIN);
	cr_expect_str_eq(step.after.why, "gone");
	/* With it goes the reason, and the site; not what the step tells. */
	t.f->close(t.table, a, 0);
	t.f->done(t.table, a, &(struct site_report){ SITE_DELIVERED, 0, NULL },
	    0, &step);
	cr_expect_eq(step.before.state, SITE_DEAD);
	cr_expect_str_eq(step.before.why, "gone");
	cr_expect_eq(step.after.state, SITE_ROOM);
	cr_expect_eq(step.after.busy, 0);
	cr_expect_null(step.after.why);
	end(&t);
}

/* ---- new parameters ---- */

Test(site_table, new_parameters)
{
	struct site_params params[] = { plain, plain };
	struct fixture t;
	struct site *a, *b, *dead, *older;

	params[0].initial_destination_concurrency = 9;
	begin(&t, &params[0], &exact, 1);
	params[1] = plain;
	a = open_at(&t, "a", 0);
	older = open_at(&t, "older", 0);
	kill_at(&t, older, 0);
	dead = open_at(&t, "dead", 0);
	kill_at(&t, dead, 0);
	b = t.f->open(t.table, 1, "a", 0);
	take(&t, a, 0);
	take(&t, a, 0);
	take(&t, a, 0);
	params[0].destination_concurrency_limit = 2;
	cr_expect_eq(fixture_configure(&t, params, 1, &exact), -EINVAL);
	cr_expect_eq(fixture_configure(&t, params, 3, &exact), -EINVAL);
	cr_expect_eq(view(&t, a).window, 9);
	cr_expect_eq(fixture_configure(&t, params, 2, &exact), 0);
	cr_expect_eq(t.f->state(t.table, a, 0), SITE_FULL);
	cr_expect_eq(view(&t, a).window, 2);
	cr_expect_eq(view(&t, a).busy, 3, "what runs goes on");
	cr_expect_eq(t.f->state(t.table, b, 0), SITE_ROOM);
	cr_expect_eq(view(&t, dead).state, SITE_DEAD);
	cr_expect_eq(t.f->state(t.table, dead, MIN), SITE_ROOM);
	cr_expect_eq(view(&t, dead).window, 2);
	done(&t, a, SITE_AGENT_DIED, 0);
	done(&t, a, SITE_AGENT_DIED, 0);
	done(&t, a, SITE_AGENT_DIED, 0);
	t.f->close(t.table, a, 0);
	t.f->close(t.table, b, 0);
	t.f->flush(t.table, 0);
	cr_expect_eq(t.f->state(t.table, older, 0), SITE_ROOM);
	cr_expect_eq(view(&t, older).window, 2);
	t.f->close(t.table, dead, 0);
	t.f->close(t.table, older, 0);
	end(&t);
}

Test(site_table, more_transports_than_can_be)
{
	static struct site_params many[UINT16_MAX + 1];
	const struct shared_params p = { many, NULL, ARRAY_LEN(many), exact };
	struct shared *sites = NULL;

	cr_expect_eq(shared_new_alone(&p, 1, 1, &sites), -EINVAL);
	cr_expect_null(sites);
}
