/* What of a user is counted. */
#include "tests/unit/files.h"

#include "submit/use.h"

#include "base/clock.h"
#include "ipc/page.h"
#include "spool/accept.h"
#include "spool/waiting.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static char top[64];
static struct conf conf;
static struct spool sp[2];

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

TestSuite(use, .init = start, .fini = end);

static void
put(uint32_t queue, const char *name, const char *text)
{
	int fd = openat(sp[queue].dir[SPOOL_MAILDROP], name,
	    O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

Test(use, X6_names_of_the_user_in_all_queues)
{
	struct waiting_user rows[] = { { 7, 2, 100, 0 }, { 1000, 5, 700, 3 },
		{ 100, 9, 9, 9 } };
	struct use c;

	put(0, "1000.0123456789abcdef", "12345");
	put(1, "1000.0123456789abcdee", "12");
	put(1, "tmp.1000.77.00000001", "123");
	put(0, "100.0123456789abcdef", "other's");
	put(0, "10000.0123456789abcdef", "other's");
	put(0, "tmp.100.77.00000001", "other's");
	put(0, "core", "nobody's");
	cr_assert_eq(use_count(&conf, &sp[0], 1000, &c), 0);
	cr_expect_eq(c.messages, 2);
	cr_expect_eq(c.inodes, 3);
	cr_expect_eq(c.bytes, 10);
	cr_assert_eq(waiting_write(&sp[1], 0, rows, 3), 0);
	cr_assert_eq(use_count(&conf, &sp[0], 1000, &c), 0);
	cr_expect_eq(c.messages, 7);
	cr_expect_eq(c.inodes, 8);
	cr_expect_eq(c.bytes, 710);
	cr_expect_eq(c.made, 3);
	cr_assert_eq(use_count(&conf, &sp[0], 4711, &c), 0);
	cr_expect_eq(c.messages + c.inodes + c.bytes, 0);
}

/* A page of the supervisor, and of queue 2: a call waits for so long. */
static void
make_pages(usec_t time)
{
	const struct page_owner owner = { (uid_t)-1, (gid_t)-1, 0644 };
	struct sched_page *sched;
	struct queue_page *queue;
	char name[IPC_NAME_MAX];
	uint32_t pid;
	void *page;
	int fd;

	ipc_name_scheduler(conf.instance, name);
	cr_assert_eq(page_create(name, sizeof(*sched), SCHED_PAGE_MAGIC, &owner,
			 &page, &fd, &pid),
	    0);
	sched = page;
	page_write_begin(&sched->head);
	sched->qmails_uid = getuid();
	page_write_end(&sched->head, clock_mono(), clock_wall());
	ipc_name_queue(conf.instance, 2, name);
	cr_assert_eq(page_create(name, sizeof(*queue), QUEUE_PAGE_MAGIC, &owner,
			 &page, &fd, &pid),
	    0);
	queue = page;
	page_write_begin(&queue->head);
	queue->queue = 2;
	queue->disk_since_mono = clock_mono() - time;
	page_write_end(&queue->head, clock_mono(), clock_wall());
}

static void
remove_pages(void)
{
	char name[IPC_NAME_MAX];

	ipc_name_scheduler(conf.instance, name);
	shm_unlink(name);
	ipc_name_queue(conf.instance, 2, name);
	shm_unlink(name);
}

/* mutation: common/submit/use.c: is_late() is always false. */
Test(use, D50_a_queue_whose_disk_is_late_is_not_read)
{
	static const usec_t times[] = { DISK_SLOW, DISK_LATE };
	struct use c;
	size_t i;

	if (geteuid() != 0)
		cr_skip_test("the page of the supervisor must be root's");
	put(0, "1000.0123456789abcdef", "12345");
	put(1, "1000.0123456789abcdee", "12");
	for (i = 0; i < ARRAY_LEN(times); i++) {
		make_pages(times[i]);
		cr_expect_eq(use_count(&conf, &sp[0], 1000, &c), 0);
		cr_expect_eq(c.messages, 2 - i);
		cr_expect_eq(use_count(&conf, &sp[1], 1000, &c), 0);
		cr_expect_eq(c.messages, 2, "the queue that is dropped into");
		remove_pages();
	}
}

/* mutation: common/spool/waiting.c, waiting_account() is the uid;
 * waiting_read() leaves out the rows of subordinate uids. */
Test(use, X26_mail_of_subordinate_uids_is_the_owners)
{
	struct waiting_user rows[] = { { 1000, 1, 100, 0 }, { 7, 9, 900, 0 },
		{ 100005, 2, 50, 1 }, { 165536, 9, 900, 0 } };
	struct use c;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/subuid", top);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	cr_assert_eq(write(fd, "1000:100000:65536\n", 18), 18);
	close(fd);
	cr_assert_eq(use_accounts_read(path), 0);
	put(0, "1000.0123456789abcdef", "12345");
	put(1, "100000.0123456789abcdef", "12");
	put(1, "tmp.165535.77.00000001", "123");
	put(0, "165536.0123456789abcdef", "other's");
	cr_assert_eq(use_count(&conf, &sp[0], 1000, &c), 0);
	cr_expect_eq(c.messages, 2);
	cr_expect_eq(c.inodes, 3);
	cr_expect_eq(c.bytes, 10);
	cr_assert_eq(waiting_write(&sp[1], 0, rows, 4), 0);
	cr_assert_eq(use_count(&conf, &sp[0], 1000, &c), 0);
	cr_expect_eq(c.messages, 5);
	cr_expect_eq(c.bytes, 160);
	cr_expect_eq(c.made, 1);
	cr_assert_eq(use_count(&conf, &sp[0], 165536, &c), 0);
	cr_expect_eq(c.messages, 10);
}

static void
add_one(void *arg, uid_t account, const struct use *drop)
{
	struct use *sums = arg;

	use_add(&sums[account == 1000 ? 0 : 1], drop);
}

Test(use, X6_the_drops_of_every_user)
{
	struct use sums[2] = { 0 };

	put(0, "1000.0123456789abcdef", "12345");
	put(0, "tmp.1000.77.00000001", "123");
	put(0, "7.0123456789abcdef", "1");
	put(0, "core", "nobody's");
	put(0, "-7.0123456789abcdef", "nobody's");
	put(0, "99999999999.0123456789abcdef", "nobody's");
	cr_assert_eq(use_each_drop(&sp[0], USE_ALL, add_one, sums), 0);
	cr_expect_eq(sums[0].messages, 1);
	cr_expect_eq(sums[0].inodes, 2);
	cr_expect_eq(sums[0].bytes, 8);
	cr_expect_eq(sums[1].messages, 1);
}

/* mutation: use_has_drops() counts temporary files. */
Test(use, X6_as_many_drops_as_delay_the_next)
{
	put(0, "1000.0123456789abcdef", "12345");
	put(0, "1000.0123456789abcdee", "12345");
	put(0, "tmp.1000.77.00000001", "123");
	put(0, "7.0123456789abcdef", "1");
	put(1, "1000.0123456789abcdef", "12345");
	cr_expect(use_has_drops(&sp[0], 1000, 1));
	cr_expect(use_has_drops(&sp[0], 1000, 2));
	cr_expect_not(use_has_drops(&sp[0], 1000, 3));
	cr_expect(use_has_drops(&sp[0], 7, 1));
	cr_expect_not(use_has_drops(&sp[0], 8, 1));
}

Test(use, X6_each_limit_names_user_figure_and_parameter)
{
	static const struct {
		struct use there, more;
		const char *want; /* NULL: it may come */
	} rows[] = {
		{ { 9, 900, 19, 0 }, { 1, 100, 1, 0 }, NULL },
		{ { 10, 0, 10, 0 }, { 1, 1, 1, 0 },
		    "10 messages of uid 7 wait, the limit is 10 "
		    "(user_message_limit); see \"qctl shares\"" },
		{ { 9, 0, 20, 0 }, { 1, 1, 1, 0 },
		    "20 files of uid 7 wait, the limit is 20 "
		    "(user_inode_limit); see \"qctl shares\"" },
		{ { 1, 900, 1, 0 }, { 1, 101, 1, 0 },
		    "1001 bytes of uid 7 wait with this message, the limit is "
		    "1000 "
		    "(user_size_limit); see \"qctl shares\"" },
	};
	char reason[USE_REASON_SIZE];
	size_t i;

	conf.user_message_limit = 10;
	conf.user_inode_limit = 20;
	conf.user_size_limit = 1000;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		int r =
		    use_check(&conf, 7, &rows[i].there, &rows[i].more, reason);

		cr_expect_eq(r, rows[i].want == NULL ? 0 : -1, "%zu", i);
		if (rows[i].want != NULL)
			cr_expect_str_eq(reason, rows[i].want);
	}
	conf.user_message_limit = conf.user_inode_limit = 0;
	conf.user_size_limit = 0;
	cr_expect_eq(
	    use_check(&conf, 7, &rows[1].there, &rows[1].more, reason), 0);
}

Test(use, X5_limits_of_the_caller_hide_nothing)
{
	struct rlimit before, few;
	int fds[64], n = 0;
	struct use c;
	int r;

	put(0, "1000.0123456789abcdef", "12345");
	put(1, "1000.0123456789abcdee", "12");
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ ARRAY_LEN(fds), before.rlim_max };
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	while ((fds[n] = dup(0)) >= 0)
		n++;
	cr_assert_gt(n, 0);
	do {
		r = use_count(&conf, &sp[0], 1000, &c);
		cr_expect(r == -EMFILE || (r == 0 && c.messages == 2));
		close(fds[--n]);
	} while (n > 0);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	cr_expect_eq(r, 0);
}

Test(use, X6_trusted_users)
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
		cr_expect_eq(use_is_trusted(rows[i].list, rows[i].uid),
		    rows[i].want, "row %zu", i);
}
