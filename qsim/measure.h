/* qsim/measure.h - what is measured in simulations, and how it is drawn.
 *
 *   measure.c      the delays of a workload under one configuration, by the
 *                  size of its messages
 *   experiment.c   the measurements that were published with the feedback
 *                  rules (docs/SCHEDULING.md, section 7), repeated
 *   plot.c         how delays are spread, in braille: rows of bars on an axis
 *                  of time that grows by powers of ten
 *
 * Soft: -ENOMEM.
 */
#ifndef QSIM_MEASURE_H
#define QSIM_MEASURE_H

#include "base/buf.h"
#include "qsim/simulate.h"

/* ---- delays ----
 *
 * The delay of a message is from its arrival to the end of the last delivery
 * that succeeded; its slowdown that, divided by its delay when it is alone:
 * with the same agents, durations and parameters, and nothing failing. */

#define MEASURE_CLASSES 5
struct measure_class {
	const char *name;
	uint32_t max; /* recipients of a message */
};
extern const struct measure_class measure_classes[MEASURE_CLASSES];

struct measure_part {
	uint32_t messages;
	uint64_t rcpts, deferred; /* recipients: all, and those not delivered */
	double *delays;           /* seconds, rising */
	uint32_t ndelays;         /* of messages with something delivered */
	uint32_t nwhole;          /* of messages with nothing deferred */
	double slowdown;          /* mean of those */
};
struct measure {
	struct measure_part parts[MEASURE_CLASSES];
	usec_t end; /* of the run */
};

int
measure_run(const struct scenario *sc, const struct conf *conf, uint64_t seed,
    const struct simulate_watch *progress, struct measure *ret_measure);
void measure_done(struct measure *m);

double measure_mean(const struct measure_part *part);
/* The smallest delay that so many of 100 do not exceed. */
double measure_percentile(const struct measure_part *part, uint32_t percent);

/* ---- published measurements ----
 *
 * One message, recipients of one destination, two to a delivery, a second for
 * each, spread by 5 % either way; the first attempts only; no cohort limit. A
 * host serves five connections at once:
 *
 *   connect   and lets six wait; one more hangs 30 s and fails; initial
 *             concurrency 20
 *   greeting  the same with 300 s, and ten times the recipients
 *   limiter   and refuses one more at once; initial concurrency 5
 *
 * Each with a feedback of 1/N, 1/sqrt(N) and 1, both ways. */

/* Published figures: bounds of the share of recipients deferred and of the
 * mean concurrency, and how far a measured one may lie outside. */
struct published_row {
	const char *model, *feedback; /* for people */
	const char *scenario;         /* text, but for the feedback */
	const char *value;            /* of the feedback parameters */
	double deferred_low, deferred_high, deferred_tolerance; /* percent */
	double mean_low, mean_high, mean_tolerance;
	double deviation; /* published, not judged */
	const char *theory;
};

#define PUBLISHED_ROWS 9
extern const struct published_row published_rows[PUBLISHED_ROWS];

struct published_measure {
	double deferred; /* percent */
	double mean, deviation;
};

/* One run of one row. */
int published_measure(const struct published_row *row, uint64_t seed,
    struct published_measure *ret_measure);
bool published_fits(
    const struct published_row *row, const struct published_measure *m);

/* ---- drawing ---- */

#define PLOT_WIDTH 60 /* characters */

struct plot_axis {
	double low, high; /* powers of ten of a second */
};

/* An axis that has room for these too; {0} is one for nothing yet. */
void plot_axis_add(struct plot_axis *axis, const double *delays, uint32_t n);
/* Lines of bars, each behind its label; the bars are as high as the share of
 * delays, the highest fills the lines. */
int plot_add_bars(const struct plot_axis *axis, const char *label,
    const double *delays, uint32_t n, struct buf *out);
int plot_add_axis(const struct plot_axis *axis, struct buf *out);

#endif
