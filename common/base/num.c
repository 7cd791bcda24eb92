#include "base/num.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit no_units[] = { { "", 1 }, { NULL, 0 } };
static const struct unit time_units[] = {
	{ "", 1000000 },
	{ "ms", 1000 },
	{ "s", 1000000 },
	{ "m", 60ull * 1000000 },
	{ "h", 3600ull * 1000000 },
	{ "d", 86400ull * 1000000 },
	{ "w", 604800ull * 1000000 },
	{ NULL, 0 },
};
static const struct unit size_units[] = {
	{ "", 1 },
	{ "k", 1ull << 10 },
	{ "m", 1ull << 20 },
	{ "g", 1ull << 30 },
	{ NULL, 0 },
};

size_t
num_format(uint64_t value, char out[NUM_DIGITS_MAX + 1])
{
	char *end = out + 1, *p;
	uint64_t left;

	for (left = value; left >= 10; left /= 10)
		end++;
	*end = '\0';
	for (p = end; p > out; value /= 10)
		*--p = (char)('0' + value % 10);
	return (size_t)(end - out);
}

/* Decimal digits, then the name of one unit. */
static int
parse(const char *s, const struct unit *units, uint64_t min, uint64_t max,
    uint64_t *ret_value)
{
	uint64_t value = 0;
	bool over = false;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	for (; *s >= '0' && *s <= '9'; s++)
		over |= __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *s - '0', &value);
	while (units->name != NULL && strcmp(units->name, s) != 0)
		units++;
	if (units->name == NULL)
		return -EINVAL;
	if (over || __builtin_mul_overflow(value, units->factor, &value) ||
	    value < min || value > max)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

int
num_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret_value)
{
	return parse(s, no_units, min, max, ret_value);
}

int
num_duration(const char *s, usec_t min, usec_t max, usec_t *ret_value)
{
	uint64_t value;
	int r = parse(s, time_units, (uint64_t)min, (uint64_t)max, &value);

	if (r == 0)
		*ret_value = (usec_t)value;
	return r;
}

int
num_size(const char *s, uint64_t min, uint64_t max, uint64_t *ret_value)
{
	return parse(s, size_units, min, max, ret_value);
}

int
num_decimal(const char *s, double min, double max, double *ret_value)
{
	int64_t value = 0, scale = 1;
	int digits = 0;
	bool point = false;
	double d;

	for (; *s != '\0'; s++) {
		if (*s == '.' && !point && digits > 0) {
			point = true;
			continue;
		}
		if (*s < '0' || *s > '9')
			return -EINVAL;
		if (++digits > 15)
			return -ERANGE;
		value = value * 10 + (*s - '0');
		scale *= point ? 10 : 1;
	}
	if (digits == 0 || (point && scale == 1))
		return -EINVAL;
	d = (double)value / (double)scale;
	if (d < min || d > max)
		return -ERANGE;
	*ret_value = d;
	return 0;
}

/* The largest unit that divides the value. */
static int
add_with_unit(struct buf *out, const struct unit *units, uint64_t value)
{
	const struct unit *best = NULL, *u;

	for (u = units; u->name != NULL; u++)
		if (value % u->factor == 0 &&
		    (best == NULL || u->factor >= best->factor))
			best = u;
	if (best == NULL)
		return -EINVAL;
	return buf_printf(
	    out, "%" PRIu64 "%s", value / best->factor, best->name);
}

int
num_add_duration(struct buf *out, usec_t value)
{
	if (value < 0)
		return -EINVAL;
	if (value == 0)
		return buf_add_str(out, "0s");
	return add_with_unit(out, time_units, (uint64_t)value);
}

int
num_add_span(struct buf *out, usec_t value)
{
	static const struct {
		int64_t seconds, below;
		char unit;
	} spans[] = {
		{ 1, 100, 's' },
		{ 60, 100, 'm' },
		{ 3600, 48, 'h' },
		{ 86400, 1000, 'd' },
	};
	const int64_t seconds = value / USEC_PER_SEC;
	size_t i;

	if (value < 0)
		return buf_add_char(out, '-');
	for (i = 0; i < ARRAY_LEN(spans); i++)
		if (seconds / spans[i].seconds < spans[i].below)
			return buf_printf(out, "%" PRId64 "%c",
			    seconds / spans[i].seconds, spans[i].unit);
	return buf_add_str(out, ">999d");
}

int
num_add_size(struct buf *out, uint64_t value)
{
	if (value == 0)
		return buf_add_str(out, "0");
	return add_with_unit(out, size_units, value);
}

/* Written from integers, since printf() would follow the locale. */
int
num_add_decimal(struct buf *out, double value)
{
	const uint64_t scale = 1000000000000;
	uint64_t whole, part;
	int r, width = 12;

	if (!(value >= 0 && value < 1e15))
		return -EINVAL;
	whole = (uint64_t)value;
	part = (uint64_t)((value - (double)whole) * (double)scale + 0.5);
	whole += part / scale;
	part %= scale;
	r = buf_printf(out, "%" PRIu64, whole);
	if (r < 0 || part == 0)
		return r;
	for (; part % 10 == 0; part /= 10)
		width--;
	return buf_printf(out, ".%0*" PRIu64, width, part);
}
