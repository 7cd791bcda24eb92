/* Scenarios by chance: the same seed gives the same text. */
#ifndef TESTS_QSIM_RANDOM_SCENARIO_H
#define TESTS_QSIM_RANDOM_SCENARIO_H

#include "base/buf.h"

struct dice {
	uint64_t state; /* any seed */
};
uint64_t dice_next(struct dice *d);
/* Of [low, high]. */
uint32_t dice_in(struct dice *d, uint32_t low, uint32_t high);
/* True so many times of 100. */
bool dice_pct(struct dice *d, uint32_t pct);

/* A scenario of everything that the format has, small enough for the model:
 * several transports and destinations, small mail and large, bursts, failures,
 * limiters, deaths and times long enough to come back from them. */
void random_scenario(uint64_t seed, struct buf *text);

/* The text without what the failure does not need: still true of it, and of
 * nothing with fewer lines found on the way. */
void random_shrink(struct buf *text,
    bool (*fails)(void *ctx, const struct buf *text), void *ctx);

#endif
