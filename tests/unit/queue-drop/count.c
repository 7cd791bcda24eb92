/* What of a user is counted. */
#include "tests/unit/files.h"

#include "queue-drop/door.h"

#include "spool/accept.h"
#include "spool/waiting.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char top[64];
static struct conf conf;
static struct spool sp[2];
static const struct subuid_table none;

static void
start(void)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };
	static char instance[64];
	uint32_t i;

	snprintf(top, sizeof(top), "/tmp/door-unit-XXXXXX");
	cr_assert_not_null(mkdtemp(top));
	memcpy(top + strlen(top), "/q", 3);
	snprintf(instance, sizeof(instance), "door%ld", (long)getpid());
	conf = (struct conf){ .queue_base = top, .instance = instance };
	for (i = 0; i < 2; i++) {
		cr_assert_eq(spool_create(top, i + 1, 3, &owner), 0);
		cr_assert_eq(
		    spool_open(&sp[i], &spool_sys_real, top, i + 1), 0);
	}
}

static void
end(void)
{
	spool_close(&sp[0]);
	spool_close(&sp[1]);
	*strrchr(top, '/') = '\0';
	unit_remove_tree(top);
}

TestSuite(count, .init = start, .fini = end);

static void
put(uint32_t queue, const char *name, const char *text)
{
	int fd = openat(sp[queue].dir[SPOOL_MAILDROP], name,
	    O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

Test(count, X6_names_of_the_user_in_all_queues)
{
	struct waiting_user rows[] = { { 7, 2, 100 }, { 1000, 5, 700 },
		{ 100, 9, 9 } };
	struct count c;

	put(0, "1000.0123456789abcdef", "12345");
	put(1, "1000.0123456789abcdee", "12");
	put(1, "tmp.1000.77.00000001", "123");
	put(0, "100.0123456789abcdef", "other's");
	put(0, "10000.0123456789abcdef", "other's");
	put(0, "tmp.100.77.00000001", "other's");
	put(0, "core", "nobody's");
	cr_assert_eq(count_user(&conf, &sp[0], 1000, &none, &c), 0);
	cr_expect_eq(c.messages, 2);
	cr_expect_eq(c.inodes, 3);
	cr_expect_eq(c.bytes, 10);
	cr_assert_eq(waiting_write(&sp[1], rows, 3), 0);
	cr_assert_eq(count_user(&conf, &sp[0], 1000, &none, &c), 0);
	cr_expect_eq(c.messages, 7);
	cr_expect_eq(c.inodes, 8);
	cr_expect_eq(c.bytes, 710);
	cr_assert_eq(count_user(&conf, &sp[0], 4711, &none, &c), 0);
	cr_expect_eq(c.messages + c.inodes + c.bytes, 0);
}

/* mutation: queue-drop/count.c, is_of_user() compares the number alone;
 * count_account() is the user. */
Test(count, X36_drops_of_subordinate_uids_are_the_owners)
{
	struct subuid_table subuids;
	struct count c;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/subuid", top);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	cr_assert_eq(write(fd, "1000:100000:65536\n", 18), 18);
	close(fd);
	cr_assert_eq(subuid_read(path, &subuids), 0);
	put(0, "1000.0123456789abcdef", "12345");
	put(1, "100000.0123456789abcdef", "12");
	put(1, "tmp.165535.77.00000001", "123");
	put(0, "165536.0123456789abcdef", "other's");
	cr_assert_eq(count_user(&conf, &sp[0], 1000, &subuids, &c), 0);
	cr_expect_eq(c.messages, 2);
	cr_expect_eq(c.inodes, 3);
	cr_expect_eq(c.bytes, 10);
	subuid_done(&subuids);
}

Test(count, X6_what_todo_proc_tells)
{
	struct waiting_user rows[WAITING_USERS + 50], row;
	uint32_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		rows[i] = (struct waiting_user){ 1 + i, 1 + i, UINT32_MAX };
	cr_assert_eq(waiting_write(&sp[0], rows, ARRAY_LEN(rows)), 0);
	cr_assert_eq(waiting_read(&sp[0], ARRAY_LEN(rows), &row), 0);
	cr_expect_eq(row.messages, ARRAY_LEN(rows));
	cr_expect_eq(row.bytes, UINT32_MAX);
	cr_assert_eq(waiting_read(&sp[0], 50, &row), 0);
	cr_expect_eq(row.messages, 0, "not among the heaviest");
	cr_assert_eq(waiting_read(&sp[0], 51, &row), 0);
	cr_expect_eq(row.messages, 51);
	cr_assert_eq(waiting_read(&sp[1], 51, &row), 0);
	cr_expect_eq(row.messages, 0, "no file");
}

Test(count, X6_a_file_that_is_none_of_ours)
{
	static const char *const texts[] = { "", "waiting 2\n", "waiting 1",
		"waiting 1\n7", "waiting 1\n7 8\n", "waiting 1\n7 8 9",
		"waiting 1\n7 8 x\n", "waiting 1\n-7 8 9\n" };
	struct waiting_user row;
	size_t i;

	for (i = 0; i < ARRAY_LEN(texts); i++) {
		int fd = openat(sp[0].fd, SPOOL_GATE "/waiting",
		    O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

		cr_assert_geq(fd, 0);
		cr_assert_geq(write(fd, texts[i], strlen(texts[i])), 0);
		close(fd);
		cr_expect_eq(waiting_read(&sp[0], 1, &row), -EBADMSG, "%zu", i);
		cr_expect_eq(row.messages, 0);
	}
}

Test(count, X5_limits_of_the_caller_hide_nothing)
{
	int fds[4096];
	struct count c;
	int n = 0;

	while (n < 4096 && (fds[n] = dup(0)) >= 0)
		n++;
	if (n < 4096)
		cr_expect_lt(count_user(&conf, &sp[0], 1000, &none, &c), 0);
	while (n > 0)
		close(fds[--n]);
}

Test(count, X6_trusted_users)
{
	static const struct {
		const char *list;
		uid_t uid;
		bool want;
	} rows[] = {
		{ "", 1000, false },
		{ "1000", 1000, true },
		{ "1, 1000 , 7", 1000, true },
		{ "10000 100", 1000, false },
		{ "root", 0, true },
		{ "daemon, bin", 1, true },
		{ "daemonx", 1, false },
		{ "daem", 1, false },
		{ "no-such-user", 4711, false },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(count_is_trusted(rows[i].list, rows[i].uid),
		    rows[i].want, "row %zu", i);
}
