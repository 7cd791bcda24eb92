/* Numbers of configurations and command lines, against a model that counts in
 * 128 bits, and back into text. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

typedef unsigned __int128 wide;

struct unit {
	const char *name;
	uint64_t factor;
};
static const struct unit times[] = {
	{ "", 1000000 },
	{ "ms", 1000 },
	{ "s", 1000000 },
	{ "m", 60000000 },
	{ "h", 3600000000 },
	{ "d", 86400000000 },
	{ "w", 604800000000 },
	{ NULL, 0 },
};
static const struct unit sizes[] = {
	{ "", 1 },
	{ "k", 1024 },
	{ "m", 1048576 },
	{ "g", 1073741824 },
	{ NULL, 0 },
};
static const struct unit plain[] = { { "", 1 }, { NULL, 0 } };

/* Digits and a unit; what is beyond max is -ERANGE, also far beyond. */
static int
model(const char *s, const struct unit *units, uint64_t min, uint64_t max,
    uint64_t *ret_value)
{
	const wide huge = (wide)1 << 70;
	wide value = 0;
	size_t digits = strspn(s, "0123456789"), i;

	while (units->name != NULL && strcmp(units->name, s + digits) != 0)
		units++;
	if (digits == 0 || units->name == NULL)
		return -EINVAL;
	for (i = 0; i < digits; i++)
		value = value > huge ? huge : value * 10 + (wide)(s[i] - '0');
	value *= units->factor;
	if (value < min || value > max)
		return -ERANGE;
	*ret_value = (uint64_t)value;
	return 0;
}

static void
check_whole_numbers(const char *s, uint64_t min, uint64_t max)
{
	const usec_t tmax = (usec_t)(max & INT64_MAX);
	const usec_t tmin = (usec_t)(min & INT64_MAX);
	uint64_t want = 7, got = 7;
	usec_t time = 7;
	struct buf text = { 0 };

	MUST(num_u64(s, min, max, &got) == model(s, plain, min, max, &want));
	MUST(got == want);
	want = got = 7;
	MUST(num_size(s, min, max, &got) == model(s, sizes, min, max, &want));
	MUST(got == want);
	MUST(num_add_size(&text, got) == 0);
	MUST(num_size(buf_str(&text), 0, UINT64_MAX, &want) == 0);
	MUST(got == want);
	buf_reset(&text);
	want = 7;
	MUST(num_duration(s, tmin, tmax, &time) ==
	    model(s, times, (uint64_t)tmin, (uint64_t)tmax, &want));
	MUST((uint64_t)time == want);
	if (time % 1000 == 0) { /* shorter ones cannot be written */
		MUST(num_add_duration(&text, time) == 0);
		MUST(num_duration(buf_str(&text), 0, INT64_MAX, &time) == 0);
		MUST((uint64_t)time == want);
	}
	buf_reset(&text);
	MUST(num_add_span(&text, time) == 0 && text.len <= 5);
	buf_done(&text);
}

static void
check_decimal(const char *s)
{
	struct buf text = { 0 };
	double value = -1, again = -2;
	int r = num_decimal(s, 0, 1e15, &value);

	if (r < 0) {
		MUST((r == -EINVAL || r == -ERANGE) && value == -1);
		return;
	}
	MUST(strspn(s, "0123456789.") == strlen(s));
	MUST(value >= 0 && value <= 1e15);
	/* 12 places are written; 15 digits in all are read. */
	if (num_add_decimal(&text, value) == 0 && value < 1000 &&
	    strchr(s, '.') != NULL && strlen(strchr(s, '.')) <= 12) {
		MUST(num_decimal(buf_str(&text), 0, 1e15, &again) == 0);
		MUST(again == value);
	}
	buf_done(&text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	uint8_t bounds = (uint8_t)fuzz_number(&in, 1);
	uint64_t min = bounds & 1 ? fuzz_number(&in, 8) : 0;
	uint64_t max = bounds & 2 ? fuzz_number(&in, 8) : UINT64_MAX;
	char *s = fuzz_string(&in);

	check_whole_numbers(s, min, max);
	check_decimal(s);
	free(s);
	return 0;
}
