#include "qsim/simulate_parts.h"

uint64_t
random_next(struct random *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

double
random_unit(struct random *r)
{
	return (double)(random_next(r) >> 11) * 0x1p-53;
}
