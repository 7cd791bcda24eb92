/* What people are told of a file system that takes no new mail. */
#include "spool/room.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char text[ROOM_TEXT_SIZE];
static enum room_writer writer; /* of describe() */

static const char *
describe(uint64_t bytes, uint64_t inodes, uint64_t to_come, int error)
{
	const struct room_want want = { bytes, inodes, writer };
	int fd = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	room_describe(fd, "/q", &want, to_come, error, text);
	close(fd);
	return text;
}

static void
expect_part(const char *part)
{
	cr_expect_not_null(strstr(text, part), "%s: %s", part, text);
}

/* mutation: common/spool/room.c: describe_bytes() names no parameter. */
Test(room, D46_the_text_has_path_figures_and_parameter)
{
	(void)describe(1ull << 60, 0, 0, -ENOSPC);
	expect_part("mail system full: /q has ");
	expect_part(" free, queue_minfree_bytes wants 1048576 TB");
	(void)describe(0, 1ull << 60, 0, -ENOSPC);
	expect_part("mail system full: /q has ");
	expect_part(
	    " inodes free, queue_minfree_inodes wants 1152921504606846976");
	(void)describe(0, 0, 1ull << 60, -ENOSPC);
	expect_part("wants 0 bytes beside this message of 1048576 TB");
}

Test(room, D46_other_errors_have_their_path)
{
	char brief[64];

	cr_expect_str_eq(describe(0, 0, 0, -ENOSPC),
	    "mail system full: /q: No space left on device");
	cr_expect_str_eq(describe(0, 0, 0, -EDQUOT),
	    "mail system full: /q: Disk quota exceeded");
	cr_expect_str_eq(describe(0, 0, 0, -EROFS),
	    "mail cannot be stored: /q: Read-only file system");
	cr_expect_str_eq(describe(0, 0, 0, -EIO),
	    "mail cannot be stored: /q: Input/output error");
	room_shorten(text, brief, sizeof(brief));
	cr_expect_str_eq(brief, "/q: Input/output error");
}

/* mutation: common/spool/room.c: room_shorten() cuts the end. */
Test(room, D46_a_long_path_loses_its_beginning_and_keeps_the_figures)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "mail system full: /aaaa/bbbb/cccc has 5 MB free",
		    ".../cccc has 5 MB free" },
		{ "mail system full: /aaaa/bbbb/ccc has 5 MB free",
		    ".../ccc has 5 MB free" },
		{ "mail system full: /q has 5 MB free, MB free",
		    "...s 5 MB free, MB free" },
		{ "mail system full: /\303\244\303\244\303\244\303\244"
		  "\303\244 has 5 MB free, f",
		    "...\303\244 has 5 MB free, f" },
		{ "mail cannot be stored: /aaaaaaaaa: Input/output error",
		    "...: Input/output error" },
	};
	char brief[24];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		room_shorten(rows[i].text, brief, sizeof(brief));
		cr_expect_str_eq(brief, rows[i].want, "%s", brief);
	}
}

/* A reserve of 64 units: users leave all of it, deliveries three quarters, root
 * a half. mutation: common/spool/room.c: kept() is the reserve, or a half of it
 * for all. */
Test(room, D48_root_and_deliveries_use_a_part_of_the_reserve)
{
	static const struct {
		enum room_writer writer;
		uint64_t free;
		int want;
	} rows[] = {
		{ ROOM_USER, 64, 0 },
		{ ROOM_USER, 63, -ENOSPC },
		{ ROOM_SYSTEM, 48, 0 },
		{ ROOM_SYSTEM, 47, -ENOSPC },
		{ ROOM_ROOT, 32, 0 },
		{ ROOM_ROOT, 31, -ENOSPC },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct room_want bytes = { 64, 0, rows[i].writer };
		const struct room_want inodes = { 0, 64, rows[i].writer };
		const struct statvfs of_bytes = { .f_frsize = 1,
			.f_bavail = rows[i].free };
		const struct statvfs of_inodes = { .f_frsize = 1,
			.f_bavail = 1 << 20,
			.f_files = 1000,
			.f_favail = rows[i].free };

		cr_expect_eq(room_judge(&of_bytes, &bytes, 0), rows[i].want,
		    "bytes, row %zu", i);
		cr_expect_eq(room_judge(&of_inodes, &inodes, 0), rows[i].want,
		    "inodes, row %zu", i);
	}
}

/* mutation: common/spool/room.c: describe_bytes() has the whole reserve. */
Test(room, D48_the_text_has_the_part_and_the_writer)
{
	writer = ROOM_ROOT;
	(void)describe(1ull << 60, 0, 0, -ENOSPC);
	expect_part("queue_minfree_bytes wants 524288 TB even of root");
	(void)describe(0, 1ull << 60, 0, -ENOSPC);
	expect_part(
	    "queue_minfree_inodes wants 576460752303423488 even of root");
	writer = ROOM_SYSTEM;
	(void)describe(1ull << 60, 0, 0, -ENOSPC);
	expect_part("queue_minfree_bytes wants 786432 TB even of deliveries "
		    "and reports");
}

Test(room, D46_nothing_free_is_full_without_a_reserve)
{
	static const struct room_want none;
	struct statvfs v = { .f_frsize = 4096, .f_bavail = 1 };

	cr_expect_eq(room_judge(&v, &none, 0), 0);
	v.f_bavail = 0;
	cr_expect_eq(room_judge(&v, &none, 0), -ENOSPC);
	v.f_bavail = 1;
	v.f_files = 5;
	cr_expect_eq(room_judge(&v, &none, 0), -ENOSPC);
	v.f_favail = 1;
	cr_expect_eq(room_judge(&v, &none, 0), 0);
	v.f_flag = ST_RDONLY;
	cr_expect_eq(room_judge(&v, &none, 0), -EROFS);
}
