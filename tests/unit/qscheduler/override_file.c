/* QUEUE_BASE/by-hand: believed whole or not at all. */
#include "qscheduler/queues/queues.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "ipc/ask.h"
#include "tests/unit/sync_seam.h"

static char dir[] = "/tmp/byhand.XXXXXX";
static int fd = -1;
static struct override_rows rows;
static struct buf error;

static void
setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
}

static void
teardown(void)
{
	(void)unlinkat(fd, OVERRIDE_NAME, 0);
	(void)unlinkat(fd, OVERRIDE_NAME, AT_REMOVEDIR);
	(void)unlinkat(fd, OVERRIDE_NAME ".new", AT_REMOVEDIR);
	cr_expect_eq(rmdir(dir), 0, "something was left behind");
	buf_done(&error);
}

TestSuite(override_file, .init = setup, .fini = teardown);

static void
put(const char *text, size_t len)
{
	int f = openat(
	    fd, OVERRIDE_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	cr_assert_geq(f, 0);
	cr_assert_eq(io_write_all(f, text, len), 0);
	close(f);
}

static int
get(void)
{
	buf_reset(&error);
	return override_file_read(fd, "BASE", &rows, &error);
}

Test(override_file, none)
{
	rows.n = 7;
	cr_expect_eq(get(), 0);
	cr_expect_eq(rows.n, 0);
}

#define BOOT    "0a1b2c3d-0000-1111-2222-333344445555"
#define WRITTEN "written 1763712345000000 8123000000 " BOOT "\n"
#define HEAD    "by-hand 2\n" WRITTEN

static const struct override_moment moment = { 1763712345000000, 8123000000,
	BOOT };

static void
expect_row(const struct override_row *got, const struct override_row *want)
{
	cr_expect_eq(got->kind, want->kind);
	cr_expect_eq(got->queue, want->queue);
	cr_expect_eq(got->left, want->left);
	cr_expect_eq(got->value, want->value);
	cr_expect_str_eq(got->reason, want->reason);
}

static const struct override_row all_kinds[] = {
	{ OVERRIDE_DISABLED, 1, 0, 0, "" },
	{ OVERRIDE_DISABLED, 4095, 31536000, 0, "new disk" },
	{ OVERRIDE_DISABLED, 7, 1, 0, " # blanks, \xc3\xa4 and a hash " },
	{ OVERRIDE_LOAD, 7, 3600, 0, "" },
	{ OVERRIDE_LOAD, 9, 1, 100, "" },
	{ OVERRIDE_COUNT, 0, 1800, 256, "" },
};

Test(override_file, what_was_written_is_read)
{
	uint32_t i;

	rows = (struct override_rows){ .written = moment,
		.n = ARRAY_LEN(all_kinds) };
	memcpy(rows.rows, all_kinds, sizeof(all_kinds));
	cr_assert_eq(override_file_write(fd, "BASE", &rows, &error), 0);
	rows = (struct override_rows){ 0 };
	cr_assert_eq(get(), 0, "%s", buf_str(&error));
	cr_expect_eq(rows.version, 2);
	cr_expect_eq(rows.written.wall, moment.wall);
	cr_expect_eq(rows.written.mono, moment.mono);
	cr_expect_str_eq(rows.written.boot, BOOT);
	cr_assert_eq(rows.n, ARRAY_LEN(all_kinds));
	for (i = 0; i < rows.n; i++)
		expect_row(&rows.rows[i], &all_kinds[i]);
	rows.n = 0;
	cr_assert_eq(override_file_write(fd, "BASE", &rows, &error), 0);
	cr_expect_eq(faccessat(fd, OVERRIDE_NAME, F_OK, 0), -1, "still there");
	cr_expect_eq(
	    override_file_write(fd, "BASE", &rows, &error), 0, "again");
}

/* All that can be set at once: each queue there can be, with the longest
 * reason. */
Test(override_file, as_much_as_can_be)
{
	uint32_t i;

	rows.written = moment;
	for (i = 0; i < QUEUE_NUM_MAX; i++) {
		rows.rows[2 * i] = (struct override_row){ OVERRIDE_DISABLED,
			QUEUE_NUM_MAX - i, ASK_SECONDS_MAX, 0, "" };
		memset(rows.rows[2 * i].reason, 'x', SCHED_REASON_SIZE - 1);
		rows.rows[2 * i + 1] = (struct override_row){ OVERRIDE_LOAD,
			i + 1, ASK_SECONDS_MAX, 100, "" };
	}
	rows.rows[2 * i] =
	    (struct override_row){ .kind = OVERRIDE_COUNT, .value = 1 };
	rows.n = 2 * i + 1;
	cr_assert_eq(rows.n, OVERRIDE_ROWS_MAX);
	cr_assert_eq(override_file_write(fd, "BASE", &rows, &error), 0);
	rows.n = 0;
	cr_assert_eq(get(), 0, "%s", buf_str(&error));
	cr_expect_eq(rows.n, OVERRIDE_ROWS_MAX);
}

/* ---- samples ---- */

static void
put_sample(const char *path)
{
	static char text[4096];
	int sample = open(path, O_RDONLY | O_CLOEXEC);
	int64_t n;

	cr_assert_geq(sample, 0, "run in the top directory");
	n = io_read_all(sample, text, sizeof(text));
	cr_assert_gt(n, 0);
	close(sample);
	put(text, (size_t)n);
}

Test(override_file, golden_version_1)
{
	static const struct override_row want[] = {
		{ OVERRIDE_DISABLED, 1, 0, 0, "" },
		{ OVERRIDE_DISABLED, 3, 1763712345, 0, "new disk" },
		{ OVERRIDE_DISABLED, 4095, 1795248345, 0,
		    "Gr\xc3\xb6\xc3\x9f"
		    "e: # 2 TB" },
	};
	uint32_t i;

	put_sample("tests/golden/by-hand-1");
	cr_assert_eq(get(), 0, "%s", buf_str(&error));
	cr_expect_eq(rows.version, 1);
	cr_expect_eq(rows.written.wall | rows.written.mono, 0);
	cr_assert_eq(rows.n, ARRAY_LEN(want));
	for (i = 0; i < rows.n; i++)
		expect_row(&rows.rows[i], &want[i]);
}

Test(override_file, golden_version_2)
{
	char got[4096], want[4096];
	int64_t n;
	int f;

	put_sample("tests/golden/by-hand-2");
	cr_assert_eq(get(), 0, "%s", buf_str(&error));
	cr_expect_eq(rows.version, 2);
	cr_expect_eq(rows.n, 5);
	f = openat(fd, OVERRIDE_NAME, O_RDONLY | O_CLOEXEC);
	n = io_read_all(f, want, sizeof(want));
	close(f);
	cr_assert_eq(override_file_write(fd, "BASE", &rows, &error), 0);
	f = openat(fd, OVERRIDE_NAME, O_RDONLY | O_CLOEXEC);
	cr_expect_eq(io_read_all(f, got, sizeof(got)), n);
	close(f);
	cr_expect_eq(memcmp(got, want, (size_t)n), 0,
	    "a change of the format is a new version");
}

/* ---- damage ---- */

Test(override_file, damaged_files_are_not_believed)
{
	static const struct {
		const char *text, *want;
	} files[] = {
		{ "", ":0: cut off" },
		{ "3 0 x\n", ":1: cut off" },
		{ "3 0 x\nen", ":2: not a queue number" },
		{ "3 0 x\nend\n4 0 x\n", ":3: behind the end" },
		{ "3 0 x\n3 0 y\nend\n", ":2: that queue again" },
		{ "0 0 x\nend\n", ":1: not a queue number" },
		{ "4096 0 x\nend\n", ":1: not a queue number" },
		{ "-1 0 x\nend\n", ":1: not a queue number" },
		{ "99999999999999999999 0 x\nend\n", ":1: not a queue" },
		{ "3\nend\n", ":1: not a time" },
		{ "3 x y\nend\n", ":1: not a time" },
		{ "3 -5 y\nend\n", ":1: not a time" },
		{ "3 1099511627777 y\nend\n", ":1: not a time" },
		{ "3 0 a\tb\nend\n", ":1: not a reason" },
		{ "3 0 \xff\nend\n", ":1: not a reason" },
		{ "3 0 \x1b[2J\nend\n", ":1: control character" },
		{ "3 0 x\nby-hand 2\nend\n", ":2: not a queue number" },
		{ "by-hand 3\nend\n", ":1: of a version that is not known" },
		{ "by-hand 1\nend\n", ":1: of a version that is not known" },
		{ "by-hand x\nend\n", ":1: not a version" },
		{ "by-hand \nend\n", ":1: not a version" },
		{ "by-hand 2\n", ":1: cut off" },
		{ "by-hand 2\nwritten\nend\n", ":2: not a time" },
		{ "by-hand 2\nwritten 1\nend\n", ":2: not a time" },
		{ "by-hand 2\nwritten 1 2\nend\n", ":2: not a boot" },
		{ "by-hand 2\nwritten 1 2 X\nend\n", ":2: not a boot" },
		{ "by-hand 2\nwritten 1 2 " BOOT "0\nend\n", ":2: not a boot" },
		{ "by-hand 2\nwritten 1099511627777000000 0 -\nend\n",
		    ":2: not a time" },
		{ HEAD WRITTEN "end\n", ":3: written twice" },
		{ "by-hand 2\ncount 0 3\n" WRITTEN "end\n",
		    ":2: before the time of writing" },
		{ HEAD "disabled 3 0 x\n", ":3: cut off" },
		{ HEAD "end\ncount 0 3\n", ":4: behind the end" },
		{ HEAD "3 0 x\nend\n", ":3: not a row of this file" },
		{ HEAD "disable 3 0 x\nend\n", ":3: not a row" },
		{ HEAD "disabled 0 0 x\nend\n", ":3: not a queue number" },
		{ HEAD "disabled 3 31536001 x\nend\n", ":3: not a time" },
		{ HEAD "disabled 3 0 a\tb\nend\n", ":3: not a reason" },
		{ HEAD "disabled 3 0 x\ndisabled 3 0 x\nend\n",
		    ":4: that queue again" },
		{ HEAD "load 3 0 45\nend\n", ":3: not a time" },
		{ HEAD "load 3 1 101\nend\n", ":3: not a load" },
		{ HEAD "load 3 1\nend\n", ":3: not a load" },
		{ HEAD "load 3 1 45 \nend\n", ":3: not a load" },
		{ HEAD "load 3 1 4\nload 3 1 4\nend\n", ":4: that queue" },
		{ HEAD "count 0 0\nend\n", ":3: not a number of queues" },
		{ HEAD "count 0 257\nend\n", ":3: not a number of queues" },
		{ HEAD "count 31536001 3\nend\n", ":3: not a time" },
		{ HEAD "count 0 3\ncount 9 4\nend\n", ":4: a count again" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(files); i++) {
		put(files[i].text, strlen(files[i].text));
		cr_expect_eq(get(), -EBADMSG, "file %zu", i);
		cr_expect_eq(rows.n, 0, "file %zu", i);
		cr_expect(strstr(buf_str(&error), files[i].want) != NULL,
		    "file %zu: %s", i, buf_str(&error));
	}
}

/* Whatever is cut off, it is noticed. */
Test(override_file, cut_anywhere)
{
	static const char *const wholes[] = {
		"# comment\n3 0 x\n4 17 why\nend\n",
		HEAD "# comment\ndisabled 3 0 x\nload 4 17 5\nend\n",
	};
	size_t i, len;

	for (i = 0; i < ARRAY_LEN(wholes); i++) {
		const size_t all = strlen(wholes[i]);

		for (len = 0; len < all - 1; len++) {
			put(wholes[i], len);
			cr_expect_lt(get(), 0, "%zu bytes", len);
			cr_expect_eq(rows.n, 0, "%zu bytes", len);
		}
		put(wholes[i], all);
		cr_expect_eq(get(), 0);
		cr_expect_eq(rows.n, 2);
	}
}

/* Damaged files are kept, all of them. */
Test(override_file, aside)
{
	char name[32], want[32];
	int i;

	for (i = 1; i <= OVERRIDE_ASIDE_MAX; i++) {
		put("damaged", 7);
		cr_assert_eq(override_file_set_aside(fd, name), 0);
		snprintf(want, sizeof(want), "by-hand.aside-%d", i);
		cr_expect_str_eq(name, want);
		cr_expect_eq(faccessat(fd, OVERRIDE_NAME, F_OK, 0), -1);
	}
	put("damaged", 7);
	cr_expect_eq(override_file_set_aside(fd, name), -EEXIST);
	cr_expect_eq(faccessat(fd, OVERRIDE_NAME, F_OK, 0), 0);
	for (i = 1; i <= OVERRIDE_ASIDE_MAX; i++) {
		snprintf(want, sizeof(want), "by-hand.aside-%d", i);
		cr_expect_eq(unlinkat(fd, want, 0), 0);
	}
	(void)unlinkat(fd, OVERRIDE_NAME, 0);
	cr_expect_eq(override_file_set_aside(fd, name), -ENOENT);
}

/* What was ended by hand does not come back with a power cut, nor a file that
 * is not believed.
 * mutations: qscheduler/queues/override_file.c: remove_file() and
 * override_file_set_aside() do not sync the directory. */
Test(override_file, F7_the_end_of_a_file_is_on_disk)
{
	const struct override_rows none = { .n = 0 };
	char name[32];

	put("damaged", 7);
	sync_seam_begin();
	cr_expect_eq(override_file_write(fd, "BASE", &none, &error), 0);
	cr_expect_str_eq(sync_seam_end(), "ud");
	put("damaged", 7);
	sync_seam_begin();
	cr_expect_eq(override_file_set_aside(fd, name), 0);
	cr_expect_str_eq(sync_seam_end(), "rd");
	cr_expect_eq(unlinkat(fd, name, 0), 0);
}

/* ---- what is left of a time ---- */

#define SECS(n) ((usec_t)(n)*USEC_PER_SEC)

Test(override_file, T1_T2_what_is_left_whatever_the_clock)
{
	static const struct {
		const char *what, *boot;
		usec_t wall, mono; /* passed on each clock */
		int64_t left;
		usec_t want;
	} cases[] = {
		{ "same boot", BOOT, SECS(10), SECS(10), 60, SECS(50) },
		{ "set forward", BOOT, SECS(9999), SECS(10), 60, SECS(50) },
		{ "set back", BOOT, SECS(-9999), SECS(10), 60, SECS(50) },
		{ "over", BOOT, SECS(0), SECS(60), 60, 0 },
		{ "nearly", BOOT, SECS(0), SECS(60) - 1, 60, 1 },
		{ "long over", BOOT, SECS(0), SECS(99999999), 60, 0 },
		{ "another boot", "b", SECS(10), SECS(-8000), 60, SECS(50) },
		{ "its clock behind", "b", SECS(-9999), 0, 60, SECS(60) },
		{ "its clock far ahead", "b", SECS(99999), 0, 60, 0 },
		{ "not known", "-", SECS(20), SECS(10), 60, SECS(40) },
		{ "not of this boot", BOOT, SECS(20), -1, 60, SECS(40) },
	};
	struct override_moment now;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct override_moment then = moment;

		if (cases[i].boot[0] == '-')
			snprintf(then.boot, sizeof(then.boot), "-");
		now = (struct override_moment){ moment.wall + cases[i].wall,
			moment.mono + cases[i].mono, "" };
		snprintf(now.boot, sizeof(now.boot), "%s", cases[i].boot);
		cr_expect_eq(override_time_left(&then, cases[i].left, &now),
		    cases[i].want, "%s", cases[i].what);
	}
}

Test(override_file, the_moment_has_both_clocks_and_the_boot)
{
	struct override_moment a, b;

	override_moment_now(4711, &a);
	override_moment_now(4712, &b);
	cr_expect_eq(a.mono, 4711);
	cr_expect_gt(a.wall, 0);
	cr_expect_eq(strlen(a.boot), OVERRIDE_BOOT_MAX);
	cr_expect_str_eq(a.boot, b.boot);
}

Test(override_file, too_long_and_of_no_kind)
{
	static char large[1 << 21];

	memset(large, 'x', sizeof(large));
	put(large, sizeof(large));
	cr_expect_eq(get(), -EFBIG);
	(void)unlinkat(fd, OVERRIDE_NAME, 0);
	cr_assert_eq(mkdirat(fd, OVERRIDE_NAME, 0755), 0);
	cr_expect_eq(get(), -EINVAL);
	(void)unlinkat(fd, OVERRIDE_NAME, AT_REMOVEDIR);
	cr_assert_eq(mkfifoat(fd, OVERRIDE_NAME, 0644), 0);
	cr_expect_eq(get(), -EINVAL, "waited");
	(void)unlinkat(fd, OVERRIDE_NAME, 0);
	cr_assert_eq(symlinkat("/etc/passwd", fd, OVERRIDE_NAME), 0);
	cr_expect_eq(get(), -ELOOP);
}

Test(override_file, F8_that_others_may_write)
{
	put("3 0 x\nend\n", 10);
	cr_assert_eq(fchmodat(fd, OVERRIDE_NAME, 0664, 0), 0);
	cr_expect_eq(get(), -EPERM);
	cr_expect_eq(rows.n, 0);
	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	cr_assert_eq(fchmodat(fd, OVERRIDE_NAME, 0644, 0), 0);
	cr_expect_eq(get(), 0);
	cr_assert_eq(fchownat(fd, OVERRIDE_NAME, 65534, 0, 0), 0);
	cr_expect_eq(get(), -EPERM);
}

/* What cannot be written leaves the one before. */
Test(override_file, whole_or_not_at_all)
{
	put("3 0 x\nend\n", 10);
	cr_assert_eq(mkdirat(fd, OVERRIDE_NAME ".new", 0755), 0);
	rows.n = 1;
	rows.rows[0] = (struct override_row){ OVERRIDE_DISABLED, 9, 0, 0, "" };
	cr_expect_eq(override_file_write(fd, "BASE", &rows, &error), -EISDIR);
	cr_expect_str_eq(buf_str(&error), "BASE/by-hand: Is a directory");
	cr_expect_eq(get(), 0);
	cr_expect_eq(rows.rows[0].queue, 3);
}
