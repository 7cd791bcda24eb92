/* What people are told of a file system that takes no new mail. */
#include "spool/room.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char text[ROOM_TEXT_SIZE];

static const char *
describe(uint64_t bytes, uint64_t inodes, uint64_t to_come, int error)
{
	const struct room_want want = { bytes, inodes };
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
	cr_expect_str_eq(describe(0, 0, 0, -ENOSPC),
	    "mail system full: /q: No space left on device");
	cr_expect_str_eq(describe(0, 0, 0, -EDQUOT),
	    "mail system full: /q: Disk quota exceeded");
	cr_expect_str_eq(describe(0, 0, 0, -EROFS),
	    "mail cannot be stored: /q: Read-only file system");
	cr_expect_str_eq(describe(0, 0, 0, -EIO),
	    "mail cannot be stored: /q: Input/output error");
	cr_expect_str_eq(room_text_short(text), "/q: Input/output error");
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
