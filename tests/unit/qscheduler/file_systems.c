#include "qscheduler/supervisor/supervisor.h"

#include "tests/unit/files.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOUNTS                                                             \
	"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard,errors=x\n" \
	"30 27 0:5 / /var rw shared:2 - xfs /dev/vdb rw,nodiscard\n"       \
	"31 27 0:6 / /var/q\\040a rw - ext4 /dev/vdc rw,discard\n"         \
	"32 27 0:7 / /tmp rw - btrfs /dev/vdd rw,discard=async\n"          \
	"33 27 0:8 / /srv rw - ext4 /dev/vde rw\n"                         \
	"34 33 0:9 / /srv rw - ext4 /dev/vdf rw,discard\n"                 \
	"35 27 0:9 / /m rw - tmpfs tmpfs rw,size=1k\n"                     \
	"36 35 254:0 / /m/queue2 rw - ext4 /dev/vda rw,discard,errors=x\n" \
	"37 35 0:11 / /m/queue9 rw - ramfs none rw\n"                      \
	"38 27 8:1 / /old rw - ext2 /dev/sda1 rw\n"                        \
	"no line of ours\n"

/* mutation: is_below() compares without the slash; troubles_of() knows no
 * ramfs.
 */
Test(file_systems, by_the_table_of_mounts)
{
	static const struct {
		const char *path, *device;
		unsigned want;
	} rows[] = {
		{ "/queue1", "254:0", FILE_SYSTEM_DISCARD },
		{ "/var/queue1", "0:5", 0 },
		{ "/variable/queue1", "254:0", FILE_SYSTEM_DISCARD },
		{ "/var/q a/queue1", "0:6", FILE_SYSTEM_DISCARD },
		{ "/var/q a", "0:6", FILE_SYSTEM_DISCARD },
		{ "/var/q", "0:5", 0 },
		{ "/tmp/queue1", "0:7", 0 },
		{ "/srv/queue1", "0:9", FILE_SYSTEM_DISCARD },
		{ "/m/queue1", "0:9", FILE_SYSTEM_MEMORY },
		{ "/m/queue2/incoming", "254:0", FILE_SYSTEM_DISCARD },
		{ "/m/queue9", "0:11", FILE_SYSTEM_MEMORY },
		{ "/old/queue1", "8:1", FILE_SYSTEM_NO_JOURNAL },
	};
	struct file_system found;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		file_system_find(MOUNTS, rows[i].path, &found);
		cr_expect_eq(found.troubles, rows[i].want, "%s", rows[i].path);
		cr_expect_str_eq(found.device, rows[i].device);
	}
	file_system_find("", "/queue1", &found);
	cr_expect_eq(found.troubles, 0);
	file_system_find("\\ - - -\n - \n", "/queue1", &found);
	cr_expect_eq(found.troubles, 0);
}

#define DISCARD                                                             \
	"is mounted with discard: each removal of a message waits for the " \
	"device; mount it without, and let fstrim run by a timer\n"
#define MEMORY "is in memory: accepted mail does not survive a loss of power\n"

/* mutation: add_queues() does not compare the devices; does not count as told
 * what it took. */
Test(file_systems, one_warning_for_queues_that_share_one)
{
	static const uint32_t queues[] = { 1, 2, 3, 4, 7, 9 };
	static const struct {
		const char *real;
		size_t count;
		const char *want;
	} rows[] = {
		{ "/m", ARRAY_LEN(queues),
		    "/b: queue 2: its file system " DISCARD
		    "/b: queues 1, 3-4, 7: their file system " MEMORY
		    "/b: queue 9: its file system " MEMORY },
		{ "/x/y", 5, "/b: queues 1-4, 7: their file system " DISCARD },
		{ "/x/y", 1, "/b: queue 1: its file system " DISCARD },
		{ "/var/q", ARRAY_LEN(queues), "" },
		{ "/m", 0, "" },
	};
	struct buf out = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct file_systems_of of = { "/b", rows[i].real, queues,
			rows[i].count, "/nowhere" };

		buf_reset(&out);
		cr_assert_eq(file_systems_judge(MOUNTS, &of, &out), 0);
		cr_expect_str_eq(
		    out.len == 0 ? "" : buf_str(&out), rows[i].want, "%zu", i);
	}
	buf_done(&out);
}

/* A directory as sysfs is, with what ext4 says of its journal on each device.
 */
static void
put_sysfs(const char *top)
{
	static const char *const dirs[] = { "dev", "dev/block", "fs", "fs/ext4",
		"fs/ext4/vda", "fs/ext4/dm-0", "fs/ext4/vdf", "fs/ext4/vdb" };
	static const struct {
		const char *device, *name, *task;
	} rows[] = { { "254:0", "vda", "<none>\n" }, { "0:6", "dm-0", "245\n" },
		{ "0:9", "vdf", "" }, { "0:5", "vdb", "<none>\n" } };
	char path[128], to[64];
	size_t i;

	for (i = 0; i < ARRAY_LEN(dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s", top, dirs[i]);
		cr_assert_eq(mkdir(path, 0700), 0);
	}
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(
		    path, sizeof(path), "%s/dev/block/%s", top, rows[i].device);
		snprintf(to, sizeof(to), "../../devices/x/%s", rows[i].name);
		cr_assert_eq(symlink(to, path), 0);
		snprintf(
		    path, sizeof(path), "%s/fs/ext4/%s", top, rows[i].name);
		unit_put_file(path, "journal_task", rows[i].task);
	}
}

/* mutation: lacks_journal() is true for what says nothing, or for any device;
 * file_systems_judge() asks of each type. */
Test(file_systems, D32_ext4_without_a_journal)
{
	static const uint32_t queues[] = { 1, 2 };
	static const struct {
		const char *real;
		bool without;
	} rows[] = {
		{ "/x", true },        /* vda */
		{ "/var/q a", false }, /* a task */
		{ "/srv", false },     /* says nothing */
		{ "/var", false },     /* xfs, which is not asked */
	};
	char top[] = "/tmp/file-systems-XXXXXX";
	struct buf out = { 0 };
	size_t i;

	cr_assert_not_null(mkdtemp(top));
	put_sysfs(top);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct file_systems_of of = { "/b", rows[i].real, queues,
			ARRAY_LEN(queues), top };

		buf_reset(&out);
		cr_assert_eq(file_systems_judge(MOUNTS, &of, &out), 0);
		cr_expect_eq(out.len > 0 &&
			strstr(buf_str(&out),
			    "/b: queues 1-2: their file system has no journal: "
			    "a loss of power can lose accepted mail; ") != NULL,
		    rows[i].without, "%s: %s", rows[i].real, buf_str(&out));
	}
	buf_done(&out);
	unit_remove_tree(top);
}

/* The nearest directory that exists decides: /dev/shm, which is in memory. The
 * base and its parent do not exist yet, and the path has a symbolic link.
 *
 * mutation: real_place() gives the path as it is. */
Test(file_systems, before_the_first_start)
{
	char dir[] = "/tmp/file-systems-XXXXXX", way[64], base[96];
	struct conf conf = {
		.queue_base = base, .queue_start = 3, .queue_count = 4
	};
	struct buf out = { 0 };

	cr_assert_not_null(mkdtemp(dir));
	snprintf(way, sizeof(way), "%s/link", dir);
	snprintf(base, sizeof(base), "%s/none/queue", way);
	cr_assert_eq(symlink("/dev/shm", way), 0);
	cr_assert_eq(file_systems_warn(&conf, &out), 0);
	cr_assert_gt(out.len, 0);
	cr_expect_not_null(strstr(buf_str(&out),
			       "/link/none/queue: queues 3-6: their file "
			       "system " MEMORY),
	    "%s", buf_str(&out));
	buf_done(&out);
	unlink(way);
	rmdir(dir);
}
