/* base/random.h - chance that comes out the same each time: the same state
 * gives the same numbers on every machine. Nobody who must not guess them may
 * see one. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include "base/base.h"

/* splitmix64, by Sebastiano Vigna: in the public domain. The state moves on;
 * it starts as any seed. */
static inline uint64_t
random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

#endif
