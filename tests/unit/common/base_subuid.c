/* Owners of subordinate uids. */
#include "base/subuid.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

static char path[64];
static struct subuid_table table;

static void
begin(void)
{
	int fd;

	snprintf(path, sizeof(path), "/tmp/subuid-unit-XXXXXX");
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	close(fd);
}

static void
end(void)
{
	subuid_done(&table);
	(void)unlink(path);
}

TestSuite(subuid, .init = begin, .fini = end);

static void
read_text(const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	const size_t len = strlen(text);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, len), (ssize_t)len);
	close(fd);
	subuid_done(&table);
	cr_assert_eq(subuid_read(path, &table), 0);
}

struct owner {
	uid_t uid, want;
};

static void
expect_owners(const struct owner *rows, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		cr_expect_eq(subuid_owner(&table, rows[i].uid), rows[i].want,
		    "uid %u is of %u", (unsigned)rows[i].uid,
		    (unsigned)subuid_owner(&table, rows[i].uid));
}

/* mutation: common/base/subuid.c, subuid_owner() is the uid, or compares with
 * `first` alone; find_owner() is the first uid. */
Test(subuid, X26_a_uid_belongs_to_the_owner_of_its_range)
{
	static const struct owner rows[] = {
		{ 0, 0 },
		{ 1000, 1000 },
		{ 99999, 99999 },
		{ 100000, 1000 },
		{ 165535, 1000 },
		{ 165536, 1 }, /* daemon */
		{ 231071, 1 },
		{ 231072, 231072 },
		{ 300000, 300000 }, /* of root */
		{ 500009, 500000 }, /* of a name that no file has */
		{ UINT32_MAX - 1, 2000 },
	};
	int i;

	read_text("daemon:165536:65536\n"
		  "1000:100000:65536\n"
		  "root:300000:65536\n"
		  "no such user:500000:10\n"
		  "2000:4294967294:1");
	for (i = 0; i < 2; i++) /* the second time from memory */
		expect_owners(rows, ARRAY_LEN(rows));
}

/* mutation: common/base/subuid.c, range_parse() takes `last` unchecked;
 * read_ranges() ends at a wrong line. */
Test(subuid, X26_wrong_lines_are_skipped)
{
	static const struct owner rows[] = {
		{ 100000, 1000 },
		{ 200000, 2000 },
		{ 300000, 300000 },
		{ 400000, 400000 },
		{ UINT32_MAX - 1, UINT32_MAX - 1 },
	};

	read_text("# 3000:300000:10\n"
		  "\n"
		  "1000:100000:10\n"
		  ":300000:10\n"
		  "3000:300000\n"
		  "3000:300000:\n"
		  "3000:300000:0\n"
		  "3000:300000:10:20\n"
		  "3000:-300000:10\n"
		  "3000:300000:0x10\n"
		  "3000:300000:4294967295\n"
		  "3000:400000:1\001\n"
		  "3000:4294967295:1\n"
		  "3000:99999999999999999999:1\n"
		  "  2000:200000:10\r\n");
	expect_owners(rows, ARRAY_LEN(rows));
}

/* mutation: common/base/subuid.c, order_ranges() leaves overlaps. */
Test(subuid, X26_the_range_that_begins_first_has_an_overlap)
{
	static const struct owner rows[] = {
		{ 100, 1000 },
		{ 150, 1000 },
		{ 199, 1000 },
		{ 200, 3000 },
		{ 249, 3000 },
		{ 250, 250 },
	};

	read_text("2000:150:10\n3000:190:60\n1000:100:100\n2000:100:50\n");
	expect_owners(rows, ARRAY_LEN(rows));
	cr_expect_eq(table.count, 2);
}

Test(subuid, X26_many_ranges_are_searched)
{
	struct buf text = { 0 };
	unsigned i;

	for (i = 10000; i > 0; i--)
		cr_assert_eq(
		    buf_printf(&text, "%u:%u:10\n", 1000 + i, 100000 + 20 * i),
		    0);
	read_text(buf_str(&text));
	buf_done(&text);
	for (i = 1; i <= 10000; i += 97) {
		cr_expect_eq(subuid_owner(&table, 100009 + 20 * i), 1000 + i);
		cr_expect_eq(
		    subuid_owner(&table, 100010 + 20 * i), 100010 + 20 * i);
	}
}

Test(subuid, X26_a_missing_file_is_empty_and_a_bad_one_an_error)
{
	cr_assert_eq(unlink(path), 0);
	cr_expect_eq(subuid_read(path, &table), 0);
	cr_expect_eq(subuid_owner(&table, 100000), 100000);
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_expect_eq(subuid_read(path, &table), -EISDIR);
	cr_expect_eq(subuid_owner(&table, 100000), 100000);
	cr_assert_eq(rmdir(path), 0);
}
