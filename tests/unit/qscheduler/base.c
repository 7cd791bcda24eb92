#include "qscheduler/queues/base.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base_dir.h"
#include "qscheduler/supervisor/supervisor.h"

TestSuite(base, .init = base_dir_setup, .fini = base_dir_teardown);

Test(base, made_locked_listed)
{
	struct stat st;

	cr_assert_eq(base_dir_open(base_dir.path), 0);
	cr_assert_eq(stat(base_dir.path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0700);
	cr_assert_eq(base_list_add(&base_dir.base, 7, &base_dir.error), 0);
	cr_assert_eq(base_list_add(&base_dir.base, 4095, &base_dir.error), 0);
	base_close(&base_dir.base);

	cr_assert_eq(base_dir_open(base_dir.path), 0);
	cr_expect(base_dir.base.listed[7] && base_dir.base.listed[4095]);
	cr_expect_not(base_dir.base.listed[1]);
	base_close(&base_dir.base);
}

/* A process that has the base, and a child that it forked a moment ago: each
 * says its number, then waits. */
static pid_t
start_holder(bool with_child, int *ret_said)
{
	int said[2];
	pid_t pid;

	cr_assert_eq(pipe(said), 0);
	pid = fork();
	cr_assert(pid >= 0);
	if (pid == 0) {
		if (base_dir_open(base_dir.path) < 0)
			_exit(1);
		if (with_child && fork() == 0)
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		pid = getpid();
		alarm(240);
		if (write(said[1], &pid, sizeof(pid)) == sizeof(pid))
			pause();
		_exit(0);
	}
	close(said[1]);
	*ret_said = said[0];
	return pid;
}

Test(base, P2_one_supervisor_at_a_time)
{
	int said;
	char holder[64];
	pid_t pid = start_holder(false, &said), who;

	cr_assert_eq(io_read_all(said, &who, sizeof(who)), sizeof(who));
	cr_expect_eq(base_dir_open(base_dir.path), -EBUSY);
	cr_expect(
	    strstr(buf_str(&base_dir.error), "another qscheduler") != NULL);
	snprintf(holder, sizeof(holder), "runs on it, pid %d", (int)pid);
	cr_expect(strstr(buf_str(&base_dir.error), "pid") == NULL ||
		strstr(buf_str(&base_dir.error), holder) != NULL,
	    "%s", buf_str(&base_dir.error));
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	close(said);
}

/* The child ends a moment after its parent, as by its exec.
 * mutation: LOCK_WAIT 0. */
Test(base, P2_a_child_before_its_exec_does_not_keep_the_next_supervisor_away)
{
	int said;
	pid_t pid = start_holder(true, &said), who[2];

	cr_assert_eq(io_read_all(said, who, sizeof(who)), sizeof(who));
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_expect_eq(
	    base_dir_open(base_dir.path), 0, "%s", buf_str(&base_dir.error));
	base_close(&base_dir.base);
	close(said);
}

Test(base, another_one_in_its_place_is_another)
{
	char away[80];
	uint64_t was;

	cr_assert_eq(base_dir_open(base_dir.path), 0);
	was = base_identity(&base_dir.base);
	cr_expect_neq(was, 0);
	base_close(&base_dir.base);
	cr_assert_eq(base_dir_open(base_dir.path), 0);
	cr_expect_eq(base_identity(&base_dir.base), was, "the same");
	base_close(&base_dir.base);
	snprintf(away, sizeof(away), "%s/away", base_dir.dir);
	cr_assert_eq(rename(base_dir.path, away), 0);
	cr_assert_eq(base_dir_open(base_dir.path), 0);
	cr_expect_neq(base_identity(&base_dir.base), was);
	base_close(&base_dir.base);
}

Test(base, shared_base_may_be_passed_by_all)
{
	struct stat st;

	base_dir.users.private = false;
	umask(077);
	cr_assert_eq(base_dir_open(base_dir.path), 0);
	cr_assert_eq(stat(base_dir.path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0755);
	base_close(&base_dir.base);
}

Test(base, F5_places_that_are_refused)
{
	char other[64];

	cr_expect_eq(base_dir_open("relative/queue"), -EINVAL);
	snprintf(other, sizeof(other), "%s/none/queue", base_dir.dir);
	cr_expect_eq(base_dir_open(other), -ENOENT);
	cr_expect(strstr(buf_str(&base_dir.error), "directory above") != NULL);

	snprintf(other, sizeof(other), "%s/real", base_dir.dir);
	cr_assert_eq(mkdir(other, 0700), 0);
	cr_assert_eq(symlink(other, base_dir.path), 0);
	cr_expect(base_dir_open(base_dir.path) < 0);
	cr_expect(strstr(buf_str(&base_dir.error), "not a link") != NULL);
	cr_assert_eq(unlink(base_dir.path), 0);

	cr_assert_eq(mkdir(base_dir.path, 0700), 0);
	cr_assert_eq(chmod(base_dir.path, 0777), 0);
	cr_expect_eq(base_dir_open(base_dir.path), -EPERM);
	cr_assert_eq(chmod(base_dir.path, 0700), 0);
	cr_assert_eq(chmod(base_dir.dir, 0777), 0);
	cr_expect_eq(base_dir_open(base_dir.path), -EPERM);
	cr_assert_eq(chmod(base_dir.dir, 01777), 0); /* as /tmp is */
	cr_expect_eq(base_dir_open(base_dir.path), 0);
	base_close(&base_dir.base);
	if (geteuid() == 0) {
		cr_assert_eq(chown(base_dir.path, 65534, 65534), 0);
		cr_expect_eq(base_dir_open(base_dir.path), -EPERM);
	}
}

static void
write_list(const char *text, size_t len)
{
	char list[80];
	int fd;

	snprintf(list, sizeof(list), "%s/queues", base_dir.path);
	fd = open(list, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	cr_assert(fd >= 0);
	cr_assert_eq(write(fd, text, len), (ssize_t)len);
	close(fd);
}

Test(base, lists_as_people_write_them)
{
	static const struct {
		const char *text;
		size_t len;
		int want;
	} rows[] = {
		{ "", 0, 0 },
		{ "1\n2\n", 4, 0 },
		{ "1\r\n2", 4, 0 },
		{ "# c\n\n  1  # why\n2\n", 18, 0 },
		{ "1\n0\n", 4, -EBADMSG },
		{ "1\n4096\n", 7, -EBADMSG },
		{ "1\n-2\n", 5, -EBADMSG },
		{ "1\n2 3\n", 6, -EBADMSG },
		{ "1\n../x\n", 7, -EBADMSG },
		{ "1\n\0002\n", 5, -EBADMSG },
	};
	size_t i;

	cr_assert_eq(mkdir(base_dir.path, 0700), 0);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		write_list(rows[i].text, rows[i].len);
		cr_expect_eq(
		    base_dir_open(base_dir.path), rows[i].want, "row %zu", i);
		if (rows[i].want == 0) {
			cr_expect_eq(base_dir.base.listed[1], rows[i].len > 0);
			base_close(&base_dir.base);
		} else {
			cr_expect(strstr(buf_str(&base_dir.error),
				      "queues:2:") != NULL,
			    "row %zu: %s", i, buf_str(&base_dir.error));
		}
	}
}

Test(base, a_list_that_is_no_file)
{
	char list[80];

	cr_assert_eq(mkdir(base_dir.path, 0700), 0);
	snprintf(list, sizeof(list), "%s/queues", base_dir.path);
	cr_assert_eq(mkdir(list, 0700), 0);
	cr_expect_eq(base_dir_open(base_dir.path), -EISDIR);
	cr_assert_eq(rmdir(list), 0);
	cr_assert_eq(symlink("/etc/passwd", list), 0);
	cr_expect_eq(base_dir_open(base_dir.path), -ELOOP);
	cr_assert_eq(unlink(list), 0);
	cr_assert_eq(symlink("/etc/passwd", list), 0);
	cr_expect_eq(base_dir_open(base_dir.path), -ELOOP);
}

/* Every combination of facts; the table is that of docs/SUPERVISION.md. */
Test(base, D19_D20_what_is_done_with_a_queue)
{
	static const struct {
		bool wanted, listed, marked, mail;
		enum verdict want;
	} rows[] = {
		{ false, false, false, false, VERDICT_SKIP },
		{ true, false, false, false, VERDICT_MAKE },
		{ false, true, false, false, VERDICT_DISABLE },
		{ true, true, false, false, VERDICT_DISABLE },
		{ false, false, true, false, VERDICT_SKIP },
		{ true, false, true, false, VERDICT_OPEN },
		{ false, true, true, false, VERDICT_SKIP },
		{ true, true, true, false, VERDICT_OPEN },
		{ false, false, true, true, VERDICT_DRAIN },
		{ true, false, true, true, VERDICT_OPEN },
		{ false, true, true, true, VERDICT_DRAIN },
		{ true, true, true, true, VERDICT_OPEN },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct base_facts facts = {
			.wanted = rows[i].wanted,
			.listed = rows[i].listed,
			.marked = rows[i].marked,
			.mail = rows[i].mail,
		};

		cr_expect_eq(base_judge(&facts), rows[i].want, "row %zu", i);
	}
}

/* The queue may hold mail, whether the queue is listed and wanted or not.
 * mutation: qscheduler/queues/base.c: base_judge() looks at no error. */
Test(base, P20_a_queue_of_another_layout_is_disabled)
{
	struct buf text = { 0 };
	char path[128];
	unsigned i;

	cr_assert_eq(base_dir_open(base_dir.path), 0);
	cr_assert_eq(base_make(&base_dir.base, 1, 2, &base_dir.error), 0);
	snprintf(path, sizeof(path), "%s/queue1/deleted", base_dir.path);
	cr_assert_eq(rmdir(path), 0);
	for (i = 0; i < 4; i++) {
		struct base_facts facts = { .wanted = i & 1 };

		base_dir.base.listed[1] = i & 2;
		base_inspect(&base_dir.base, 1, &facts);
		cr_expect_eq(base_judge(&facts), VERDICT_DISABLE, "%u", i);
		text.len = 0;
		(void)base_describe_lost(&base_dir.base, 1, &facts, &text);
		cr_expect_not_null(strstr(buf_str(&text),
		    "/queue1: there is no directory deleted/; nothing was"));
		cr_expect_null(strstr(buf_str(&text), "take the line"));
	}
	buf_done(&text);
	base_close(&base_dir.base);
}

static void
put_file(const char *where)
{
	char file[128];
	int fd;

	snprintf(file, sizeof(file), "%s/queue1/%s", base_dir.path, where);
	fd = open(file, O_WRONLY | O_CREAT, 0600);
	cr_assert(fd >= 0, "%s", file);
	close(fd);
}

static void
drop_file(const char *where)
{
	char file[128];

	snprintf(file, sizeof(file), "%s/queue1/%s", base_dir.path, where);
	cr_assert_eq(unlink(file), 0);
}

Test(base, D20_what_counts_as_mail)
{
	static const struct {
		const char *file;
		bool want;
	} rows[] = {
		{ "incoming/0/2", true },
		{ "incoming/1/3", true },
		{ "active/0/4", true },
		{ "deferred/1/5", true },
		{ "gate/maildrop/1000.0123456789abcdef", true },
		{ "gate/maildrop/6", false },
		{ "prepared/00060A24181E40A50012A.0.0", true },
		{ "prepared/core", false },
		{ "hold/7", true },
		{ "corrupt/8", false },
		{ "bounce/1/9", false },
		{ "defer/0/10", false },
		{ "incoming/0/core", false },
	};
	struct base_facts facts = { 0 };
	size_t i;

	cr_assert_eq(base_dir_open(base_dir.path), 0);
	cr_assert_eq(base_make(&base_dir.base, 1, 2, &base_dir.error), 0);
	cr_expect(base_dir.base.listed[1]);
	base_inspect(&base_dir.base, 1, &facts);
	cr_expect(facts.there && facts.marked && facts.listed && !facts.mail);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		put_file(rows[i].file);
		base_inspect(&base_dir.base, 1, &facts);
		cr_expect_eq(facts.mail, rows[i].want, "%s", rows[i].file);
		drop_file(rows[i].file);
	}
	base_inspect(&base_dir.base, 2, &facts);
	cr_expect(!facts.there && !facts.marked);
	cr_expect_eq(facts.error, -ENOENT);
	base_close(&base_dir.base);
}

/* What an operator may have left there. */
Test(base, D16_what_is_no_file_in_maildrop_is_no_mail)
{
	struct base_facts facts = { 0 };
	char drop[128];

	cr_assert_eq(base_dir_open(base_dir.path), 0);
	cr_assert_eq(base_make(&base_dir.base, 1, 2, &base_dir.error), 0);
	snprintf(drop, sizeof(drop),
	    "%s/queue1/gate/maildrop/7.0123456789abcdef", base_dir.path);
	cr_assert_eq(mkdir(drop, 0700), 0);
	base_inspect(&base_dir.base, 1, &facts);
	cr_expect_not(facts.mail);
	cr_expect_eq(base_seal(&base_dir.base, 1), 1);
	cr_assert_eq(rmdir(drop), 0);
	cr_assert_eq(symlink("/etc/passwd", drop), 0);
	base_inspect(&base_dir.base, 1, &facts);
	cr_expect_not(facts.mail);
	base_close(&base_dir.base);
}

static bool looks, sealed, locked;

/* Replaces flock() of all in this program: the look into a queue begins with
 * its locks. */
int
flock(int fd, int op)
{
	sealed |= looks && spool_is_sealed_at(base_dir.path, 1);
	locked |= looks;
	return (int)syscall(SYS_flock, fd, op);
}

static void
touch(const char *name)
{
	char file[128];
	int fd;

	snprintf(file, sizeof(file), "%s/queue1/%s", base_dir.path, name);
	fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0, "%s", file);
	close(fd);
}

/* A message that gets its name behind the look would lie in a queue that nobody
 * runs; a queue that is run again takes mail.
 * mutations: qscheduler/queues/base.c: base_seal() looks first; it leaves the
 * seal where there is mail. */
Test(base, D20_a_queue_is_sealed_before_the_look_into_it)
{
	int fd;

	cr_assert_eq(base_dir_open(base_dir.path), 0);
	cr_assert_eq(base_make(&base_dir.base, 1, 2, &base_dir.error), 0);
	touch("lock/queue-send");
	looks = true;
	cr_expect_eq(base_seal(&base_dir.base, 1), 1);
	looks = false;
	cr_expect(locked);
	cr_expect(sealed);
	/* A process of the queue that still runs may move files. */
	fd = openat(
	    base_dir.base.fd, "queue1/lock/queue-send", O_RDONLY | O_CLOEXEC);
	cr_assert_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	cr_expect_eq(base_seal(&base_dir.base, 1), -EAGAIN);
	close(fd);
	touch("hold/7");
	cr_expect_eq(base_seal(&base_dir.base, 1), 0);
	cr_expect_not(spool_is_sealed_at(base_dir.path, 1));
	base_close(&base_dir.base);
}

/* A crash between the directory and its line, and a second run of it all. */
Test(base, D24_making_is_repeatable)
{
	struct base_room room = { 0 };

	cr_assert_eq(base_dir_open(base_dir.path), 0);
	cr_assert_eq(
	    spool_create(base_dir.path, 3, 2, &base_dir.base.owner), 0);
	cr_expect_not(base_dir.base.listed[3]);
	cr_assert_eq(base_make(&base_dir.base, 3, 2, &base_dir.error), 0);
	cr_expect(base_dir.base.listed[3]);
	cr_assert_eq(base_make(&base_dir.base, 3, 2, &base_dir.error), 0);
	cr_expect_eq(
	    base_check(&base_dir.base, 3, &(struct room_want){ 0 }, &room), 0);
	base_close(&base_dir.base);
}

/* mutation: qscheduler/queues/disk.c: disk_make_again() is disk_make(). */
Test(base, D45_a_queue_that_is_repaired_is_not_made)
{
	struct conf conf = { .queue_split = 2 };
	struct instance instance = { .conf = &conf };
	struct queues all = { .base = &base_dir.base, .instance = &instance };
	const struct worker_call call = {
		.ctx = &all, .number = 3, .error = &base_dir.error
	};
	struct spool sp;
	int lock;

	cr_assert_eq(base_dir_open(base_dir.path), 0);
	cr_expect_eq(disk_make_again(&call), 0, "no queue is there");
	cr_expect_eq(disk_make_again(&call), 0, "no process had it");
	cr_assert_eq(spool_open(&sp, &spool_sys_real, base_dir.path, 3), 0);
	lock = spool_lock(&sp, "queue-send", false);
	cr_assert_geq(lock, 0);
	cr_expect_eq(disk_make_again(&call), -EAGAIN);
	close(lock);
	cr_expect_eq(disk_make_again(&call), 0);
	spool_close(&sp);
	base_close(&base_dir.base);
}

/* mutation: qscheduler/queues/disk.c: disk_facts_of() begins with all 0. */
Test(base, an_answer_that_is_cut_off_is_no_empty_queue)
{
	const struct base_facts whole = { .marked = true, .wanted = true };
	struct buf more = { 0 };
	struct base_facts facts;

	cr_assert_eq(buf_add(&more, &whole, sizeof(whole)), 0);
	facts = disk_facts_of(&more);
	cr_expect_eq(base_judge(&facts), VERDICT_OPEN);
	cr_expect_not(facts.mail);
	more.len--;
	facts = disk_facts_of(&more);
	cr_expect_eq(base_judge(&facts), VERDICT_DISABLE);
	cr_expect(facts.mail);
	cr_expect_eq(facts.error, -EIO);
	buf_done(&more);
}
