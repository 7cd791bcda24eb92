/* qsim/published.h - the measurements that were published with the feedback
 * rules (docs/SCHEDULING.md, section 7), repeated under the virtual clock.
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
 * Each with a feedback of 1/N, 1/sqrt(N) and 1, both ways. Soft: -ENOMEM.
 */
#ifndef QSIM_PUBLISHED_H
#define QSIM_PUBLISHED_H

#include "qsim/simulate.h"

/* What was published: bounds of the share of recipients deferred, and of the
 * mean concurrency; how far measured may lie outside. */
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

/* One run of one row. error: what simulate() has none for. */
int published_measure(const struct published_row *row, uint64_t seed,
    struct published_measure *ret_measure);
bool published_fits(
    const struct published_row *row, const struct published_measure *m);

#endif
