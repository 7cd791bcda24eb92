#include "base/num.h"

#include <errno.h>
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

/* Decimal digits, then the name of one unit. */
static int
parse(const char *s, const struct unit *units, uint64_t *ret_value)
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
	if (over || __builtin_mul_overflow(value, units->factor, &value))
		return -ERANGE;
	*ret_value = value;
	return 0;
}

static int
parse_range(const char *s, const struct unit *units, uint64_t min, uint64_t max,
    uint64_t *ret_value)
{
	uint64_t value = 0;
	int r = parse(s, units, &value);

	if (r < 0)
		return r;
	if (value < min || value > max)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

int
num_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret_value)
{
	return parse_range(s, no_units, min, max, ret_value);
}

int
num_duration(const char *s, usec_t min, usec_t max, usec_t *ret_value)
{
	uint64_t value;
	int r =
	    parse_range(s, time_units, (uint64_t)min, (uint64_t)max, &value);

	if (r == 0)
		*ret_value = (usec_t)value;
	return r;
}

int
num_size(const char *s, uint64_t min, uint64_t max, uint64_t *ret_value)
{
	return parse_range(s, size_units, min, max, ret_value);
}
