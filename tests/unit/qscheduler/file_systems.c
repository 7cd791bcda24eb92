#include "qscheduler/supervisor/supervisor.h"

#include "tests/unit/files.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MOUNTS                                         \
	"/dev/vda / ext4 rw,discard,errors=x 0 0\n"    \
	"/dev/vdb /var xfs rw,nodiscard 0 0\n"         \
	"/dev/dm-0 /var/q\\040a ext4 rw,discard 0 0\n" \
	"/dev/vdd /tmp btrfs rw,discard=async 0 0\n"   \
	"/dev/vde /srv ext4 rw 0 0\n"                  \
	"/dev/vdf /srv ext4 rw,discard 0 0\n"          \
	"tmpfs /m tmpfs rw,size=1k 0 0\n"              \
	"/dev/vda /m/queue2 ext4 rw,discard 0 0\n"     \
	"none /m/queue9 ramfs rw 0 0\n"                \
	"/dev/sda1 /old ext2 rw 0 0\n"                 \
	"no line of ours\n"

#define DISCARD                                                             \
	"is mounted with discard: each removal of a message waits for the " \
	"device; mount it without, and let fstrim run by a timer\n"
#define MEMORY "is in memory: accepted mail does not survive a loss of power\n"
#define NO_JOURNAL                                                         \
	"has no journal: a loss of power can lose accepted mail; give it " \
	"one (tune2fs -j), or take another file system\n"
#define ON(queue, device, point) \
	"/b: queue " queue ": its file system " device " at " point " "

static void
expect_said(const char *table, const char *real, size_t count,
    const char *sysfs, const char *want)
{
	static const uint32_t queues[] = { 1, 2, 3, 4, 7, 9 };
	char text[1024];
	FILE *mounts;
	struct buf out = { 0 };
	const struct file_systems_of of = { "/b", real, queues, count, sysfs };

	snprintf(text, sizeof(text), "%s", table);
	mounts = fmemopen(text, strlen(text), "r");
	cr_assert_not_null(mounts);
	cr_assert_eq(file_systems_judge(mounts, &of, &out), 0);
	cr_expect_str_eq(buf_str(&out), want, "%s: %s", real, buf_str(&out));
	buf_done(&out);
	fclose(mounts);
}

/* mutation: is_below() compares without the slash; judge_mount() knows no
 * ramfs, or takes discard=async for discard; file_systems_judge() does not
 * count as told what it told. */
Test(file_systems, by_the_table_of_mounts)
{
	static const struct {
		const char *real;
		size_t count;
		const char *want;
	} rows[] = {
		{ "", 1, ON("1", "/dev/vda", "/") DISCARD },
		{ "/var", 1, "" },
		{ "/variable", 1, ON("1", "/dev/vda", "/") DISCARD },
		{ "/var/q a", 1, ON("1", "/dev/dm-0", "/var/q a") DISCARD },
		{ "/var/q", 6, "" },
		{ "/tmp", 1, "" },
		{ "/srv", 1, ON("1", "/dev/vdf", "/srv") DISCARD },
		{ "/old", 1, ON("1", "/dev/sda1", "/old") NO_JOURNAL },
		{ "/m", 6,
		    ON("1", "tmpfs", "/m") MEMORY ON("2", "/dev/vda",
			"/m/queue2") DISCARD ON("3", "tmpfs", "/m")
			MEMORY ON("9", "none", "/m/queue9") MEMORY },
		{ "/x/y", 5, ON("1", "/dev/vda", "/") DISCARD },
		{ "/m", 0, "" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		expect_said(MOUNTS, rows[i].real, rows[i].count, "/nowhere",
		    rows[i].want);
}

/* A directory as sysfs is, in which the device with the files of this directory
 * is vda, and with what ext4 says of its journal. */
static void
put_sysfs(const char *top, const char *task)
{
	static const char *const dirs[] = { "fs", "fs/ext4", "fs/ext4/vda",
		"dev", "dev/block", "devices", "devices/vda" };
	char path[128];
	struct stat st;
	size_t i;

	for (i = 0; i < ARRAY_LEN(dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s", top, dirs[i]);
		cr_assert_eq(mkdir(path, 0700), 0);
	}
	cr_assert_eq(stat(top, &st), 0);
	snprintf(path, sizeof(path), "%s/dev/block/%u:%u", top,
	    major(st.st_dev), minor(st.st_dev));
	cr_assert_eq(symlink("../../devices/vda", path), 0);
	snprintf(path, sizeof(path), "%s/fs/ext4/vda", top);
	unit_put_file(path, "journal_task", task);
}

/* The device has no node of the name that the table has.
 * mutation: lacks_journal() is true for what says nothing, or for any device;
 * judge_mount() asks of each type. */
Test(file_systems, D32_ext4_without_a_journal)
{
	static const struct {
		const char *type, *task;
		bool lacks;
	} rows[] = { { "ext4", "<none>\n", true }, { "ext4", "245\n", false },
		{ "ext4", "", false }, { "xfs", "<none>\n", false } };
	char top[32], table[128], want[256];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(top, sizeof(top), "/tmp/file-systems-XXXXXX");
		cr_assert_not_null(mkdtemp(top));
		put_sysfs(top, rows[i].task);
		snprintf(table, sizeof(table),
		    "/dev/vdx / btrfs rw 0 0\n/dev/root %s %s rw 0 0\n", top,
		    rows[i].type);
		snprintf(want, sizeof(want),
		    ON("1", "/dev/root", "%s") NO_JOURNAL, top);
		expect_said(table, top, 2, top, rows[i].lacks ? want : "");
		expect_said(table, "/x", 2, top, "");
		unit_remove_tree(top);
	}
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
			       "/link/none/queue: queue 3: its file system "),
	    "%s", buf_str(&out));
	cr_expect_not_null(strstr(buf_str(&out), MEMORY));
	buf_done(&out);
	unlink(way);
	rmdir(dir);
}
