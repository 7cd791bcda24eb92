/* The table of users: a row for each, in both places, and whose mail it is. */
#include "tests/unit/files.h"

#include "spool/waiting.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char top[64];
static struct spool sp;

static void
start(void)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };

	snprintf(top, sizeof(top), "/tmp/waiting-unit-XXXXXX");
	cr_assert_not_null(mkdtemp(top));
	memcpy(top + strlen(top), "/q", 3);
	cr_assert_eq(spool_create(top, 1, 3, &owner), 0);
	cr_assert_eq(spool_open(&sp, &spool_sys_real, top, 1), 0);
}

static void
end(void)
{
	spool_close(&sp);
	*strrchr(top, '/') = '\0';
	unit_remove_tree(top);
}

TestSuite(waiting, .init = start, .fini = end);

#define MANY 5000u

/* mutation: waiting_write() leaves rows out. */
Test(waiting, X22_every_user_has_a_row)
{
	struct waiting_user *rows = calloc(MANY, sizeof(*rows)), row;
	uint32_t i;

	cr_assert_not_null(rows);
	for (i = 0; i < MANY; i++)
		rows[i] = (struct waiting_user){ .uid = 3 * (MANY - i),
			.messages = i + 1,
			.bytes = INT64_MAX,
			.made = i };
	cr_assert_eq(waiting_write(&sp, 77, rows, MANY), 0);
	for (i = 0; i < MANY; i++) {
		cr_assert_eq(waiting_read(&sp, 3 * (MANY - i), &row), 0);
		cr_assert_eq(row.messages, i + 1, "%u", i);
		cr_assert_eq(row.bytes, (uint64_t)INT64_MAX);
		cr_assert_eq(row.made, i);
		cr_assert_eq(waiting_read(&sp, 3 * (MANY - i) + 1, &row), 0);
		cr_assert_eq(row.messages, 0, "no row of %u", i);
	}
	free(rows);
}

Test(waiting, X22_members_of_the_group_read_the_second_name)
{
	struct waiting_user rows[] = { { 7, 1, 2, 0 }, { 0, 5, 6, 4 } }, row;
	struct waiting_file f;
	char a[1024], b[1024];
	int fd[2];
	ssize_t n;

	cr_expect_eq(waiting_open(&sp, &f), -ENOENT);
	waiting_close(&f);
	cr_assert_eq(waiting_write(&sp, 77 * USEC_PER_SEC, rows, 2), 0);
	fd[0] = openat(sp.fd, "gate/waiting", O_RDONLY | O_CLOEXEC);
	fd[1] = openat(sp.fd, "lock/waiting", O_RDONLY | O_CLOEXEC);
	n = read(fd[0], a, sizeof(a));
	cr_assert_gt(n, 0);
	cr_assert_eq(read(fd[1], b, sizeof(b)), n);
	cr_expect_eq(memcmp(a, b, (size_t)n), 0);
	close(fd[0]);
	close(fd[1]);
	cr_assert_eq(waiting_open(&sp, &f), 0);
	cr_expect_eq(f.count, 2);
	cr_expect_eq(f.walked_wall, 77 * USEC_PER_SEC);
	cr_assert_eq(waiting_row(&f, 0, &row), 0);
	cr_expect_eq(row.uid, 0);
	cr_expect_eq(row.made, 4);
	waiting_close(&f);
}

/* Each is a whole table with one octet that is none of ours, or cut. */
Test(waiting, X22_a_file_that_is_none_of_ours)
{
	struct waiting_user rows[] = { { 7, 1, 2, 3 } }, row;
	char text[256];
	ssize_t n, i;
	int fd;

	cr_assert_eq(waiting_write(&sp, 5, rows, 1), 0);
	fd = openat(sp.fd, "gate/waiting", O_RDWR | O_CLOEXEC);
	n = pread(fd, text, sizeof(text), 0);
	cr_assert_eq(n, 142);
	for (i = 0; i < n; i++) {
		cr_assert_eq(pwrite(fd, "x", 1, i), 1);
		cr_expect_eq(waiting_read(&sp, 7, &row), -EBADMSG, "%zd", i);
		cr_expect_eq(row.messages, 0);
		cr_assert_eq(pwrite(fd, text + i, 1, i), 1);
	}
	for (i = n - 1; i >= 0; i--) {
		cr_assert_eq(ftruncate(fd, i), 0);
		cr_expect_eq(
		    waiting_read(&sp, 7, &row), i == 71 ? 0 : -EBADMSG);
	}
	close(fd);
	cr_assert_eq(unlinkat(sp.fd, "gate/waiting", 0), 0);
	cr_assert_eq(symlinkat("../lock/waiting", sp.fd, "gate/waiting"), 0);
	cr_expect_eq(waiting_read(&sp, 7, &row), -ELOOP);
}

/* mutation: the trailer of a user's file counts. */
Test(waiting, X20_who_submitted_a_file)
{
	static const struct {
		bool private;
		uid_t owner;
		uint32_t trailer;
		uid_t want;
	} rows[] = {
		{ false, 1000, 1000, 1000 },
		{ false, 1000, 1001, 1000 }, /* no user names another */
		{ false, 0, 1001, 0 },
		{ false, 201, 1001, 1001 }, /* an expansion, a report */
		{ false, 202, 1001, 1001 },
		{ false, 202, 0, 0 },
		{ true, 1000, 0, 0 },
	};
	size_t i;

	sp.owner[SPOOL_INCOMING] = 201;
	sp.owner[SPOOL_ACTIVE] = 202;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		sp.private = rows[i].private;
		cr_expect_eq(
		    waiting_submitter(&sp, rows[i].owner, rows[i].trailer),
		    rows[i].want, "%zu", i);
	}
}
