/* Delays by the size of messages, and how they are drawn. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "qsim/measure.h"

static void
measure(const char *text, struct measure *ret_measure)
{
	struct scenario sc;
	struct buf error = { 0 };

	cr_assert_eq(scenario_parse("f", text, strlen(text), &sc, &error), 0,
	    "%s", buf_str(&error));
	cr_assert_eq(measure_run(&sc, &sc.conf, sc.seed, NULL, ret_measure), 0);
	scenario_done(&sc);
}

static bool
near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

Test(compare, delays_worked_by_hand)
{
	struct measure m;
	const struct measure_part *p = m.parts;

	/* Message 1 ends at 4 s, 2 at 5 s; alone they take 4 s and 1 s. 3 is
	 * refused, and half of 4; the other half of that ends at 10 s. */
	measure("agents smtp 1\nset default_delivery_slot_cost 0\n"
		"fail x 2\n"
		"at 0 msg a#0-3\nat 2 msg b\n"
		"at 8 msg x\nat 9 msg x c\n",
	    &m);
	cr_expect_eq(p[0].messages, 2);
	cr_expect_eq(p[0].rcpts, 2);
	cr_expect_eq(p[0].deferred, 1);
	cr_assert_eq(p[0].ndelays, 1);
	cr_expect(near(p[0].delays[0], 3));
	cr_expect(near(p[0].slowdown, 3));
	cr_expect_eq(p[1].messages, 2);
	cr_expect_eq(p[1].deferred, 1);
	cr_assert_eq(p[1].ndelays, 2);
	cr_expect(near(p[1].delays[0], 1), "c goes first");
	cr_expect(near(p[1].delays[1], 4));
	cr_expect(near(measure_mean(&p[1]), 2.5));
	cr_expect_eq(p[1].nwhole, 1, "half of message 4 was deferred");
	cr_expect(near(p[1].slowdown, 1));
	cr_expect_eq(m.parts[2].messages, 0);
	cr_expect_eq(m.end, 11 * USEC_PER_SEC);
	measure_done(&m);
}

Test(compare, classes)
{
	struct measure m;
	static const uint32_t want[MEASURE_CLASSES] = { 1, 2, 2, 2, 1 };
	size_t i;

	measure("at 0 msg a\nat 0 msg a*2\nat 0 msg a*5\nat 0 msg a*6\n"
		"at 0 msg a*50\nat 0 msg a*51\nat 0 msg a*1000\n"
		"at 0 msg a*1001\n",
	    &m);
	for (i = 0; i < MEASURE_CLASSES; i++)
		cr_expect_eq(m.parts[i].messages, want[i], "%s",
		    measure_classes[i].name);
	measure_done(&m);
}

Test(compare, deliveries_that_take_no_time)
{
	struct measure m;

	measure("dur * 0\nat 0 msg a\n", &m);
	cr_expect(near(m.parts[0].slowdown, 1));
	measure_done(&m);
}

Test(compare, percentiles)
{
	static double delays[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
	static const struct {
		uint32_t n, percent;
		double want;
	} rows[] = {
		{ 0, 50, 0 },
		{ 1, 50, 1 },
		{ 1, 99, 1 },
		{ 2, 50, 1 },
		{ 3, 50, 2 },
		{ 10, 0, 1 },
		{ 10, 50, 5 },
		{ 10, 90, 9 },
		{ 10, 91, 10 },
		{ 10, 100, 10 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct measure_part p = {
			.delays = delays,
			.ndelays = rows[i].n,
		};

		cr_expect(
		    near(measure_percentile(&p, rows[i].percent), rows[i].want),
		    "%u %% of %u", rows[i].percent, rows[i].n);
	}
}

/* ---- plots ---- */

#define BRAILLE(second, third) "\xe2" second third
#define EMPTY                  BRAILLE("\xa0", "\x80")

Test(compare, plot_axis)
{
	static const struct {
		double delays[2], low, high;
	} rows[] = {
		{ { 1, 1 }, 1, 10 },
		{ { 1, 9.9 }, 1, 10 },
		{ { 1, 10 }, 1, 100 },
		{ { 0.5, 2 }, 0.1, 10 },
		{ { 500, 3 }, 1, 1000 },
		{ { 0, 1 }, 0.001, 10 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct plot_axis axis = { 0 };

		plot_axis_add(&axis, rows[i].delays, 2);
		cr_expect(near(axis.low, rows[i].low) &&
			near(axis.high, rows[i].high),
		    "row %zu: %g to %g", i, axis.low, axis.high);
	}
}

Test(compare, plot_bars)
{
	/* Three in the first column, one in the last. */
	static const double delays[] = { 1, 1, 1, 9.99 };
	struct plot_axis axis = { 0 };
	struct buf out = { 0 }, want = { 0 };
	int i;

	plot_axis_add(&axis, delays, 4);
	cr_assert_eq(plot_add_bars(&axis, "name", delays, 4, &out), 0);
	cr_assert_eq(plot_add_axis(&axis, &out), 0);
	/* Above: 8 dots of the highest, 3 of the other one. */
	cr_assert_eq(buf_printf(&want, "%29s" BRAILLE("\xa1", "\x87"), ""), 0);
	for (i = 1; i < PLOT_WIDTH; i++)
		cr_assert_eq(buf_add_str(&want, EMPTY), 0);
	cr_assert_eq(
	    buf_printf(&want, "\n  %-26s " BRAILLE("\xa1", "\x87"), "name"), 0);
	for (i = 1; i < PLOT_WIDTH - 1; i++)
		cr_assert_eq(buf_add_str(&want, EMPTY), 0);
	cr_assert_eq(
	    buf_printf(&want, BRAILLE("\xa2", "\xb0") "\n%29s|1 s\n", ""), 0);
	cr_expect_str_eq(buf_str(&out), buf_str(&want), "\n%s\nwant\n%s",
	    buf_str(&out), buf_str(&want));
	buf_done(&out);
	buf_done(&want);
}
