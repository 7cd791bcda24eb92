/* base/num.h - numbers as people write them, accepted exactly or not at all:
 * no sign, no blanks, no hexadecimal, no fraction, no trailing characters.
 * -EINVAL: not a number of this kind; -ERANGE: outside min..max. */
#ifndef BASE_NUM_H
#define BASE_NUM_H

#include "base/buf.h"

/* Decimal digits and a NUL; the number of digits. */
#define NUM_DIGITS_MAX 20
size_t num_format(uint64_t value, char out[NUM_DIGITS_MAX + 1]);

int num_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret_value);
/* `300s`, `5m`, `2h`, `5d`, `1w`, `250ms`; a bare number is seconds. */
int num_duration(const char *s, usec_t min, usec_t max, usec_t *ret_value);
/* `100`, `64k`, `10m`, `2g` (powers of 1024), in bytes. */
int num_size(const char *s, uint64_t min, uint64_t max, uint64_t *ret_value);
/* `1`, `0.25`: at most 15 digits in all, so that the value is exact. */
int num_decimal(const char *s, double min, double max, double *ret_value);

/* The shortest of the forms above that reads back as the same value. -ENOMEM.
 * A decimal is written with at most 12 places. */
int num_add_duration(struct buf *out, usec_t value);
/* A duration in at most 5 characters, rounded down: 59s, 12m, 3h, 5d, >999d;
 * "-" for a negative one. */
int num_add_span(struct buf *out, usec_t value);
int num_add_size(struct buf *out, uint64_t value);
int num_add_decimal(struct buf *out, double value);

#endif
