#include "queue-send/state/pure.h"

#include <stdlib.h>

#include <criterion/criterion.h>

#define S USEC_PER_SEC

static const struct retry_params params = {
	.minimal = 300 * S,
	.maximal = 4000 * S,
	.jitter_pct = 10,
	.lifetime = 5 * 86400 * S,
	.lifetime_null = 86400 * S,
};

Test(retry, delay)
{
	static const struct {
		const char *name;
		usec_t age;
		uint32_t random;
		usec_t want;
	} cases[] = {
		{ "new, middle", 0, UINT32_MAX / 2, 300 * S },
		{ "new, least", 0, 0, 270 * S },
		{ "new, most", 0, UINT32_MAX, 330 * S },
		{ "age between", 1000 * S, 0, 900 * S },
		{ "age between, most", 1000 * S, UINT32_MAX, 1100 * S },
		{ "old", 100 * 86400 * S, 0, 3600 * S },
		{ "older than time", INT64_MAX, UINT32_MAX, 4400 * S },
		{ "from the future (T2)", -86400 * S, UINT32_MAX / 2, 300 * S },
		{ "from its end", INT64_MIN, 0, 270 * S },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		usec_t got =
		    retry_delay(&params, cases[i].age, cases[i].random);

		cr_assert(llabs((long long)(got - cases[i].want)) <= 1,
		    "%s: %lld", cases[i].name, (long long)got);
	}
}

Test(retry, T4_the_widest_parameters_do_not_overflow)
{
	const struct retry_params wide = {
		.minimal = 2592000 * S,
		.maximal = 2592000 * S,
		.jitter_pct = 90,
	};

	cr_assert_eq(retry_delay(&wide, 0, 0), 259200 * S);
	cr_assert_leq(retry_delay(&wide, 0, UINT32_MAX), 4924800 * S);
	cr_assert_geq(retry_delay(&wide, 0, UINT32_MAX), 4924799 * S);
}

/* A burst that is deferred together does not come back together. */
Test(retry, jitter_spreads_a_burst)
{
	uint32_t tenth[10] = { 0 }, i;

	for (i = 0; i < 10000; i++) {
		usec_t d = retry_delay(&params, 0, i * 429496u);

		tenth[(d - 270 * S) * 10 / (60 * S + 1)]++;
	}
	for (i = 0; i < 10; i++)
		cr_assert(
		    tenth[i] > 900 && tenth[i] < 1100, "%u: %u", i, tenth[i]);
}

Test(retry, after_an_agent_died)
{
	static const struct {
		uint32_t deaths;
		usec_t want;
	} cases[] = {
		{ 0, 10 * S },
		{ 1, 10 * S },
		{ 2, 20 * S },
		{ 3, 40 * S },
		{ 9, 2560 * S },
		{ 10, 4000 * S },
		{ 255, 4000 * S },
		{ UINT32_MAX, 4000 * S },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		cr_assert_eq(retry_agent_delay(&params, cases[i].deaths),
		    cases[i].want, "%u", cases[i].deaths);
}

Test(retry, expired)
{
	static const struct {
		usec_t age;
		bool null_sender, want;
	} cases[] = {
		{ 0, false, false },
		{ 5 * 86400 * S - 1, false, false },
		{ 5 * 86400 * S, false, true },
		{ 86400 * S - 1, true, false },
		{ 86400 * S, true, true },
		{ -86400 * S, false, false },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		cr_assert_eq(
		    retry_expired(&params, cases[i].age, cases[i].null_sender),
		    cases[i].want, "%zu", i);
}

Test(retry, T2_due_times_of_another_clock)
{
	const struct retry_now now = { .mono = 50 * S, .wall = 10000 * S };
	static const struct {
		const char *name;
		usec_t due_wall, want;
	} cases[] = {
		{ "past", 9000 * S, 50 * S },
		{ "lost", 0, 50 * S },
		{ "now", 10000 * S, 50 * S },
		{ "soon", 10010 * S, 60 * S },
		{ "as far as it can be", 14400 * S, 4450 * S },
		{ "farther: the clock was stepped back", 14401 * S, 50 * S },
		{ "never", INT64_MAX, 50 * S },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		cr_assert_eq(retry_due_mono(&params, cases[i].due_wall, &now),
		    cases[i].want, "%s", cases[i].name);
}
