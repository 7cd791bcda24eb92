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
	cr_expect_str_eq(site_name(a), "MX.Example.ORG");
	*site_user(a) = &t;
	site_close(a, 0);
	cr_expect_eq(*site_user(b), &t, "opened twice, closed once");
	site_close(b, 0);
	a = open_at(&t, "mx.example.org", 0);
	cr_expect_null(*site_user(a));
	cr_expect_str_eq(site_name(a), "mx.example.org", "as it is opened");
	site_close(a, 0);
	end(&t);
}

Test(site_table, names_of_two_transports_are_two_sites)
{
	struct fixture t;
	struct site *a, *b;

	begin(&t, &plain, &exact, 1);
	a = site_open(t.shared, 0, "a", 0);
	b = site_open(t.shared, 1, "a", 0);
	cr_expect_neq(a, b);
	kill_at(a, 0);
	cr_expect_eq(site_state(b, 0), SITE_ROOM);
	site_close(a, 0);
	site_close(b, 0);
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
		*site_user(all[i]) = &all[i];
		kill_at(all[i], 0);
	}
	for (i = MANY - 1; i >= 0; i--) {
		snprintf(name, sizeof(name), "hOST%d.EXAMPLE", i);
		cr_assert_eq(open_at(&t, name, 0), all[i]);
		cr_assert_eq(*site_user(all[i]), &all[i]);
		site_close(all[i], 0);
	}
	for (i = 0; i < MANY; i += 2)
		site_close(all[i], 0);
	for (i = 1; i < MANY; i += 2)
		site_close(all[i], 0);
	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "Host%d.example", i);
		all[i] = open_at(&t, name, 1);
		cr_assert_eq(view(all[i]).state, SITE_DEAD);
		cr_assert_null(*site_user(all[i]));
		site_close(all[i], 1);
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
	cr_expect_str_eq(site_name(a), name);
	cr_expect_str_eq(site_name(b), "");
	site_close(b, 0);
	site_close(a, 0);
	end(&t);
}

/* ---- places ---- */

Test(site_table, places_are_taken_and_given_back)
{
	struct fixture t;
	struct site *a;

	begin(&t, &plain, &exact, 1);
	a = open_at(&t, "a", 0);
	take(a, 0);
	cr_expect_eq(site_state(a, 0), SITE_ROOM);
	take(a, 0);
	cr_expect_eq(site_state(a, 0), SITE_FULL);
	cr_expect_eq(site_take(a, 0), SITE_FULL);
	cr_expect_eq(view(a).busy, 2);
	cr_expect_eq(view(a).state, SITE_FULL);
	done(a, SITE_DELIVERED, 0);
	cr_expect_eq(site_state(a, 0), SITE_ROOM);
	done(a, SITE_AGENT_DIED, 0);
	cr_expect_eq(view(a).busy, 0);
	site_close(a, 0);
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
		cr_expect_eq(view(a).window, rows[i].want, "row %zu", i);
		site_close(a, 0);
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
	deliver(a, SITE_FAILED, 0);
	take(a, 0);
	deliver(a, SITE_DELIVERED, 0);
	take(a, 0);
	done(a, SITE_FAILED, 0);
	before = view(a);
	cr_assert(before.failure > 0 && before.fail_cohorts > 0);
	done(a, SITE_UNTRIED, 0);
	after = view(a);
	cr_expect_eq(after.busy, before.busy);
	done(a, SITE_AGENT_DIED, 0);
	after = view(a);
	cr_expect_eq(after.busy, before.busy - 1);
	cr_expect_eq(after.window, before.window);
	cr_expect(after.success == before.success &&
	    after.failure == before.failure &&
	    after.fail_cohorts == before.fail_cohorts);
	site_close(a, 0);
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
		take(a, 0);
		take(a, 0);
		site_done(a, &(struct site_report){ SITE_FAILED, 0, "another" },
		    0, NULL);
		site_done(a,
		    &(struct site_report){ SITE_FAILED, 0, rows[i].why }, 0,
		    NULL);
		got = view(a).why;
		cr_assert_not_null(got);
		if (rows[i].want == 0) {
			cr_expect_str_eq(got, "unknown", "row %zu", i);
		} else {
			cr_expect_eq(strlen(got), rows[i].want, "row %zu", i);
			cr_expect_eq(
			    strncmp(got, rows[i].why, rows[i].want), 0);
		}
		site_close(a, 0);
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
	take(a, 0);
	take(a, 0);
	site_done(
	    a, &(struct site_report){ SITE_DELIVERED, 0, NULL }, 0, &step);
	cr_expect_eq(step.result, SITE_DELIVERED);
	cr_expect_eq(step.before.busy, 2);
	cr_expect_eq(step.before.state, SITE_FULL);
	cr_expect(step.before.success == 0);
	cr_expect_eq(step.after.busy, 1);
	cr_expect_eq(step.after.state, SITE_ROOM);
	cr_expect(step.after.success == 0.5);
	take(a, 0);
	done(a, SITE_FAILED, 0);
	take(a, 0);
	site_done(a, &(struct site_report){ SITE_FAILED, 0, "gone" }, 0, &step);
	cr_expect_eq(step.before.state, SITE_FULL);
	cr_expect(step.before.fail_cohorts == 0.5);
	cr_expect_null(step.before.why);
	cr_expect_eq(step.after.state, SITE_DEAD);
	cr_expect(step.after.fail_cohorts == 1);
	cr_expect_eq(step.after.deaths, 1);
	cr_expect_eq(step.after.dead_until, MIN);
	cr_expect_str_eq(step.after.why, "gone");
	/* With it goes the reason, and the site; not what the step tells. */
	site_close(a, 0);
	site_done(
	    a, &(struct site_report){ SITE_DELIVERED, 0, NULL }, 0, &step);
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
	kill_at(older, 0);
	dead = open_at(&t, "dead", 0);
	kill_at(dead, 0);
	b = site_open(t.shared, 1, "a", 0);
	take(a, 0);
	take(a, 0);
	take(a, 0);
	params[0].destination_concurrency_limit = 2;
	cr_expect_eq(fixture_configure(&t, params, 1, &exact), -EINVAL);
	cr_expect_eq(fixture_configure(&t, params, 3, &exact), -EINVAL);
	cr_expect_eq(view(a).window, 9);
	cr_expect_eq(fixture_configure(&t, params, 2, &exact), 0);
	cr_expect_eq(site_state(a, 0), SITE_FULL);
	cr_expect_eq(view(a).window, 2);
	cr_expect_eq(view(a).busy, 3, "what runs goes on");
	cr_expect_eq(site_state(b, 0), SITE_ROOM);
	cr_expect_eq(view(dead).state, SITE_DEAD);
	cr_expect_eq(site_state(dead, MIN), SITE_ROOM);
	cr_expect_eq(view(dead).window, 2);
	done(a, SITE_AGENT_DIED, 0);
	done(a, SITE_AGENT_DIED, 0);
	done(a, SITE_AGENT_DIED, 0);
	site_close(a, 0);
	site_close(b, 0);
	site_flush(t.shared, 0);
	cr_expect_eq(site_state(older, 0), SITE_ROOM);
	cr_expect_eq(view(older).window, 2);
	site_close(dead, 0);
	site_close(older, 0);
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
