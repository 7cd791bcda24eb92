/* qsim/simulate.h - a scenario under a virtual clock, on the scheduler that
 * delivers real mail (common/sched).
 *
 * At one instant messages come first, by their number, then deliveries end, in
 * the order in which they began; then free agents select until none can.
 * Recipients of a dead destination are deferred, and no deferred recipient is
 * tried again. The same scenario, configuration and seed give the same run.
 *
 * Soft: -ENOMEM; what a watcher returned.
 */
#ifndef QSIM_SIMULATE_H
#define QSIM_SIMULATE_H

#include "qsim/scenario.h"
#include "sched/sched.h"

/* One selection: decision is of use during the call only. */
struct simulate_selection {
	usec_t now;
	uint32_t message;     /* number, from 1 */
	uint32_t destination; /* index into those of the scenario */
	const struct sched_decision *decision;
};

/* The end of a delivery, or of an entry that found its destination dead. */
struct simulate_report {
	usec_t now;
	uint32_t message;
	uint32_t destination;
	const struct sched_entry *entry;
	enum site_result result;
	const char *why;              /* of what was not delivered */
	const struct site_step *step; /* NULL for SITE_UNTRIED */
	bool last;                    /* nothing of the message is left to do */
};

/* The owner of a message, as the scheduler's views name it. */
uint32_t simulate_number(const struct scenario *sc, const void *owner);

/* Each may be NULL. A return other than 0 ends the run. */
struct simulate_watch {
	void *ctx;
	int (*selected)(void *ctx, const struct simulate_selection *selection);
	int (*reported)(void *ctx, const struct simulate_report *report);
	/* Now and then: recipients dealt with, of all. */
	void (*progress)(void *progress_ctx, uint64_t done, uint64_t all);
	void *progress_ctx;
};

struct simulate_sums {
	usec_t end; /* of the last event */
	uint64_t deliveries;
	uint64_t delivered, failed, untried; /* recipients */
};

int simulate(const struct scenario *sc, const struct conf *conf, uint64_t seed,
    const struct simulate_watch *watch, struct simulate_sums *ret_sums);

#endif
