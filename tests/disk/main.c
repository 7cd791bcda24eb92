#include "cut.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define EXIT_SKIPPED 77

/* clang-format off */
#define EACH(name, ...)                                      \
	{ "ext4: " name, cut_run, &disk_ext4, __VA_ARGS__ }, \
	{ "xfs: " name, cut_run, &disk_xfs, __VA_ARGS__ },   \
	{ "btrfs: " name, cut_run, &disk_btrfs, __VA_ARGS__ }
#define MAIL  &cut_mail, MARKS_SYNCED
#define MARKS NULL, false
#define REPORTS(strict, must_lose) NULL, strict, must_lose, &cut_reports, MARKS_SYNCED

/* Where the wrong order is a row, the right one above it has this mutation.
 * fdatasync after a move loses on ext4 alone: xfs and btrfs take the new name
 * along. */
static const struct disk_test tests[] = {
	EACH("D12 link, then one fsync", &spool_sys_real, false, false, MAIL),
	EACH("D12 link, fsync, directory too", &spool_sys_real, true, false, MAIL),
	EACH("D12 rename, then one fsync", &cut_sys_named, false, false, MAIL),
	EACH("D12 fsync, then link: must lose", &cut_sys_fsync_link, false, true, MAIL),
	EACH("D12 fsync, then rename: must lose", &cut_sys_fsync_rename, false, true, MAIL),
	EACH("D32 marks, fsync, then the move", MARKS, false, &cut_marks, MARKS_SYNCED),
	EACH("D32 marks, then the move: must lose", MARKS, true, &cut_marks, MARKS_UNSYNCED),
	{ "ext4: D34 the move, then fdatasync: must lose", cut_run, &disk_ext4,
	    MARKS, true, &cut_marks, MARKS_FDATASYNC },
	{ "ext4: D36 a report made again", cut_run, &disk_ext4, REPORTS(false, false) },
	{ "xfs: D36 a report made again", cut_run, &disk_xfs, REPORTS(false, false) },
	{ "btrfs: D36 a report made again, directory too", cut_run, &disk_btrfs, REPORTS(true, false) },
	{ "btrfs: D36 a report made again: must lose", cut_run, &disk_btrfs, REPORTS(false, true) },
	{ "D1 full disk", full_d1, NULL, NULL, false, false, NULL, MARKS_SYNCED },
	{ "D5 no inodes", full_d5, NULL, NULL, false, false, NULL, MARKS_SYNCED },
	{ "D9 read-only and back", full_d9, NULL, NULL, false, false, NULL, MARKS_SYNCED },
	{ "D19 not mounted", full_d19, NULL, NULL, false, false, NULL, MARKS_SYNCED },
};
/* clang-format on */

/* For whole.py: IMAGE as WHERE/disk, CONTROL shared, until it is unmounted. */
static int
serve(char **args)
{
	struct block b;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (block_open(&b, args[0], args[1], args[2]) < 0)
		return 1;
	puts("ready");
	fflush(stdout);
	waitpid(b.server, NULL, 0);
	return 0;
}

/* disk [TEST...] */
static bool
is_chosen(const struct disk_test *test, char **names)
{
	if (*names == NULL)
		return true;
	for (; *names != NULL; names++) {
		if (strcmp(*names, test->name) == 0)
			return true;
	}
	return false;
}

int
main(int argc, char **argv)
{
	unsigned count[] = {
		[DISK_OK] = 0, [DISK_FAILED] = 0, [DISK_SKIPPED] = 0
	};
	const char *why;
	size_t i;

	if (argc == 5 && strcmp(argv[1], "serve") == 0)
		return serve(argv + 2);
	setvbuf(stdout, NULL, _IOLBF, 0);
	why = place_open();
	for (i = 0; i < ARRAY_LEN(tests); i++) {
		enum disk_result result;

		if (!is_chosen(&tests[i], argv + 1))
			continue;
		result = why != NULL ? disk_skip(&tests[i], "%s", why)
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
