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

Test(override_file, what_was_written_is_read)
{
	const struct override_rows written = {
		.n = 3,
		.rows = {
			{ 1, 0, "" },
			{ 4095, 1763712345, "new disk" },
			{ 7, 1, " # blanks, \xc3\xa4 and a hash " },
		},
	};
	uint32_t i;

	cr_assert_eq(override_file_write(fd, "BASE", &written, &error), 0);
	cr_assert_eq(get(), 0, "%s", buf_str(&error));
	cr_assert_eq(rows.n, 3);
	for (i = 0; i < 3; i++) {
		cr_expect_eq(rows.rows[i].queue, written.rows[i].queue);
		cr_expect_eq(
		    rows.rows[i].until_wall, written.rows[i].until_wall);
		cr_expect_str_eq(rows.rows[i].reason, written.rows[i].reason);
	}
	rows.n = 0;
	cr_assert_eq(override_file_write(fd, "BASE", &rows, &error), 0);
	cr_expect_eq(faccessat(fd, OVERRIDE_NAME, F_OK, 0), -1, "still there");
	cr_expect_eq(
	    override_file_write(fd, "BASE", &rows, &error), 0, "again");
}

Test(override_file, all_queues_with_the_longest_reasons)
{
	uint32_t i;

	for (i = 0; i < PAGE_QUEUES_MAX; i++) {
		rows.rows[i] =
		    (struct override_row){ 4095 - i, INT64_C(1) << 40, "" };
		memset(rows.rows[i].reason, 'x', SCHED_REASON_SIZE - 1);
	}
	rows.n = PAGE_QUEUES_MAX;
	cr_assert_eq(override_file_write(fd, "BASE", &rows, &error), 0);
	rows.n = 0;
	cr_assert_eq(get(), 0, "%s", buf_str(&error));
	cr_expect_eq(rows.n, PAGE_QUEUES_MAX);
}

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
	static const char whole[] = "# comment\n3 0 x\n4 17 why\nend\n";
	size_t len;

	for (len = 0; len < sizeof(whole) - 2; len++) {
		put(whole, len);
		cr_expect_lt(get(), 0, "%zu bytes", len);
		cr_expect_eq(rows.n, 0, "%zu bytes", len);
	}
	put(whole, sizeof(whole) - 1);
	cr_expect_eq(get(), 0);
	cr_expect_eq(rows.n, 2);
}

Test(override_file, too_long_and_of_no_kind)
{
	static char large[1 << 17];

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
	rows = (struct override_rows){ .n = 1, .rows = { { 9, 0, "" } } };
	cr_expect_eq(override_file_write(fd, "BASE", &rows, &error), -EISDIR);
	cr_expect_str_eq(buf_str(&error), "BASE/by-hand: Is a directory");
	cr_expect_eq(get(), 0);
	cr_expect_eq(rows.rows[0].queue, 3);
}
