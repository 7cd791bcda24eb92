#include <criterion/criterion.h>

#include <errno.h>

#include "ipc/ask.h"
#include "qscheduler/supervisor/supervisor.h"

Test(request, loads_that_can_be_and_cannot)
{
	static const struct {
		uint32_t lu, ll, ru, rl;
		int want;
		uint32_t pct;
	} rows[] = {
		{ 45, 100, 0, 0, 0, 45 },
		{ 2, 10, 5, 20, 0, 25 },
		{ 5, 20, 2, 10, 0, 25 },
		{ 0, 0, 1, 2, 0, 50 },
		{ 0, 10, 0, 10, 0, 0 },
		{ 10, 10, 0, 0, 0, 100 },
		{ 999999, 1000000, 0, 0, 0, 99 },
		{ 0, 0, 0, 0, -EINVAL, 0 },
		{ 11, 10, 0, 0, -ERANGE, 0 },
		{ 0, 0, 11, 10, -ERANGE, 0 },
		{ 1, 0, 1, 2, -ERANGE, 0 },
		{ 1, 2, 1, 0, -ERANGE, 0 },
		{ 0, 1000001, 0, 0, -ERANGE, 0 },
		{ UINT32_MAX, UINT32_MAX, 0, 0, -ERANGE, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct msg_SET_LOAD_FOR r = { .queue = 1,
			.local_used = rows[i].lu,
			.local_limit = rows[i].ll,
			.remote_used = rows[i].ru,
			.remote_limit = rows[i].rl };
		const char *why = NULL;
		uint32_t pct = 0;

		cr_expect_eq(
		    request_load(&r, &pct, &why), rows[i].want, "row %zu", i);
		cr_expect_eq(pct, rows[i].pct, "row %zu", i);
		cr_expect_eq(why != NULL, rows[i].want < 0, "row %zu", i);
	}
}
