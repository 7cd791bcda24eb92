/* The experiments of qsim published: what they are, and one run of one. */
#include "qsim/measure.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define COMMON                                                        \
	"set default_destination_concurrency_failed_cohort_limit 0\n" \
	"set default_destination_concurrency_limit 20\n"              \
	"set default_destination_recipient_limit 2\n"                 \
	"dur * 2000\n"                                                \
	"spread 5\n"

static const char connect_text[] =
    COMMON "set initial_destination_concurrency 20\n"
	   "serve host 5 6 30\n"
	   "at 0 msg host*2000\n";
static const char greeting_text[] =
    COMMON "set initial_destination_concurrency 20\n"
	   "serve host 5 6 300\n"
	   "at 0 msg host*20000\n";
static const char limiter_text[] =
    COMMON "set initial_destination_concurrency 5\n"
	   "refuse host 5\n"
	   "at 0 msg host*2000\n";

/* clang-format off */
const struct published_row published_rows[PUBLISHED_ROWS] = {
	{ "connect", "1/N", connect_text, "1/concurrency",
	  9.9, 10.3, 1, 19.4, 19.4, 0.4, 0.49, "" },
	{ "connect", "1/sqrt(N)", connect_text, "1/sqrt_concurrency",
	  10.4, 10.6, 1, 19.6, 19.6, 0.4, 0.6, "" },
	{ "connect", "1", connect_text, "1",
	  10.1, 10.8, 1, 19.4, 19.4, 0.4, 1.4, "" },
	{ "greeting", "1/N", greeting_text, "1/concurrency",
	  1.16, 1.36, 0.2, 19.8, 19.8, 0.4, 0.37, "" },
	{ "greeting", "1/sqrt(N)", greeting_text, "1/sqrt_concurrency",
	  1.21, 1.36, 0.2, 19.9, 19.9, 0.4, 0.23, "" },
	{ "greeting", "1", greeting_text, "1",
	  1.18, 1.39, 0.2, 20.0, 20.0, 0.4, 0.16, "" },
	{ "limiter", "1/N", limiter_text, "1/concurrency",
	  16.5, 16.5, 1, 5.17, 5.17, 0.2, 0.38, "1/6 = 16.7" },
	{ "limiter", "1/sqrt(N)", limiter_text, "1/sqrt_concurrency",
	  24.3, 24.5, 1, 5.28, 5.28, 0.2, 0.45, "1/4 = 25.0" },
	{ "limiter", "1", limiter_text, "1",
	  49.7, 49.7, 1, 5.63, 5.68, 0.2, 0.68, "1/2 = 50.0" },
};
/* clang-format on */

struct sums {
	uint64_t n;
	double sum, squares;
};

/* The window after each delivery report. */
static int
add_window(void *ctx, const struct simulate_report *report)
{
	struct sums *s = ctx;
	const double window = report->step->after.window;

	s->n++;
	s->sum += window;
	s->squares += window * window;
	return 0;
}

static int
read_row(const struct published_row *row, struct scenario *ret_scenario)
{
	struct buf text = { 0 }, error = { 0 };
	int r = buf_printf(&text,
	    "set default_destination_concurrency_positive_feedback %s\n"
	    "set default_destination_concurrency_negative_feedback %s\n%s",
	    row->value, row->value, row->scenario);

	if (r == 0)
		r = scenario_parse(
		    row->model, text.data, text.len, ret_scenario, &error);
	ASSERT(r == 0 || r == -ENOMEM);
	buf_done(&text);
	buf_done(&error);
	return r;
}

int
published_measure(const struct published_row *row, uint64_t seed,
    struct published_measure *ret_measure)
{
	struct scenario sc;
	struct simulate_sums sums;
	struct sums windows = { 0 };
	const struct simulate_watch watch = {
		.ctx = &windows,
		.reported = add_window,
	};
	double mean, all;
	int r = read_row(row, &sc);

	if (r < 0)
		return r;
	r = simulate(&sc, &sc.conf, seed, &watch, &sums);
	scenario_done(&sc);
	if (r < 0)
		return r;
	all = (double)(sums.delivered + sums.failed);
	mean = windows.sum / (double)windows.n;
	*ret_measure = (struct published_measure){
		.deferred = 100 * (double)sums.failed / all,
		.mean = mean,
		.deviation = sqrt(
		    fmax(0, windows.squares / (double)windows.n - mean * mean)),
	};
	return 0;
}

static bool
within(double value, double low, double high, double tolerance)
{
	return value >= low - tolerance && value <= high + tolerance;
}

bool
published_fits(
    const struct published_row *row, const struct published_measure *m)
{
	return within(m->deferred, row->deferred_low, row->deferred_high,
		   row->deferred_tolerance) &&
	    within(m->mean, row->mean_low, row->mean_high, row->mean_tolerance);
}
