/* Does a queue have room for new mail? */
#include "qscheduler/queues/queues.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/log.h"
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
	static const struct room_want want = { UINT64_MAX, 0, ROOM_USER };
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

/* mutation: qscheduler/queues/base.c: check_room() never says `scarce`. */
Test(room, D46_a_little_more_than_the_reserve_is_room_and_scarce)
{
	struct base_room room = { .error = -ENOSPC, .text = "as it was" };
	struct room_want want = { 0, 0, ROOM_USER };
	struct statvfs v;

	cr_assert_eq(statvfs(path, &v), 0);
	want.bytes = (uint64_t)v.f_bavail * v.f_frsize / 100 * 95;
	cr_expect_eq(base_check(&base, 3, &want, &room), 0);
	cr_expect_eq(room.error, 0);
	cr_expect(room.scarce);
	cr_expect_str_eq(room.text, "");
	want.bytes = 1;
	cr_expect_eq(base_check(&base, 3, &want, &room), 0);
	cr_expect_eq(room.error, 0);
	cr_expect_not(room.scarce);
}

static unsigned lines;

static void
count_line(const char *text UNUSED)
{
	lines++;
}

/* The number of lines that the log has after this check. */
static unsigned
lines_after(struct queue *q, const struct base_room *room)
{
	queue_note_room(q, room);
	cr_expect_eq(q->room.error, room->error);
	return lines;
}

/* mutation: qscheduler/queues/room.c: room_log_waits() is always false. */
Test(room, D46_only_the_log_waits_for_more_than_the_reserve)
{
	static struct queues all;
	static struct queue q = { .all = &all, .number = 3 };
	const struct base_room full = { -ENOSPC, false, 7, "full" };
	const struct base_room scarce = { 0, true, 7, "" };
	const struct base_room free_again = { 0, false, 7, "" };

	all.queues[0] = &q;
	all.nqueues = 1;
	log_watch(count_line);
	cr_expect_eq(lines_after(&q, &full), 1u);
	cr_expect_eq(lines_after(&q, &scarce), 1u);
	cr_expect_eq(lines_after(&q, &full), 1u);
	cr_expect_eq(lines_after(&q, &scarce), 1u);
	cr_expect_eq(lines_after(&q, &free_again), 2u);
	cr_expect_eq(lines_after(&q, &scarce), 2u);
	cr_expect_eq(lines_after(&q, &full), 3u);
}
