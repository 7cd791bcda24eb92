/* qsim/measure.h - the delays of a workload under one configuration, by the
 * size of its messages.
 *
 * The delay of a message is from its arrival to the end of the last delivery
 * that succeeded; its slowdown that, divided by its delay when it is alone:
 * with the same agents, durations and parameters, and nothing failing.
 * Soft: -ENOMEM.
 */
#ifndef QSIM_MEASURE_H
#define QSIM_MEASURE_H

#include "qsim/simulate.h"

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

#endif
