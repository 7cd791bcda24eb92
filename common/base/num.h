/* base/num.h - numbers as people write them, accepted exactly or not at all:
 * no sign, no blanks, no hexadecimal, no fraction, nothing left over (F2).
 * Failure: -EINVAL not a number of this kind, -ERANGE outside min..max. */
#ifndef BASE_NUM_H
#define BASE_NUM_H

#include "base/base.h"

int num_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret_value);
/* `300s`, `5m`, `2h`, `5d`, `1w`, `250ms`; a bare number is seconds. */
int num_duration(const char *s, usec_t min, usec_t max, usec_t *ret_value);
/* `100`, `64k`, `10m`, `2g` (powers of 1024), in bytes. */
int num_size(const char *s, uint64_t min, uint64_t max, uint64_t *ret_value);

#endif
