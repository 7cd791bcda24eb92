/* Alternation, credit, health, ages, rates. */
#include "ipc/msg.h"
#include "queue-send/state/pure.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define S USEC_PER_SEC

/* ---- admission ---- */

Test(admission, one_from_incoming_one_from_deferred_in_turn)
{
	static const struct {
		const char *name;
		uint32_t incoming, deferred;
		const char *want;
	} cases[] = {
		{ "both", 4, 4, "idididid" },
		{ "much deferred", 2, 6, "ididdddd" },
		{ "much new", 6, 2, "ididiiii" },
		{ "only new", 3, 0, "iii" },
		{ "only deferred", 0, 3, "ddd" },
		{ "nothing", 0, 0, "" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		uint32_t waiting[] = { cases[i].incoming, cases[i].deferred };
		struct admission in = { 0 };
		char got[16] = "";
		int side, n = 0;

		while ((side = admission_choose(&in, waiting)) >= 0) {
			waiting[side]--;
			got[n++] = side == ADMISSION_INCOMING ? 'i' : 'd';
		}
		cr_assert_str_eq(
		    got, cases[i].want, "%s: %s", cases[i].name, got);
	}
}

/* The turn outlives the times when nothing or only one side waits: who came
 * last does not come first. */
Test(admission, the_turn_is_remembered)
{
	struct admission in = { 0 };
	uint32_t both[] = { 1, 1 }, none[] = { 0, 0 }, new[] = { 1, 0 };

	cr_assert_eq(admission_choose(&in, both), ADMISSION_INCOMING);
	cr_assert_eq(admission_choose(&in, none), -1);
	cr_assert_eq(admission_choose(&in, both), ADMISSION_DEFERRED);
	cr_assert_eq(admission_choose(&in, new), ADMISSION_INCOMING);
	cr_assert_eq(admission_choose(&in, new), ADMISSION_INCOMING);
	cr_assert_eq(admission_choose(&in, both), ADMISSION_DEFERRED);
}

Test(admission, grant)
{
	static const struct {
		uint32_t window, granted, waiting, want;
	} cases[] = {
		{ 64, 0, 0, 64 },
		{ 64, 64, 0, 0 },
		{ 64, 0, 64, 0 },
		{ 64, 30, 30, 0 },  /* a small rest waits */
		{ 64, 30, 18, 16 }, /* a quarter does not */
		{ 64, 70, 70, 0 },  /* the window became smaller */
		{ 1, 0, 0, 1 },
		{ 1, 1, 0, 0 },
		{ 1, 0, 1, 0 },
		{ 3, 1, 1, 1 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		cr_assert_eq(admission_grant(cases[i].window, cases[i].granted,
				 cases[i].waiting),
		    cases[i].want, "%zu", i);
	cr_assert_eq(admission_window(0), 1);
	cr_assert_eq(admission_window(7), 7);
	cr_assert_eq(admission_window(20000), MSG_PREP_WINDOW);
}

/* ---- health ---- */

Test(health, D9_a_read_only_file_system_stops_at_once)
{
	static const int errors[] = { -EROFS, -ENOSPC, -EDQUOT };
	size_t i;

	for (i = 0; i < ARRAY_LEN(errors); i++) {
		struct health h = { .probe_every = 5 * S };

		cr_assert(health_failed(&h, HEALTH_MARK, errors[i], 100 * S));
		cr_assert(h.read_only);
		cr_assert_not(
		    health_failed(&h, HEALTH_MARK, errors[i], 100 * S),
		    "said once");
		cr_assert_not(health_probe_due(&h, 104 * S));
		cr_assert(health_probe_due(&h, 105 * S));
		cr_assert_not(health_probed(&h, errors[i], 105 * S));
		cr_assert_not(health_probe_due(&h, 106 * S));
		cr_assert(health_probed(&h, 0, 110 * S));
		cr_assert_not(h.read_only);
		cr_assert_eq(h.errors, 2);
	}
}

Test(health, D7_three_errors_in_60_s)
{
	static const struct {
		const char *name;
		usec_t at[4];
		int want; /* the error that does it, 0: none */
	} cases[] = {
		{ "together", { 0, 0, 0, 0 }, 3 },
		{ "within", { 0, 30 * S, 60 * S, 61 * S }, 3 },
		{ "apart", { 0, 31 * S, 61 * S, 92 * S }, 0 },
		{ "late", { 0, 50 * S, 70 * S, 100 * S }, 4 },
	};
	size_t i;
	int n;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct health h = { .probe_every = 5 * S };
		int got = 0;

		for (n = 1; n <= 4 && got == 0; n++)
			if (health_failed(&h, HEALTH_OTHER, -EIO,
				1000 * S + cases[i].at[n - 1]))
				got = n;
		cr_assert_eq(got, cases[i].want, "%s: %d", cases[i].name, got);
	}
}

Test(health, D3_no_room_for_a_reason_stops_nothing)
{
	struct health h = { .probe_every = 5 * S };
	int i;

	for (i = 0; i < 10; i++)
		cr_assert_not(
		    health_failed(&h, HEALTH_OTHER, -ENOSPC, 100 * S));
	cr_assert_eq(h.errors, 10);
	cr_assert(health_failed(&h, HEALTH_OTHER, -EROFS, 100 * S));
}

/* ---- ages ---- */

#define MIN (60 * S)
#define T0  (1700000000 * S)

Test(ages, histogram_and_oldest)
{
	struct ages *a = calloc(1, sizeof(*a));
	static const int minutes[] = { 0, 4, 5, 11, 39, 700, 1279, 1280, 9000,
		300000 };
	static const uint64_t want[PAGE_AGES] = { 2, 1, 1, 1, 0, 0, 0, 0, 2,
		3 };
	uint32_t keys[ARRAY_LEN(minutes)];
	uint64_t got[PAGE_AGES];
	usec_t oldest, now = T0;
	size_t i;

	for (i = 0; i < ARRAY_LEN(minutes); i++)
		keys[i] = ages_add(a, now - minutes[i] * MIN, now);
	ages_read(a, now, got, &oldest);
	for (i = 0; i < PAGE_AGES; i++)
		cr_assert_eq(got[i], want[i], "%zu: %llu", i,
		    (unsigned long long)got[i]);
	cr_assert_gt(oldest, 0);
	cr_assert_lt(oldest, now - 9000 * MIN);
	for (i = ARRAY_LEN(minutes); i-- > 8;)
		ages_remove(a, keys[i], now);
	ages_read(a, now, got, &oldest);
	cr_assert_eq(oldest, (now - 1280 * MIN) / MIN * MIN);
	for (i = 0; i < 8; i++)
		ages_remove(a, keys[i], now + 100000 * MIN);
	ages_read(a, now + 100000 * MIN, got, &oldest);
	for (i = 0; i < PAGE_AGES; i++)
		cr_assert_eq(got[i], 0);
	cr_assert_eq(oldest, 0);
	free(a);
}

/* The oldest of two: exact to the second, the minute or the hour by its age. */
Test(ages, the_oldest_is_exact)
{
	static const struct {
		usec_t age, want; /* seconds; of what is told */
	} rows[] = {
		{ 0, 0 },
		{ 6, 6 },
		{ 59, 59 },
		{ 61, 61 },
		{ 7199, 7199 },
		{ 8000, 8000 },
		/* T0 is 20 s after a minute began, 800 s after an hour. */
		{ 9000, 9020 },
		{ 48 * 3600, 48 * 3600 + 20 },
		{ 80 * 3600, 80 * 3600 + 800 },
		{ 2400 * 3600, 2400 * 3600 + 800 },
	};
	uint64_t counts[PAGE_AGES];
	usec_t oldest;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct ages *a = calloc(1, sizeof(*a));
		uint32_t key;

		key = ages_add(a, T0 - rows[i].age * S, T0);
		ages_read(a, T0, counts, &oldest);
		cr_expect_eq(T0 - oldest, rows[i].want * S, "row %zu: %lld", i,
		    (long long)(T0 - oldest) / S);
		ages_add(a, T0 - 2 * S, T0);
		ages_remove(a, key, T0);
		ages_read(a, T0, counts, &oldest);
		cr_expect_eq(T0 - oldest, 2 * S, "row %zu: the next one", i);
		free(a);
	}
}

/* Any sequence of comings, goings and clock steps ends at zero. */
Test(ages, T2_nothing_is_left_whatever_the_clock_does)
{
	enum {
		N = 300
	};
	struct ages *a = calloc(1, sizeof(*a));
	uint32_t key[N] = { 0 };
	uint64_t got[PAGE_AGES], sum = 0, there = 0;
	usec_t now = T0, oldest;
	int step, i;

	srand(7);
	for (step = 0; step < 50000; step++) {
		now += (rand() % 1000) * S;
		if (rand() % 500 == 0)
			now += (rand() % 3 - 1) * 20 * 86400 * S;
		if (now < 0)
			now = T0;
		i = rand() % N;
		if (key[i] == 0) {
			key[i] = ages_add(
			    a, now - (rand() % 400000) * MIN / 100, now);
			there++;
		} else {
			ages_remove(a, key[i], now);
			key[i] = 0;
			there--;
		}
		ages_read(a, now, got, &oldest);
		for (sum = 0, i = 0; i < PAGE_AGES; i++)
			sum += got[i];
		cr_assert_eq(sum, there);
		cr_assert_eq(oldest != 0, there != 0);
	}
	free(a);
}

/* ---- rate ---- */

#define DAY (86400 * USEC_PER_SEC)

/* A clock that is right until it is set, at 100 days. */
Test(jumps, T1_what_had_arrived_does_not_age_by_them)
{
	static const struct {
		usec_t jump, arrival, now, want; /* days by the wall clock */
	} rows[] = {
		{ 8, 99, 108, 1 },                      /* arrived before it */
		{ 8, 100, 109, 1 }, { 8, 108, 109, 1 }, /* and after it */
		{ -8, 91, 93, 10 }, /* before the time that it was set to */
		{ -8, 99, 93, 2 },  /* of the future */
		{ -8, 93, 94, 1 },  /* not known: the younger */
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const usec_t jump = rows[i].jump * DAY;
		struct jumps j = { 0 };

		cr_expect_eq(jumps_find(&j, 100 * DAY - USEC_PER_SEC, DAY), 0);
		cr_expect_eq(jumps_find(&j, 100 * DAY, DAY + USEC_PER_SEC), 0);
		cr_expect_eq(
		    jumps_find(&j, 100 * DAY + jump, DAY + USEC_PER_SEC), jump);
		cr_expect_eq(
		    jumps_age(&j, rows[i].arrival * DAY, rows[i].now * DAY),
		    rows[i].want * DAY, "row %zu", i);
	}
}

Test(jumps, T1_slewing_and_suspends_are_none)
{
	struct jumps j = { 0 };

	cr_expect_eq(jumps_find(&j, 100 * DAY, DAY), 0);
	/* An hour of sleep: both go on. */
	cr_expect_eq(jumps_find(&j, 100 * DAY + DAY / 24, DAY + DAY / 24), 0);
	cr_expect_eq(jumps_find(&j, 100 * DAY + DAY / 24 + JUMPS_LEAST - 1,
			 DAY + DAY / 24),
	    0);
	cr_expect_eq(jumps_age(&j, 99 * DAY, 100 * DAY), DAY);
}

/* Between the last run, on day 100, and this one. */
Test(jumps, T1_a_wrong_clock_at_the_start)
{
	static const struct {
		const char *name;
		bool same_boot;
		usec_t boot;         /* days, of this one */
		usec_t wall, jump;   /* days */
		usec_t arrival, age; /* of a message, then */
	} rows[] = {
		{ "at once", true, 50, 100, 0, 96, 4 },
		{ "down for a day", true, 51, 101, 0, 96, 5 },
		{ "down for ten", true, 60, 110, 0, 96, 14 },
		{ "set meanwhile", true, 51, 109, 8, 96, 5 },
		{ "booted after a day", false, 0, 101, 0, 96, 5 },
		{ "booted, eight days ahead", false, 0, 108, 8, 96, 4 },
		{ "booted, in the past", false, 0, 10, -90, 96, 4 },
		{ "booted, a day back", false, 0, 99, -1, 96, 4 },
	};
	const struct jumps saved = { .wall = 100 * DAY, .boot = 50 * DAY };
	struct jumps j;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		jumps_resume(&j, &saved, rows[i].same_boot, rows[i].wall * DAY,
		    rows[i].boot * DAY + 1, DAY);
		cr_expect_leq(llabs(jumps_find(&j, rows[i].wall * DAY,
					rows[i].boot * DAY + 1) -
				  rows[i].jump * DAY),
		    1, "%s", rows[i].name);
		cr_expect_leq(llabs(jumps_age(&j, rows[i].arrival * DAY,
					rows[i].wall * DAY) -
				  rows[i].age * DAY),
		    1, "%s", rows[i].name);
	}
}

/* The clock is put right an hour later; that jump counts as well. */
Test(jumps, T1_T2_a_wrong_clock_that_is_put_right)
{
	static const usec_t wrong[] = { 8, -8, -90, 3650 };
	const struct jumps saved = { .wall = 100 * DAY, .boot = 50 * DAY };
	const usec_t hour = DAY / 24;
	struct jumps j;
	size_t i;

	for (i = 0; i < ARRAY_LEN(wrong); i++) {
		const usec_t wall = 100 * DAY + wrong[i] * DAY;

		jumps_resume(&j, &saved, false, wall, 1, DAY);
		(void)jumps_find(&j, wall, 1);
		cr_expect_eq(jumps_age(&j, 96 * DAY, wall), 4 * DAY, "%zu", i);
		(void)jumps_find(&j, 100 * DAY + hour, hour + 1);
		cr_expect_eq(jumps_age(&j, 96 * DAY, 100 * DAY + hour),
		    4 * DAY + hour, "%zu", i);
	}
}

/* There and back again, more often than is kept. */
Test(jumps, T1_many)
{
	struct jumps j = { 0 };
	usec_t boot = DAY, wall = 100 * DAY;
	int i;

	(void)jumps_find(&j, wall, boot);
	for (i = 0; i < 100; i++) {
		wall += i % 2 == 0 ? 8 * DAY : -8 * DAY;
		cr_expect_eq(jumps_find(&j, wall, boot),
		    i % 2 == 0 ? 8 * DAY : -8 * DAY);
	}
	cr_expect_eq(jumps_age(&j, 99 * DAY, wall), DAY);
}

Test(rate, of_the_last_minute)
{
	struct rate r = { 0 };
	int i;

	for (i = 0; i < 120; i++)
		rate_add(&r, 1000 * S);
	cr_assert_eq(rate_read(&r, 1000 * S), 200);
	cr_assert_eq(rate_read(&r, 1059 * S), 200);
	cr_assert_eq(rate_read(&r, 1060 * S), 0);
	rate_add(&r, 2000 * S);
	cr_assert_eq(rate_read(&r, 2000 * S), 1);
	rate_add(&r, 900000 * S);
	cr_assert_eq(rate_read(&r, 900000 * S), 1);
}
