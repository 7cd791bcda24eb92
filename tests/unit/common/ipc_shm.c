/* The file system of shared memory, which any user can fill. */
#include "ipc/shm.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "ipc/page_text.h"

TestSuite(ipc_shm, .timeout = 60);

static struct statvfs file_system;

int
statvfs(const char *path, struct statvfs *ret)
{
	cr_assert_str_eq(path, SHM_DIR);
	*ret = file_system;
	return 0;
}

#define NO_ROOM "not enough room in /dev/shm: "

/* mutation: shm_judge_room() that looks at bytes alone */
Test(ipc_shm, I22_which_resource_is_used_up)
{
	static const struct {
		const char *name;
		uint64_t blocks, inodes, inodes_free;
		const char *want; /* NULL: there is room */
	} rows[] = {
		{ "room", 256, 1000, 16, NULL },
		{ "no limit of inodes", 256, 0, 0, NULL },
		{ "no bytes", 0, 1000, 900,
		    NO_ROOM "0 of 65536 KB and 900 of 1000 inodes are free" },
		{ "few bytes", 255, 1000, 900,
		    NO_ROOM
		    "1020 of 65536 KB and 900 of 1000 inodes are free" },
		{ "no bytes, no limit of inodes", 0, 0, 0,
		    NO_ROOM "0 of 65536 KB are free" },
		{ "no inodes", 16000, 1000, 0,
		    NO_ROOM "64000 of 65536 KB and 0 of 1000 inodes are free" },
		{ "few inodes", 16000, 1000, 15,
		    NO_ROOM
		    "64000 of 65536 KB and 15 of 1000 inodes are free" },
		{ "the largest numbers", UINT64_MAX >> 12, UINT64_MAX, 0,
		    NO_ROOM "18014398509481980 of 65536 KB and 0 of "
			    "18446744073709551615 inodes are free" },
	};
	char text[SHM_TEXT_SIZE], absent[PAGE_ABSENT_SIZE];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		file_system = (struct statvfs){
			.f_frsize = 4096,
			.f_blocks = 16384,
			.f_bavail = rows[i].blocks,
			.f_files = rows[i].inodes,
			.f_favail = rows[i].inodes_free,
		};
		cr_expect_eq(shm_judge_room(text),
		    rows[i].want == NULL ? 0 : -ENOSPC, "%s", rows[i].name);
		page_absent_text(absent);
		if (rows[i].want == NULL) {
			cr_expect_str_eq(absent,
			    "no supervisor of this instance is running: start "
			    "qscheduler");
			continue;
		}
		cr_expect_str_eq(text, rows[i].want, "%s", rows[i].name);
		cr_expect_str_eq(shm_describe(-ENOSPC, text), rows[i].want);
		cr_expect(strstr(absent, rows[i].want) != NULL);
		cr_expect(strstr(absent, "it does") != NULL);
	}
	cr_expect_str_eq(shm_describe(-EPERM, text), strerror(EPERM));
}
