/* qsim published: the table. */
#include "qsim/measure.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "qsim/qsim.h"

/* Bounds and sum over several runs. */
struct spread {
	double min, max, sum;
};

struct row_sums {
	struct spread deferred, mean;
	double deviation; /* sum */
	uint32_t runs, outside;
};

static void
add(struct spread *s, double value, bool first)
{
	s->min = first ? value : fmin(s->min, value);
	s->max = first ? value : fmax(s->max, value);
	s->sum += value;
}

static int
run_row(const struct options *o, const struct published_row *row,
    struct row_sums *ret_sums)
{
	struct row_sums sums = { 0 };
	struct published_measure m;
	int r;

	for (; sums.runs < o->runs; sums.runs++) {
		r = published_measure(row, o->seed + sums.runs, &m);
		if (r < 0)
			return r;
		add(&sums.deferred, m.deferred, sums.runs == 0);
		add(&sums.mean, m.mean, sums.runs == 0);
		sums.deviation += m.deviation;
		sums.outside += published_fits(row, &m) ? 0 : 1;
	}
	*ret_sums = sums;
	return 0;
}

/* "9.9-10.3", "49.7". */
static int
add_range(struct buf *out, double low, double high, int places)
{
	int r = buf_printf(out, "%.*f", places, low);

	return r < 0 || low == high ? r
				    : buf_printf(out, "-%.*f", places, high);
}

static int
add_published(const struct published_row *row, struct buf *out)
{
	struct buf share = { 0 }, mean = { 0 };
	int r = add_range(&share, row->deferred_low, row->deferred_high,
	    row->deferred_high < 2 ? 2 : 1);

	if (r == 0)
		r = add_range(&mean, row->mean_low, row->mean_high,
		    row->mean_high < 6 ? 2 : 1);
	if (r == 0)
		r = buf_printf(&mean, "/%.2f", row->deviation);
	if (r == 0)
		r = buf_printf(
		    out, "  %-9s  %-14s", buf_str(&share), buf_str(&mean));
	buf_done(&share);
	buf_done(&mean);
	return r;
}

static int
add_row(
    const struct published_row *row, const struct row_sums *s, struct buf *out)
{
	const double n = s->runs;
	struct buf window = { 0 };
	int r = buf_printf(out, "%-8s  %-9s  %8.2f", row->model, row->feedback,
	    s->deferred.sum / n);

	if (r == 0 && s->runs > 1)
		r = buf_printf(
		    out, "  %7.2f-%-6.2f", s->deferred.min, s->deferred.max);
	if (r == 0)
		r = buf_printf(
		    &window, "%.2f/%.2f", s->mean.sum / n, s->deviation / n);
	if (r == 0)
		r = buf_printf(out, "  %-11s", buf_str(&window));
	if (r == 0 && s->runs > 1)
		r = buf_printf(out, "  %7.2f-%-6.2f", s->mean.min, s->mean.max);
	if (r == 0)
		r = add_published(row, out);
	if (r == 0)
		r = buf_printf(out, "  %-10s  %s\n", row->theory,
		    s->outside == 0 ? "ok" : "OUTSIDE");
	buf_done(&window);
	return r;
}

static int
add_head(const struct options *o, struct buf *out)
{
	const bool many = o->runs > 1;
	int r = buf_printf(out, "seed %" PRIu64, o->seed);

	if (r == 0 && many)
		r = buf_printf(out, " to %" PRIu64, o->seed + o->runs - 1);
	if (r < 0)
		return r;
	return buf_printf(out,
	    "; recipients deferred in percent, mean concurrency/standard "
	    "deviation\n\n"
	    "                     measured%s               published\n"
	    "model     feedback   deferred%s  concurrency%s  deferred   "
	    "concurrency     theory\n",
	    many ? "                                " : "",
	    many ? "  lowest-highest" : "", many ? "  lowest-highest" : "");
}

static int
run(const struct options *o, struct progress *progress, uint32_t *ret_outside)
{
	struct buf out = { 0 };
	struct row_sums sums;
	int i, r = add_head(o, &out);

	for (i = 0; r == 0 && i < PUBLISHED_ROWS; i++) {
		r = run_row(o, &published_rows[i], &sums);
		if (r == 0)
			r = add_row(&published_rows[i], &sums, &out);
		if (r == 0)
			*ret_outside += sums.outside > 0 ? 1 : 0;
		progress_tell(progress, (uint64_t)i + 1, PUBLISHED_ROWS);
	}
	progress_end(progress);
	if (r == 0)
		r = qsim_print(&out);
	buf_done(&out);
	return r;
}

int
published_main(const struct options *o)
{
	struct progress progress;
	uint32_t outside = 0;
	int code;

	progress_begin(&progress, o, "published", "rows");
	code = qsim_ended(run(o, &progress, &outside));
	if (code != 0 || outside == 0)
		return code;
	fprintf(stderr, "qsim: %" PRIu32 " of %d rows are outside\n", outside,
	    PUBLISHED_ROWS);
	return QSIM_OUTSIDE;
}
