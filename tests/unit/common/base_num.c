#include "base/num.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

Test(base_num, F2_whole_numbers_are_read_exactly)
{
	static const struct {
		const char *text;
		int want;
		uint64_t value;
	} rows[] = {
		{ "0", 0, 0 },
		{ "10", 0, 10 },
		{ "0010", 0, 10 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "99999999999999999999999999", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ "10x", -EINVAL, 0 },
		{ " 10", -EINVAL, 0 },
		{ "10 ", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
		{ "1.5", -EINVAL, 0 },
		{ "10s", -EINVAL, 0 },
		{ "99999999999999999999999999x", -EINVAL, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t got = 77;

		cr_expect_eq(num_u64(rows[i].text, 0, UINT64_MAX, &got),
		    rows[i].want, "\"%s\"", rows[i].text);
		cr_expect_eq(got, rows[i].want == 0 ? rows[i].value : 77,
		    "\"%s\"", rows[i].text);
	}
}

Test(base_num, numbers_are_written_as_printf_does)
{
	static const uint64_t rows[] = { 0, 9, 10, 99, 100, 1234567890,
		UINT64_C(9999999999999999999), UINT64_C(10000000000000000000),
		UINT64_MAX };
	char got[NUM_DIGITS_MAX + 1], want[NUM_DIGITS_MAX + 1];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(want, sizeof(want), "%" PRIu64, rows[i]);
		cr_expect_eq(num_format(rows[i], got), strlen(want));
		cr_expect_str_eq(got, want);
	}
}

Test(base_num, ranges_include_their_ends)
{
	uint64_t got = 0;

	cr_expect_eq(num_u64("3", 3, 5, &got), 0);
	cr_expect_eq(num_u64("5", 3, 5, &got), 0);
	cr_expect_eq(num_u64("2", 3, 5, &got), -ERANGE);
	cr_expect_eq(num_u64("6", 3, 5, &got), -ERANGE);
	cr_expect_eq(num_u64("2147483648", 0, INT32_MAX, &got), -ERANGE);
	cr_expect_eq(
	    num_u64("9223372036854775808", 0, INT64_MAX, &got), -ERANGE);
}

Test(base_num, durations)
{
	static const struct {
		const char *text;
		int want;
		usec_t value;
		const char *shown;
	} rows[] = {
		{ "0", 0, 0, "0s" },
		{ "5", 0, 5 * USEC_PER_SEC, "5s" },
		{ "250ms", 0, 250 * USEC_PER_MSEC, "250ms" },
		{ "2000ms", 0, 2 * USEC_PER_SEC, "2s" },
		{ "300s", 0, 300 * USEC_PER_SEC, "5m" },
		{ "4000s", 0, 4000 * USEC_PER_SEC, "4000s" },
		{ "2h", 0, 7200 * USEC_PER_SEC, "2h" },
		{ "5d", 0, 5 * 86400 * USEC_PER_SEC, "5d" },
		{ "7d", 0, 7 * 86400 * USEC_PER_SEC, "1w" },
		{ "1w", 0, 7 * 86400 * USEC_PER_SEC, "1w" },
		{ "9223372036854775807w", -ERANGE, 0, NULL },
		{ "9223372036855s", -ERANGE, 0, NULL },
		{ "", -EINVAL, 0, NULL },
		{ "s", -EINVAL, 0, NULL },
		{ "5 s", -EINVAL, 0, NULL },
		{ "5S", -EINVAL, 0, NULL },
		{ "5sec", -EINVAL, 0, NULL },
		{ "1h30m", -EINVAL, 0, NULL },
		{ "-5s", -EINVAL, 0, NULL },
		{ "1.5s", -EINVAL, 0, NULL },
	};
	struct buf shown = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		usec_t got = 77;

		cr_expect_eq(num_duration(rows[i].text, 0, USEC_NEVER, &got),
		    rows[i].want, "\"%s\"", rows[i].text);
		cr_expect_eq(got, rows[i].want == 0 ? rows[i].value : 77,
		    "\"%s\"", rows[i].text);
		if (rows[i].shown == NULL)
			continue;
		buf_reset(&shown);
		cr_assert_eq(num_add_duration(&shown, got), 0);
		cr_expect_str_eq(buf_str(&shown), rows[i].shown);
	}
	cr_expect_eq(num_add_duration(&shown, -1), -EINVAL);
	buf_done(&shown);
}

Test(base_num, spans_are_short)
{
	static const struct {
		usec_t value;
		const char *want;
	} rows[] = {
		{ -1, "-" },
		{ 0, "0s" },
		{ 99 * USEC_PER_SEC + 999999, "99s" },
		{ 100 * USEC_PER_SEC, "1m" },
		{ 6000 * USEC_PER_SEC, "1h" },
		{ 48 * 3600 * USEC_PER_SEC, "2d" },
		{ 999 * 86400 * USEC_PER_SEC, "999d" },
		{ USEC_NEVER, ">999d" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf out = { 0 };

		cr_expect_eq(num_add_span(&out, rows[i].value), 0);
		cr_expect_str_eq(buf_str(&out), rows[i].want);
		buf_done(&out);
	}
}

Test(base_num, sizes)
{
	static const struct {
		const char *text;
		int want;
		uint64_t value;
		const char *shown;
	} rows[] = {
		{ "0", 0, 0, "0" },
		{ "100", 0, 100, "100" },
		{ "64k", 0, 65536, "64k" },
		{ "1024k", 0, 1 << 20, "1m" },
		{ "100m", 0, 100u << 20, "100m" },
		{ "2g", 0, 2ull << 30, "2g" },
		{ "17179869184g", -ERANGE, 0, NULL },
		{ "1K", -EINVAL, 0, NULL },
		{ "1kb", -EINVAL, 0, NULL },
		{ "k", -EINVAL, 0, NULL },
	};
	struct buf shown = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t got = 77;

		cr_expect_eq(num_size(rows[i].text, 0, UINT64_MAX, &got),
		    rows[i].want, "\"%s\"", rows[i].text);
		cr_expect_eq(got, rows[i].want == 0 ? rows[i].value : 77,
		    "\"%s\"", rows[i].text);
		if (rows[i].shown == NULL)
			continue;
		buf_reset(&shown);
		cr_assert_eq(num_add_size(&shown, got), 0);
		cr_expect_str_eq(buf_str(&shown), rows[i].shown);
	}
	buf_done(&shown);
}

Test(base_num, F2_decimals_are_read_exactly)
{
	static const struct {
		const char *text;
		int want;
		double value;
		const char *shown;
	} rows[] = {
		{ "0", 0, 0, "0" },
		{ "1", 0, 1, "1" },
		{ "0.5", 0, 0.5, "0.5" },
		{ "1.10", 0, 1.1, "1.1" },
		{ "0.000000000001", 0, 1e-12, "0.000000000001" },
		{ "0.99999999999999", 0, 0.99999999999999, "1" },
		{ "123456789012345", 0, 123456789012345, NULL },
		{ "1234567890123456", -ERANGE, 0, NULL },
		{ "0.123456789012345", -ERANGE, 0, NULL },
		{ "", -EINVAL, 0, NULL },
		{ ".5", -EINVAL, 0, NULL },
		{ "5.", -EINVAL, 0, NULL },
		{ "1.2.3", -EINVAL, 0, NULL },
		{ "1,5", -EINVAL, 0, NULL },
		{ "-1", -EINVAL, 0, NULL },
		{ "1e3", -EINVAL, 0, NULL },
		{ "nan", -EINVAL, 0, NULL },
		{ "inf", -EINVAL, 0, NULL },
		{ " 1", -EINVAL, 0, NULL },
	};
	struct buf shown = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		double got = 77;

		cr_expect_eq(num_decimal(rows[i].text, 0, 1e15, &got),
		    rows[i].want, "\"%s\"", rows[i].text);
		cr_expect(got == (rows[i].want == 0 ? rows[i].value : 77),
		    "\"%s\"", rows[i].text);
		if (rows[i].shown == NULL)
			continue;
		buf_reset(&shown);
		cr_assert_eq(num_add_decimal(&shown, got), 0);
		cr_expect_str_eq(buf_str(&shown), rows[i].shown);
	}
	cr_expect_eq(num_add_decimal(&shown, -0.5), -EINVAL);
	cr_expect_eq(num_add_decimal(&shown, 1e300), -EINVAL);
	buf_done(&shown);
}
