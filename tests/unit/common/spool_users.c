/* A queue with users of its own, seen by each of them. Root only. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spool/reason.h"
#include "spool_scratch.h"

#define STRANGER 65534
#define OTHER    65533

struct shared {
	struct scratch s;
	struct queue_id id; /* of the message at hand */
};

/* Run body as that user in a process of its own, which opens the queue itself;
 * the number of the line that failed comes back. */
#define CHECK(cond)                      \
	do {                             \
		if (!(cond))             \
			return __LINE__; \
	} while (0)

static void
as_user(struct shared *x, uid_t uid, gid_t gid, int (*body)(struct shared *x))
{
	int report[2], line = -1, status;
	pid_t pid;

	cr_assert_eq(pipe2(report, O_CLOEXEC), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		struct spool mine;

		if (setgroups(0, NULL) == 0 && setgid(gid) == 0 &&
		    setuid(uid) == 0 &&
		    spool_open(&mine, &fault_sys, x->s.base, 1) == 0) {
			x->s.sp = mine;
			line = body(x);
		}
		_exit(write(report[1], &line, sizeof(line)) !=
		    (ssize_t)sizeof(line));
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(
	    read(report[0], &line, sizeof(line)), (ssize_t)sizeof(line));
	close(report[0]);
	close(report[1]);
	cr_assert_eq(line, 0, "as user %u: line %d", uid, line);
}

static void
shared_open(struct shared *x)
{
	if (geteuid() != 0)
		cr_skip_test("needs root to become other users");
	umask(077);
	scratch_open_shared(&x->s);
	memset(&x->id, 0, sizeof(x->id));
}

static const struct accept_options drop = { .dir = SPOOL_MAILDROP };

static int
drops_mail(struct shared *x)
{
	CHECK(x->s.sp.dir[SPOOL_MAILDROP] >= 0);
	CHECK(scratch_accept(&x->s, &drop, &scratch_mail, &x->id) == 0);
	return 0;
}

static int
may_only_drop(struct shared *x)
{
	const struct spool *sp = &x->s.sp;
	struct spool_scan scan;
	struct spool_item item;
	char path[256];
	unsigned dir;

	for (dir = 0; dir < SPOOL_NDIRS; dir++)
		CHECK((sp->dir[dir] >= 0) == (dir == SPOOL_MAILDROP));
	CHECK(scratch_accept(&x->s, &scratch_options, &scratch_mail, &x->id) ==
	    -EACCES);
	spool_scan_begin(&scan, sp, SPOOL_MAILDROP);
	CHECK(spool_scan_next(&scan, false, &item) == -EACCES);
	spool_scan_done(&scan);
	CHECK(spool_lock(sp, "queue-send", false) < 0);
	snprintf(path, sizeof(path), "%s", sp->path);
	CHECK(open(path, O_RDONLY | O_DIRECTORY) < 0 && errno == EACCES);
	return 0;
}

/* x->id is a message that another user dropped. */
static int
cannot_touch(struct shared *x)
{
	const struct spool *sp = &x->s.sp;
	const char *path = scratch_path(&x->s, SPOOL_MAILDROP, x->id.inode);

	CHECK(access(path, F_OK) == 0);
	CHECK(open(path, O_RDONLY) < 0 && errno == EACCES);
	CHECK(open(path, O_WRONLY) < 0 && errno == EACCES);
	CHECK(unlink(path) < 0 && errno == EPERM);
	CHECK(rename(path, "/tmp/spool-test-stolen") < 0);
	CHECK(chmod(path, 0644) < 0);
	CHECK(spool_remove(sp, SPOOL_MAILDROP, x->id.inode) == -EPERM);
	CHECK(open(scratch_path(&x->s, SPOOL_INCOMING, x->id.inode), O_RDONLY) <
		0 &&
	    errno == EACCES);
	return 0;
}

/* The inode of the only message in maildrop, as its owner sees it. */
static uint64_t
dropped(struct shared *x)
{
	struct spool_scan scan;
	struct spool_item item = { 0 };

	spool_scan_begin(&scan, &x->s.sp, SPOOL_MAILDROP);
	(void)spool_scan_next(&scan, true, &item);
	spool_scan_done(&scan);
	return item.inode;
}

static int
picks_up(struct shared *x)
{
	const struct spool *sp = &x->s.sp;
	struct queue_file file;
	struct stat st;
	uint64_t inode = dropped(x);
	int fd = spool_open_file(sp, SPOOL_MAILDROP, inode, O_RDONLY);

	CHECK(fd >= 0);
	CHECK(spool_file_settled(fd) == 0);
	CHECK(queue_file_read(fd, &file) == 0);
	CHECK(queue_file_verify(fd, &file) == 0);
	CHECK(fstat(fd, &st) == 0 && st.st_uid == STRANGER);
	close(fd);
	CHECK(scratch_accept(&x->s, &scratch_options, &scratch_mail, &x->id) ==
	    0);
	CHECK(spool_remove(sp, SPOOL_MAILDROP, inode) == 0);
	fd = spool_lock(sp, "todo-proc", false);
	CHECK(fd >= 0);
	return 0;
}

Test(spool_users, attack_4_and_8_a_local_user_can_drop_mail_and_nothing_else)
{
	struct shared x;
	struct stat st;
	const char *path;

	shared_open(&x);
	as_user(&x, STRANGER, STRANGER, may_only_drop);
	as_user(&x, STRANGER, STRANGER, drops_mail);
	x.id.inode = dropped(&x);
	cr_assert_neq(x.id.inode, 0u);
	path = scratch_path(&x.s, SPOOL_MAILDROP, x.id.inode);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_uid, (uid_t)STRANGER, "whose it is, is known");
	cr_expect_eq(st.st_gid, x.s.owner.qmail);
	cr_expect_eq(st.st_mode & 07777, 0640u);
	as_user(&x, OTHER, OTHER, cannot_touch);
	as_user(&x, x.s.owner.qmailq, x.s.owner.qmail, picks_up);
	scratch_close(&x.s);
}

/* x->id is in incoming/, whoever put it there. */
static int
works_on_it(struct shared *x)
{
	const struct reason reason = { 0, 0, "4.0.0", "none", "a", "later" };
	const struct spool *sp = &x->s.sp;
	const uint64_t inode = x->id.inode;
	struct queue_file file;
	int fd = spool_open_file(sp, SPOOL_INCOMING, inode, O_RDWR);

	CHECK(fd >= 0);
	CHECK(spool_file_settled(fd) == 0);
	CHECK(queue_file_read(fd, &file) == 0);
	CHECK(spool_move(sp, SPOOL_INCOMING, SPOOL_ACTIVE, inode) == 0);
	CHECK(queue_file_mark(sp->sys, fd, file.rcpt_off, RCPT_DONE) == 0);
	CHECK(reason_add(sp, SPOOL_DEFER, inode, &reason) == 0);
	CHECK(spool_set_due(sp, inode, 4711 * USEC_PER_SEC) == 0);
	CHECK(spool_move(sp, SPOOL_ACTIVE, SPOOL_DEFERRED, inode) == 0);
	CHECK(spool_move(sp, SPOOL_DEFERRED, SPOOL_CORRUPT, inode) == 0);
	CHECK(spool_move(sp, SPOOL_CORRUPT, SPOOL_HOLD, inode) == 0);
	CHECK(reason_clear(sp, SPOOL_DEFER, inode) == 0);
	CHECK(spool_remove(sp, SPOOL_HOLD, inode) == 0);
	close(fd);
	fd = spool_lock(sp, "queue-send", false);
	CHECK(fd >= 0);
	return 0;
}

Test(spool_users, the_queue_works_on_files_of_root_and_of_qmailq)
{
	struct shared x;
	struct stat st;

	shared_open(&x);
	x.id = scratch_put(&x.s);
	cr_assert_eq(
	    stat(scratch_path(&x.s, SPOOL_INCOMING, x.id.inode), &st), 0);
	cr_expect_eq(st.st_uid, 0u);
	cr_expect_eq(st.st_gid, x.s.owner.qmail);
	cr_expect_eq(st.st_mode & 07777, 0660u, "whatever the umask says");
	as_user(&x, x.s.owner.qmails, x.s.owner.qmail, works_on_it);
	x.id = scratch_put(&x.s);
	cr_assert_eq(chown(scratch_path(&x.s, SPOOL_INCOMING, x.id.inode),
			 x.s.owner.qmailq, x.s.owner.qmail),
	    0);
	as_user(&x, x.s.owner.qmails, x.s.owner.qmail, works_on_it);
	scratch_close(&x.s);
}

/* What a user can make of his own drop, and of names in maildrop. */
static int
sets_traps(struct shared *x)
{
	const char *path;
	char other[256];

	CHECK(drops_mail(x) == 0);
	path = scratch_path(&x->s, SPOOL_MAILDROP, x->id.inode);
	snprintf(other, sizeof(other), "%s/maildrop/1", x->s.sp.path);
	CHECK(symlink("/etc/shadow", other) == 0);
	snprintf(other, sizeof(other), "%s/maildrop/2", x->s.sp.path);
	CHECK(link(path, other) == 0);
	snprintf(other, sizeof(other), "%s/maildrop/3", x->s.sp.path);
	CHECK(mkfifo(other, 0666) == 0);
	return 0;
}

static int
sees_the_traps(struct shared *x)
{
	const struct spool *sp = &x->s.sp;
	struct spool_scan scan;
	struct spool_item item;
	unsigned n = 0;

	spool_scan_begin(&scan, sp, SPOOL_MAILDROP);
	while (spool_scan_next(&scan, false, &item) > 0) {
		n++;
		CHECK(spool_open_file(
			  sp, SPOOL_MAILDROP, item.inode, O_RDONLY) == -EPERM);
		CHECK(
		    spool_move_corrupt(sp, SPOOL_MAILDROP, 0, item.name) == 0);
	}
	spool_scan_done(&scan);
	CHECK(n == 4);
	return 0;
}

Test(spool_users, attack_7_links_in_maildrop_are_not_followed)
{
	struct shared x;

	shared_open(&x);
	as_user(&x, STRANGER, STRANGER, sets_traps);
	as_user(&x, x.s.owner.qmailq, x.s.owner.qmail, sees_the_traps);
	scratch_close(&x.s);
}

static int
drops_what_nobody_may_read(struct shared *x)
{
	CHECK(drops_mail(x) == 0);
	CHECK(chmod(scratch_path(&x->s, SPOOL_MAILDROP, x->id.inode), 0) == 0);
	return 0;
}

static int
refuses_it(struct shared *x)
{
	CHECK(spool_open_file(&x->s.sp, SPOOL_MAILDROP, dropped(x), O_RDONLY) ==
	    -EPERM);
	CHECK(strcmp(queue_file_reason(), "not readable") == 0);
	return 0;
}

Test(spool_users, D16_a_drop_that_cannot_be_read)
{
	struct shared x;

	shared_open(&x);
	as_user(&x, STRANGER, STRANGER, drops_what_nobody_may_read);
	as_user(&x, x.s.owner.qmailq, x.s.owner.qmail, refuses_it);
	scratch_close(&x.s);
}

Test(spool_users, root_submits_to_a_private_instance_for_its_user)
{
	struct scratch s;
	struct stat st;
	unsigned dir;

	if (geteuid() != 0)
		cr_skip_test("needs root to become other users");
	scratch_open(&s);
	cr_assert_eq(chown(s.sp.path, STRANGER, STRANGER), 0);
	for (dir = 0; dir < SPOOL_NDIRS; dir++)
		cr_assert_eq(fchownat(s.sp.fd, spool_dirs[dir].name, STRANGER,
				 STRANGER, 0),
		    0);
	spool_close(&s.sp);
	cr_assert_eq(spool_open(&s.sp, &fault_sys, s.base, 1), 0);
	cr_assert_eq(
	    stat(scratch_path(&s, SPOOL_INCOMING, scratch_put(&s).inode), &st),
	    0);
	cr_expect_eq(st.st_uid, (uid_t)STRANGER);
	cr_expect_eq(st.st_mode & 07777, 0600u);
	scratch_close(&s);
}
