#include "disk.h"

#include <stdio.h>

#define EXIT_SKIPPED 77

/* clang-format off */
static const struct disk_test tests[] = {
	{ "D12 link, then one fsync", cut_run, &spool_sys_real, false, false },
	{ "D12 link, fsync, directory too", cut_run, &spool_sys_real, true, false },
	{ "D12 rename, then one fsync", cut_run, &cut_sys_named, false, false },
	{ "D12 fsync, then link: must lose", cut_run, &cut_sys_fsync_link, false, true },
	{ "D12 fsync, then rename: must lose", cut_run, &cut_sys_fsync_rename, false, true },
	{ "D12 no fsync: must lose", cut_run, &cut_sys_no_fsync, false, true },
	{ "D1 full disk", full_d1, NULL, false, false },
	{ "D5 no inodes", full_d5, NULL, false, false },
	{ "D9 read-only and back", full_d9, NULL, false, false },
	{ "D19 not mounted", full_d19, NULL, false, false },
};
/* clang-format on */

int
main(void)
{
	unsigned count[] = {
		[DISK_OK] = 0, [DISK_FAILED] = 0, [DISK_SKIPPED] = 0
	};
	const char *why;
	size_t i;

	setvbuf(stdout, NULL, _IONBF, 0);
	why = place_open();
	for (i = 0; i < ARRAY_LEN(tests); i++) {
		enum disk_result result = why != NULL
		    ? disk_skip(&tests[i], "%s", why)
		    : tests[i].run(&tests[i]);

		count[result]++;
		if (result == DISK_OK)
			printf("disk: %s: ok\n", tests[i].name);
	}
	if (why == NULL)
		place_close();
	printf("%u passed, %u failed\n", count[DISK_OK], count[DISK_FAILED]);
	if (count[DISK_FAILED] > 0)
		return 1;
	return count[DISK_SKIPPED] > 0 ? EXIT_SKIPPED : 0;
}
