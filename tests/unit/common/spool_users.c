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

/* With the group of queue-drop. */
static int
drops_mail(struct shared *x)
{
	CHECK(x->s.sp.dir[SPOOL_MAILDROP] >= 0);
	CHECK(scratch_accept(&x->s, &drop, &scratch_mail, &x->id) == 0);
	return 0;
}

static int
may_nothing(struct shared *x)
{
	const struct spool *sp = &x->s.sp;
	char path[256], other[256];
	unsigned dir;

	for (dir = 0; dir < SPOOL_NDIRS; dir++)
		CHECK(sp->dir[dir] < 0);
	CHECK(scratch_accept(&x->s, &scratch_options, &scratch_mail, &x->id) ==
	    -EACCES);
	CHECK(scratch_accept(&x->s, &drop, &scratch_mail, &x->id) == -EACCES);
	CHECK(spool_lock(sp, "queue-send", false) < 0);
	CHECK(open(sp->path, O_RDONLY | O_DIRECTORY) < 0 && errno == EACCES);
	snprintf(path, sizeof(path), "%s/gate/maildrop", sp->path);
	snprintf(other, sizeof(other), "%s/gate/maildrop/1", sp->path);
	CHECK(open(path, O_PATH | O_DIRECTORY) < 0 && errno == EACCES);
	CHECK(mkdir(other, 0777) < 0 && errno == EACCES);
	CHECK(access(other, F_OK) < 0 && errno == EACCES);
	CHECK(rename(path, other) < 0 && errno == EACCES);
	snprintf(path, sizeof(path), "%s/gate", sp->path);
	snprintf(other, sizeof(other), "%s/gate/x", sp->path);
	CHECK(open(path, O_RDONLY | O_DIRECTORY) < 0 && errno == EACCES);
	CHECK(mkdir(other, 0777) < 0 && errno == EACCES);
	return 0;
}

/* The name and inode of the only message in maildrop. */
static bool
dropped(const struct spool *sp, char name[SPOOL_DROP_MAX], struct stat *ret_st)
{
	struct spool_scan scan;
	struct spool_item item;
	int r;

	spool_scan_begin(&scan, sp, SPOOL_MAILDROP);
	r = spool_scan_next(&scan, false, &item);
	spool_scan_done(&scan);
	if (r != 1)
		return false;
	snprintf(name, SPOOL_DROP_MAX, "%.31s", item.name);
	return fstatat(sp->dir[SPOOL_MAILDROP], name, ret_st,
		   AT_SYMLINK_NOFOLLOW) == 0;
}

/* Another user's process that has passed the gate, were it not the door. */
static int
cannot_touch(struct shared *x)
{
	const struct spool *sp = &x->s.sp;
	const int dir = sp->dir[SPOOL_MAILDROP];
	char name[SPOOL_DROP_MAX];
	struct stat st;

	CHECK(dropped(sp, name, &st) && st.st_uid == STRANGER);
	CHECK(openat(dir, name, O_RDONLY) < 0 && errno == EACCES);
	CHECK(openat(dir, name, O_WRONLY) < 0 && errno == EACCES);
	CHECK(unlinkat(dir, name, 0) < 0 && errno == EPERM);
	CHECK(renameat(dir, name, dir, "stolen") < 0);
	CHECK(fchmodat(dir, name, 0644, 0) < 0);
	return 0;
}

static int
picks_up(struct shared *x)
{
	const struct spool *sp = &x->s.sp;
	struct queue_file file;
	char name[SPOOL_DROP_MAX];
	struct stat st;
	int fd;

	CHECK(dropped(sp, name, &st));
	fd = spool_drop_open(sp, name);
	CHECK(fd >= 0);
	CHECK(spool_file_settled(fd) == 0);
	CHECK(queue_file_read(fd, &file) == 0);
	CHECK(queue_file_verify(fd, &file) == 0);
	CHECK(file.uid == STRANGER);
	close(fd);
	CHECK(spool_drop_move(sp, name, (uint64_t)st.st_ino) == 0);
	fd = spool_lock(sp, "todo-proc", false);
	CHECK(fd >= 0);
	return 0;
}

/* x->id is in incoming/, whoever put it there. */
static int
works_on_it(struct shared *x)
{
	const struct reason reason = { 0, 0, "4.0.0", "none", "a", "later", 0 };
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

Test(spool_users, attack_4_and_8_X10_only_by_the_door)
{
	struct shared x;
	struct stat st;
	char name[SPOOL_DROP_MAX];

	shared_open(&x);
	as_user(&x, STRANGER, STRANGER, may_nothing);
	as_user(&x, STRANGER, x.s.owner.qdrop, drops_mail);
	cr_assert(dropped(&x.s.sp, name, &st));
	cr_expect_eq(strncmp(name, "65534.", 6), 0);
	cr_expect_eq(st.st_uid, (uid_t)STRANGER, "whose it is, is known");
	cr_expect_eq(st.st_gid, x.s.owner.qmail);
	cr_expect_eq(st.st_mode & 07777, 0660u);
	as_user(&x, OTHER, x.s.owner.qdrop, cannot_touch);
	as_user(&x, x.s.owner.qmailq, x.s.owner.qmail, picks_up);
	x.id.inode = (uint64_t)st.st_ino;
	as_user(&x, x.s.owner.qmails, x.s.owner.qmail, works_on_it);
	scratch_close(&x.s);
}

/* A user who is in the group of the spool. */
static int
accepts(struct shared *x)
{
	CHECK(scratch_accept(&x->s, &scratch_options, &scratch_mail, &x->id) ==
	    0);
	return 0;
}

Test(spool_users, X10_mail_of_a_member_of_the_group_is_worked_on)
{
	struct spool_scan scan;
	struct spool_item item;
	struct shared x;
	struct stat st;

	shared_open(&x);
	as_user(&x, STRANGER, x.s.owner.qmail, accepts);
	spool_scan_begin(&scan, &x.s.sp, SPOOL_INCOMING);
	cr_assert_eq(spool_scan_next(&scan, true, &item), 1);
	spool_scan_done(&scan);
	x.id.inode = item.inode;
	cr_assert_eq(
	    stat(scratch_path(&x.s, SPOOL_INCOMING, item.inode), &st), 0);
	cr_expect_eq(st.st_uid, (uid_t)STRANGER);
	cr_expect_eq(st.st_gid, x.s.owner.qmail);
	as_user(&x, x.s.owner.qmails, x.s.owner.qmail, works_on_it);
	/* Neither of the group nor of ours. */
	x.id = scratch_put(&x.s);
	cr_assert_eq(chown(scratch_path(&x.s, SPOOL_INCOMING, x.id.inode),
			 STRANGER, STRANGER),
	    0);
	cr_expect_eq(
	    spool_open_file(&x.s.sp, SPOOL_INCOMING, x.id.inode, O_RDONLY),
	    -EPERM);
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
