/* qsim/random.h - chance that comes out the same each time: the same seed
 * gives the same numbers, on every machine (splitmix64). */
#ifndef QSIM_RANDOM_H
#define QSIM_RANDOM_H

#include "base/base.h"

struct random {
	uint64_t state; /* starts as the seed */
};

uint64_t random_next(struct random *r);
/* 0 to 1, 1 excluded. */
double random_unit(struct random *r);

#endif
