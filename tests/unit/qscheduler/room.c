/* Does a queue have room for new mail? */
#include "qscheduler/queues/base.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/files.h"

static char dir[32], path[64];
static struct base base;
static struct buf error;

static void
set_up(void)
{
	const struct daemon_users users = {
		.qmailq = geteuid(),
		.qmails = geteuid(),
		.qmailr = geteuid(),
		.qmail = getegid(),
		.private = true,
	};

	snprintf(dir, sizeof(dir), "/tmp/room-XXXXXX");
	cr_assert(mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/queue", dir);
	cr_assert_eq(base_open(&base, path, &users, &error), 0);
	cr_assert_eq(base_make(&base, 3, 2, &error), 0);
}

static void
tear_down(void)
{
	base_close(&base);
	buf_done(&error);
	unit_remove_tree(dir);
}

TestSuite(room, .init = set_up, .fini = tear_down);

/* mutation: qscheduler/queues/base.c: check_room() ignores the reserve. */
Test(room, D46_a_reserve_that_is_not_free_is_told_with_its_figures)
{
	static const struct room_want want = { UINT64_MAX, 0 };
	struct base_room room = { 0 };
	char begin[160];

	cr_expect_eq(base_check(&base, 3, &want, &room), 0);
	cr_expect_eq(room.error, -ENOSPC);
	snprintf(begin, sizeof(begin), "mail system full: %s has ", path);
	cr_expect_eq(
	    strncmp(room.text, begin, strlen(begin)), 0, "%s", room.text);
	cr_expect_not_null(
	    strstr(room.text, " free, queue_minfree_bytes wants 16777215 TB"),
	    "%s", room.text);
}

/* mutation: qscheduler/queues/base.c: check_room() forgets the last result. */
Test(room, D46_a_full_file_system_is_full_until_more_than_the_reserve_is_free)
{
	struct base_room room = { .error = -ENOSPC, .text = "as it was" };
	struct room_want want = { 0, 0 };
	struct statvfs v;

	cr_assert_eq(statvfs(path, &v), 0);
	want.bytes = (uint64_t)v.f_bavail * v.f_frsize / 100 * 95;
	cr_expect_eq(base_check(&base, 3, &want, &room), 0);
	cr_expect_eq(room.error, -ENOSPC);
	cr_expect_str_eq(room.text, "as it was");
	want.bytes = 1;
	cr_expect_eq(base_check(&base, 3, &want, &room), 0);
	cr_expect_eq(room.error, 0);
	cr_expect_str_eq(room.text, "");
}
