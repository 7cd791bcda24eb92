/* --rate: one message after the other. */
#include "qctl/act/act.h"

#include <criterion/criterion.h>
#include <errno.h>

Test(pace, A1_rates)
{
	static const struct {
		const char *text;
		int want;
		uint32_t count;
		usec_t unit;
	} rows[] = {
		{ "20/s", 0, 20, USEC_PER_SEC },
		{ "20", 0, 20, USEC_PER_SEC },
		{ "100/m", 0, 100, 60 * USEC_PER_SEC },
		{ "1/h", 0, 1, 3600 * USEC_PER_SEC },
		{ "0/s", -EINVAL, 0, 0 },
		{ "-1/s", -EINVAL, 0, 0 },
		{ "", -EINVAL, 0, 0 },
		{ "/s", -EINVAL, 0, 0 },
		{ "20/d", -EINVAL, 0, 0 },
		{ "20/s ", -EINVAL, 0, 0 },
		{ "1.5/s", -EINVAL, 0, 0 },
		{ "1000001/s", -EINVAL, 0, 0 },
		{ "99999999999999999999/s", -EINVAL, 0, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t count = 0;
		usec_t unit = 0;

		cr_expect_eq(pace_parse(rows[i].text, &count, &unit),
		    rows[i].want, "%s", rows[i].text);
		cr_expect_eq(count, rows[i].count, "%s", rows[i].text);
		cr_expect_eq(unit, rows[i].unit, "%s", rows[i].text);
	}
}

/* Two queues of 10 and 30 messages at 10/s: 4 s, 3.9 s to the last. */
Test(pace, all_queues_together_keep_the_rate)
{
	struct task t = { .ntargets = 40,
		.options = { .rate_count = 10, .rate_unit = USEC_PER_SEC },
		.view = { .now_wall = 1000 * USEC_PER_SEC } };
	size_t i, within = 0;

	cr_expect_eq(pace_span(&t.options, 40), 3900 * USEC_PER_MSEC);
	cr_expect_eq(pace_due(&t, 0, 10), t.view.now_wall);
	cr_expect_eq(pace_due(&t, 5, 10), t.view.now_wall + 2 * USEC_PER_SEC);
	for (i = 0; i < 10; i++)
		within += pace_due(&t, i, 10) < t.view.now_wall + USEC_PER_SEC;
	for (i = 0; i < 30; i++)
		within += pace_due(&t, i, 30) < t.view.now_wall + USEC_PER_SEC;
	cr_expect(
	    within >= 9 && within <= 11, "%zu in the first second", within);
	t.options.rate_count = 0;
	cr_expect_eq(pace_due(&t, 5, 10), 0);
	cr_expect_eq(pace_span(&t.options, 40), 0);
	t.options.rate_count = 1;
	t.options.rate_unit = 3600 * USEC_PER_SEC;
	cr_expect_gt(pace_span(&t.options, 100000000), 0, "no overflow");
}
