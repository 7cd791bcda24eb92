/* The published measurements, repeated, and what counts as outside. */
#include <criterion/criterion.h>
#include <string.h>

#include "qsim/measure.h"

Test(published, rows_are_within)
{
	size_t i;
	uint64_t seed;

	for (i = 0; i < PUBLISHED_ROWS; i++)
		for (seed = 1; seed <= 3; seed++) {
			const struct published_row *row = &published_rows[i];
			struct published_measure m;

			cr_assert_eq(published_measure(row, seed, &m), 0);
			cr_expect(published_fits(row, &m),
			    "%s %s: %.2f %.2f/%.2f", row->model, row->feedback,
			    m.deferred, m.mean, m.deviation);
		}
}

/* Of the windows: the limiter's are between 4 and 6. */
Test(published, deviation)
{
	struct published_measure m;

	cr_assert_eq(published_measure(&published_rows[6], 1, &m), 0);
	cr_expect(m.deviation > 0.3 && m.deviation < 0.5, "%f", m.deviation);
}

Test(published, the_same_seed_gives_the_same)
{
	struct published_measure a, b, c;

	cr_assert_eq(published_measure(&published_rows[0], 1, &a), 0);
	cr_assert_eq(published_measure(&published_rows[0], 1, &b), 0);
	cr_assert_eq(published_measure(&published_rows[0], 2, &c), 0);
	cr_expect_eq(memcmp(&a, &b, sizeof(a)), 0);
	cr_expect_neq(a.mean, c.mean);
}

/* One message of each row is wrong in one way. */
Test(published, outside)
{
	static const struct {
		size_t row;
		double deferred, mean;
		bool fits;
	} rows[] = {
		{ 0, 8.91, 19.4, true },
		{ 0, 8.89, 19.4, false },
		{ 0, 11.29, 19.4, true },
		{ 0, 11.31, 19.4, false },
		{ 0, 10, 19.01, true },
		{ 0, 10, 18.99, false },
		{ 0, 10, 19.81, false },
		{ 3, 0.97, 19.8, true },
		{ 3, 0.95, 19.8, false },
		{ 3, 1.57, 19.8, false },
		{ 6, 17.4, 5.17, true },
		{ 6, 17.6, 5.17, false },
		{ 6, 16.5, 5.36, true },
		{ 6, 16.5, 5.38, false },
		{ 8, 49.7, 5.42, false },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct published_measure m = {
			.deferred = rows[i].deferred,
			.mean = rows[i].mean,
		};

		cr_expect_eq(published_fits(&published_rows[rows[i].row], &m),
		    rows[i].fits, "row %zu of the table", i);
	}
}
