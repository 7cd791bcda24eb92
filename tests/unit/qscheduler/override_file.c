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
static struct override table[QUEUE_NUM_MAX + 1];
static struct override_moment written;
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
	return override_read(fd, "BASE", table, &written, &error);
}

static int
write_table(void)
{
	return override_write(fd, "BASE", table, &written, &error);
}

static bool
is_empty(void)
{
	return !override_is_any(table, 0);
}

Test(override_file, none)
{
	table[7].until[OVERRIDE_LOAD] = USEC_NEVER;
	cr_expect_eq(get(), 0);
	cr_expect(is_empty());
}

#define BOOT    "0a1b2c3d-0000-1111-2222-333344445555"
#define WRITTEN "written 1763712345000000 8123000000 " BOOT "\n"
#define HEAD    "by-hand 2\n" WRITTEN

static const struct override_moment moment = { 1763712345000000, 8123000000,
	BOOT };

static const struct {
	enum override_kind kind;
	uint32_t queue, left, value;
	const char *reason;
} all_kinds[] = {
	{ OVERRIDE_DISABLED, 1, 0, 0, "" },
	{ OVERRIDE_DISABLED, 4095, 31536000, 0, "new disk" },
	{ OVERRIDE_DISABLED, 7, 1, 0, " # blanks, \xc3\xa4 and a hash " },
	{ OVERRIDE_LOAD, 7, 3600, 0, NULL },
	{ OVERRIDE_LOAD, 9, 1, 100, NULL },
	{ OVERRIDE_COUNT, 0, 1800, 256, NULL },
};

static void
set(enum override_kind kind, uint32_t queue, uint32_t left, uint32_t value)
{
	struct override *o = &table[queue];

	o->until[kind] =
	    left == 0 ? USEC_NEVER : written.mono + left * USEC_PER_SEC;
	o->value[kind] = value;
}

Test(override_file, what_was_written_is_read)
{
	static struct override want[QUEUE_NUM_MAX + 1];
	size_t i;

	written = moment;
	for (i = 0; i < ARRAY_LEN(all_kinds); i++) {
		set(all_kinds[i].kind, all_kinds[i].queue, all_kinds[i].left,
		    all_kinds[i].value);
		if (all_kinds[i].reason != NULL)
			snprintf(table[all_kinds[i].queue].reason,
			    SCHED_REASON_SIZE, "%s", all_kinds[i].reason);
	}
	memcpy(want, table, sizeof(want));
	cr_assert_eq(write_table(), 0);
	cr_assert_eq(get(), 1, "%s", buf_str(&error));
	cr_expect_eq(written.wall, moment.wall);
	cr_expect_eq(written.mono, moment.mono);
	cr_expect_str_eq(written.boot, BOOT);
	cr_expect_eq(memcmp(want, table, sizeof(want)), 0);
	memset(table, 0, sizeof(table));
	cr_assert_eq(write_table(), 0);
	cr_expect_eq(faccessat(fd, OVERRIDE_NAME, F_OK, 0), -1, "still there");
	cr_expect_eq(write_table(), 0, "again");
}

/* What is left is rounded up, but not above what is read, and what is over is
 * not written. mutation: qscheduler/queues/override_file.c: print_row() has no
 * bound. */
Test(override_file, parts_of_a_second)
{
	written = moment;
	set(OVERRIDE_LOAD, 1, 7, 45);
	table[1].until[OVERRIDE_LOAD]--;
	set(OVERRIDE_LOAD, 2, 1, 45);
	table[2].until[OVERRIDE_LOAD] = moment.mono;
	set(OVERRIDE_LOAD, 3, ASK_SECONDS_MAX, 45);
	table[3].until[OVERRIDE_LOAD]++;
	cr_assert_eq(write_table(), 0);
	cr_assert_eq(get(), 1, "%s", buf_str(&error));
	cr_expect_eq(
	    table[1].until[OVERRIDE_LOAD], moment.mono + 7 * USEC_PER_SEC);
	cr_expect_eq(table[2].until[OVERRIDE_LOAD], 0);
	cr_expect_eq(table[3].until[OVERRIDE_LOAD],
	    moment.mono + ASK_SECONDS_MAX * USEC_PER_SEC);
}

/* All that can be set at once: each queue there can be, with the longest
 * reason. */
Test(override_file, as_much_as_can_be)
{
	static struct override want[QUEUE_NUM_MAX + 1];
	uint32_t i;

	written = moment;
	for (i = 1; i <= QUEUE_NUM_MAX; i++) {
		set(OVERRIDE_DISABLED, i, ASK_SECONDS_MAX, 0);
		memset(table[i].reason, 'x', SCHED_REASON_SIZE - 1);
		set(OVERRIDE_LOAD, i, ASK_SECONDS_MAX, 100);
	}
	set(OVERRIDE_COUNT, 0, 0, 1);
	memcpy(want, table, sizeof(want));
	cr_assert_eq(write_table(), 0);
	cr_assert_eq(get(), 1, "%s", buf_str(&error));
	cr_expect_eq(memcmp(want, table, sizeof(want)), 0);
}

/* ---- samples ---- */

Test(override_file, golden_version_2)
{
	char got[4096], want[4096];
	int64_t n;
	int f = open("tests/golden/by-hand-2", O_RDONLY | O_CLOEXEC);

	cr_assert_geq(f, 0, "run in the top directory");
	n = io_read_all(f, want, sizeof(want));
	cr_assert_gt(n, 0);
	close(f);
	put(want, (size_t)n);
	cr_assert_eq(get(), 1, "%s", buf_str(&error));
	cr_expect_eq(table[3].value[OVERRIDE_LOAD], 45);
	cr_expect_str_eq(table[3].reason, "new disk");
	cr_assert_eq(write_table(), 0);
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
		{ "3 0 x\nend\n", ":1: of a version that is not known" },
		{ "# comment\nby-hand 2\nend\n",
		    ":1: of a version that is not known" },
		{ "end\n", ":1: of a version that is not known" },
		{ "by-hand 3\nend\n", ":1: of a version that is not known" },
		{ "by-hand 1\nend\n", ":1: of a version that is not known" },
		{ "by-hand x\nend\n", ":1: of a version that is not known" },
		{ "by-hand \nend\n", ":1: of a version that is not known" },
		{ "by-hand 2 \nend\n", ":1: of a version that is not known" },
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
		{ HEAD "disabled 4096 0 x\nend\n", ":3: not a queue number" },
		{ HEAD "disabled -1 0 x\nend\n", ":3: not a queue number" },
		{ HEAD "disabled 99999999999999999999 0 x\nend\n",
		    ":3: not a queue number" },
		{ HEAD "disabled 3\nend\n", ":3: not a time" },
		{ HEAD "disabled 3 x y\nend\n", ":3: not a time" },
		{ HEAD "disabled 3 -5 y\nend\n", ":3: not a time" },
		{ HEAD "disabled 3 31536001 x\nend\n", ":3: not a time" },
		{ HEAD "disabled 3 0 a\tb\nend\n", ":3: not a reason" },
		{ HEAD "disabled 3 0 \xff\nend\n", ":3: not a reason" },
		{ HEAD "disabled 3 0 \x1b[2J\nend\n", ":3: control character" },
		{ HEAD "by-hand 2\nend\n", ":3: not a row" },
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
		cr_expect(is_empty(), "file %zu", i);
		cr_expect(strstr(buf_str(&error), files[i].want) != NULL,
		    "file %zu: %s", i, buf_str(&error));
	}
}

/* Whatever is cut off, it is noticed. */
Test(override_file, cut_anywhere)
{
	static const char whole[] =
	    HEAD "# comment\ndisabled 3 0 x\nload 4 17 5\nend\n";
	const size_t all = sizeof(whole) - 1;
	size_t len;

	for (len = 0; len < all - 1; len++) {
		put(whole, len);
		cr_expect_lt(get(), 0, "%zu bytes", len);
		cr_expect(is_empty(), "%zu bytes", len);
	}
	put(whole, all);
	cr_expect_eq(get(), 1);
	cr_expect_eq(table[3].until[OVERRIDE_DISABLED], USEC_NEVER);
	cr_expect_eq(table[4].value[OVERRIDE_LOAD], 5);
}

/* Damaged files are kept, all of them. */
Test(override_file, aside)
{
	char name[32], want[32];
	int i;

	for (i = 1; i <= OVERRIDE_ASIDE_MAX; i++) {
		put("damaged", 7);
		cr_assert_eq(override_set_aside(fd, name), 0);
		snprintf(want, sizeof(want), "by-hand.aside-%d", i);
		cr_expect_str_eq(name, want);
		cr_expect_eq(faccessat(fd, OVERRIDE_NAME, F_OK, 0), -1);
	}
	put("damaged", 7);
	cr_expect_eq(override_set_aside(fd, name), -EEXIST);
	cr_expect_eq(faccessat(fd, OVERRIDE_NAME, F_OK, 0), 0);
	for (i = 1; i <= OVERRIDE_ASIDE_MAX; i++) {
		snprintf(want, sizeof(want), "by-hand.aside-%d", i);
		cr_expect_eq(unlinkat(fd, want, 0), 0);
	}
	(void)unlinkat(fd, OVERRIDE_NAME, 0);
	cr_expect_eq(override_set_aside(fd, name), -ENOENT);
}

/* What was ended by hand does not come back with a power cut, nor a file that
 * is not believed.
 * mutations: qscheduler/queues/override_file.c: remove_file() and
 * override_set_aside() do not sync the directory. */
Test(override_file, F7_the_end_of_a_file_is_on_disk)
{
	char name[32];

	put("damaged", 7);
	sync_seam_begin();
	cr_expect_eq(write_table(), 0);
	cr_expect_str_eq(sync_seam_end(), "ud");
	put("damaged", 7);
	sync_seam_begin();
	cr_expect_eq(override_set_aside(fd, name), 0);
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
		cr_expect_eq(override_until(
				 &then, then.mono + SECS(cases[i].left), &now),
		    cases[i].want == 0 ? 0 : now.mono + cases[i].want, "%s",
		    cases[i].what);
		cr_expect_eq(override_until(&then, USEC_NEVER, &now),
		    USEC_NEVER, "%s", cases[i].what);
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

static void
put_one(void)
{
	static const char text[] = HEAD "disabled 3 0 x\nend\n";

	put(text, sizeof(text) - 1);
}

Test(override_file, F8_that_others_may_write)
{
	put_one();
	cr_assert_eq(fchmodat(fd, OVERRIDE_NAME, 0664, 0), 0);
	cr_expect_eq(get(), -EPERM);
	cr_expect(is_empty());
	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	cr_assert_eq(fchmodat(fd, OVERRIDE_NAME, 0644, 0), 0);
	cr_expect_eq(get(), 1);
	cr_assert_eq(fchownat(fd, OVERRIDE_NAME, 65534, 0, 0), 0);
	cr_expect_eq(get(), -EPERM);
}

/* What cannot be written leaves the one before. */
Test(override_file, whole_or_not_at_all)
{
	put_one();
	cr_assert_eq(mkdirat(fd, OVERRIDE_NAME ".new", 0755), 0);
	set(OVERRIDE_DISABLED, 9, 0, 0);
	cr_expect_eq(write_table(), -EISDIR);
	cr_expect_str_eq(buf_str(&error), "BASE/by-hand: Is a directory");
	cr_expect_eq(get(), 1);
	cr_expect_eq(table[3].until[OVERRIDE_DISABLED], USEC_NEVER);
	cr_expect_eq(table[9].until[OVERRIDE_DISABLED], 0);
}
