#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "spool_scratch.h"
#include "tests/unit/descriptors.h"

/* What stands in the place of a message. Each makes it at path, out of the
 * whole message that lies at good. */
static int
put_symlink(const char *good, const char *path)
{
	return symlink(good, path);
}

static int
put_dangling_symlink(const char *good UNUSED, const char *path)
{
	return symlink("/nowhere", path);
}

static int
put_hard_link(const char *good, const char *path)
{
	return link(good, path);
}

static int
put_fifo(const char *good UNUSED, const char *path)
{
	return mkfifo(path, 0600);
}

static int
put_directory(const char *good UNUSED, const char *path)
{
	return mkdir(path, 0700);
}

static int
put_socket(const char *good UNUSED, const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int r, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(sun.sun_path, path, strlen(path));
	r = bind(fd, (struct sockaddr *)&sun, sizeof(sun));
	close(fd);
	return r;
}

static int
put_renamed(const char *good, const char *path)
{
	return rename(good, path);
}

/* A name that is not the inode's; the flags of the open do not matter. */
Test(spool_file, D16_what_is_not_a_queue_file)
{
	static const struct {
		const char *name;
		int (*put)(const char *good, const char *path);
		const char *reason;
	} rows[] = {
		{ "symlink", put_symlink, "a symbolic link" },
		{ "dangling symlink", put_dangling_symlink, "a symbolic link" },
		{ "hard link", put_hard_link, "more than one link" },
		{ "fifo", put_fifo, "not a regular file" },
		{ "directory", put_directory, "not a regular file" },
		{ "socket", put_socket, "not a regular file" },
		{ "renamed", put_renamed, "not named by its inode" },
	};
	static const int flags[] = { O_RDONLY, O_RDWR };
	size_t i, f;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct scratch s;
		char good[256], bad[256];
		uint64_t inode;

		scratch_open(&s);
		inode = scratch_put(&s).inode;
		snprintf(good, sizeof(good), "%s",
		    scratch_path(&s, SPOOL_INCOMING, inode));
		snprintf(bad, sizeof(bad), "%s",
		    scratch_path(&s, SPOOL_INCOMING, inode + 1));
		cr_assert_eq(rows[i].put(good, bad), 0, "%s: %s", rows[i].name,
		    strerror(errno));
		for (f = 0; f < ARRAY_LEN(flags); f++) {
			const unsigned fds = unit_descriptors();

			cr_expect_eq(spool_open_file(&s.sp, SPOOL_INCOMING,
					 inode + 1, flags[f]),
			    -EPERM, "%s", rows[i].name);
			cr_expect_str_eq(queue_file_reason(), rows[i].reason,
			    "%s: %s", rows[i].name, queue_file_reason());
			cr_expect_eq(unit_descriptors(), fds);
		}
		snprintf(bad, sizeof(bad), "%ju", (uintmax_t)(inode + 1));
		cr_expect_eq(spool_move_corrupt(&s.sp, SPOOL_INCOMING,
				 (uint32_t)((inode + 1) % SCRATCH_SPLIT), bad),
		    0, "%s can be put away", rows[i].name);
		scratch_close(&s);
	}
}

Test(spool_file, D16_owner_and_mode)
{
	static const struct {
		const char *name;
		mode_t mode;
		int uid; /* -1: as it is */
		int want;
		const char *reason;
	} rows[] = {
		{ "as it should be", 0600, -1, 0, NULL },
		{ "less is fine", 0400, -1, 0, NULL },
		{ "group may write", 0620, -1, -EPERM, "mode too wide" },
		{ "everybody may read", 0604, -1, -EPERM, "mode too wide" },
		{ "set-user-id", 04600, -1, -EPERM, "mode too wide" },
		{ "executable", 0700, -1, -EPERM, "mode too wide" },
		{ "a stranger's", 0600, 65534, -EPERM, "owned by a stranger" },
	};
	struct scratch s;
	struct queue_id id;
	char path[256];
	size_t i;

	scratch_open(&s);
	id = scratch_put(&s);
	snprintf(path, sizeof(path), "%s",
	    scratch_path(&s, SPOOL_INCOMING, id.inode));
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		int fd;

		if (rows[i].uid >= 0 && geteuid() != 0)
			continue;
		if (rows[i].uid >= 0)
			cr_assert_eq(chown(path, (uid_t)rows[i].uid, 0), 0);
		cr_assert_eq(chmod(path, rows[i].mode), 0);
		fd = spool_open_file(&s.sp, SPOOL_INCOMING, id.inode, O_RDONLY);
		cr_expect_eq(
		    fd < 0 ? fd : 0, rows[i].want, "%s: %d", rows[i].name, fd);
		if (fd >= 0)
			close(fd);
		else
			cr_expect_str_eq(queue_file_reason(), rows[i].reason);
	}
	scratch_close(&s);
}

Test(spool_file, a_file_that_is_not_there)
{
	struct scratch s;
	struct queue_id id;

	scratch_open(&s);
	id = scratch_put(&s);
	cr_expect_eq(
	    spool_open_file(&s.sp, SPOOL_ACTIVE, id.inode, O_RDONLY), -ENOENT);
	fail_nth(FAULT_OPENAT, 1, EMFILE);
	cr_expect_eq(spool_open_file(&s.sp, SPOOL_INCOMING, id.inode, O_RDONLY),
	    -EMFILE, "our own trouble, not the file's");
	fail_nth(FAULT_OPENAT, 1, EIO);
	cr_expect_eq(
	    spool_open_file(&s.sp, SPOOL_INCOMING, id.inode, O_RDONLY), -EIO);
	fail_nth(FAULT_OPENAT, 1, EACCES);
	cr_expect_eq(spool_open_file(&s.sp, SPOOL_INCOMING, id.inode, O_RDONLY),
	    -EACCES);
	scratch_close(&s);
}

/* mutation: common/spool/spool_file.c: ask_for_no_atime() asks never, or
 * always; is_anothers() knows no refusal. */
Test(spool_file, D43_reads_write_no_time_of_access)
{
	struct scratch s;
	struct queue_id id;
	int own, foreign, asked, i;

	scratch_open(&s);
	id = scratch_put(&s);
	own = spool_open_file(&s.sp, SPOOL_INCOMING, id.inode, O_RDWR);
	cr_assert_geq(own, 0);
	cr_expect_neq(fcntl(own, F_GETFL) & O_NOATIME, 0);
	fail_nth(FAULT_OPENAT, 1, EPERM);
	foreign = spool_open_file(&s.sp, SPOOL_INCOMING, id.inode, O_RDWR);
	cr_assert_geq(foreign, 0);
	cr_expect_eq(fcntl(foreign, F_GETFL) & O_NOATIME, 0);
	close(foreign);
	close(own);
	/* The next ones do without; then it is asked again. */
	for (asked = i = 0; i < 33; i++) {
		own = spool_open_file(&s.sp, SPOOL_INCOMING, id.inode, O_RDWR);
		asked += (fcntl(own, F_GETFL) & O_NOATIME) != 0;
		close(own);
	}
	cr_expect_eq(asked, 1);
	scratch_close(&s);
}

static int
open_of_a_stranger(int dir, const char *name, int flags)
{
	errno = EPERM;
	return (flags & O_NOATIME) != 0
	    ? -1
	    : spool_sys_real.open_cached(dir, name, flags);
}

Test(spool_file, D43_a_file_of_another_owner_is_opened_from_memory)
{
	struct spool_sys sys;
	struct scratch s;
	struct queue_id id;
	int fd;

	scratch_open(&s);
	id = scratch_put(&s);
	sys = *s.sp.sys;
	sys.open_cached = open_of_a_stranger;
	s.sp.sys = &sys;
	fd = spool_open_cached(&s.sp, SPOOL_INCOMING, id.inode, O_RDWR);
	cr_expect_geq(fd, 0);
	close(fd);
	scratch_close(&s);
}

Test(spool_file, D18_removed_while_it_is_open)
{
	struct queue_file file;
	struct scratch s;
	struct queue_id id;
	int fd;

	scratch_open(&s);
	id = scratch_put(&s);
	fd = spool_open_file(&s.sp, SPOOL_INCOMING, id.inode, O_RDWR);
	cr_assert_geq(fd, 0);
	cr_assert_eq(spool_remove(&s.sp, SPOOL_INCOMING, id.inode), 0);
	cr_expect_eq(queue_file_read(fd, &file), 0);
	cr_expect_eq(queue_file_verify(fd, &file), 0);
	cr_expect_eq(
	    queue_file_mark(&fault_sys, fd, file.rcpt_off, RCPT_DONE), 0);
	close(fd);
	scratch_close(&s);
}

Test(spool_file, settled_means_that_no_writer_holds_it)
{
	struct scratch s;
	struct queue_id id;
	int reader, writer;

	scratch_open(&s);
	id = scratch_put(&s);
	writer = spool_open_file(&s.sp, SPOOL_INCOMING, id.inode, O_RDONLY);
	reader = spool_open_file(&s.sp, SPOOL_INCOMING, id.inode, O_RDONLY);
	cr_assert_eq(flock(writer, LOCK_EX), 0);
	cr_expect_eq(spool_file_settled(reader), -EAGAIN);
	close(writer);
	cr_expect_eq(spool_file_settled(reader), 0);
	cr_expect_eq(spool_file_settled(reader), 0);
	writer = spool_open_file(&s.sp, SPOOL_INCOMING, id.inode, O_RDONLY);
	cr_expect_eq(flock(writer, LOCK_EX | LOCK_NB), 0, "nothing is kept");
	close(writer);
	close(reader);
	scratch_close(&s);
}

/* ---- a writer that refuses between two looks of the reader ---- */

static struct refusal {
	const struct spool *sp;
	char leaf[SPOOL_PATH_MAX];
	int writer; /* has the lock */
} refusal;

/* Replaces flock() of all in this program. The first shared lock comes behind
 * the end of the writer. */
int
flock(int fd, int op)
{
	const struct spool *sp = refusal.sp;

	if (sp != NULL && (op & LOCK_SH) != 0) {
		refusal.sp = NULL;
		cr_assert_eq(
		    unlinkat(sp->dir[SPOOL_INCOMING], refusal.leaf, 0), 0);
		close(refusal.writer);
	}
	return (int)syscall(SYS_flock, fd, op);
}

static void
begin_refusal(const struct spool *sp, uint64_t inode)
{
	spool_leaf(
	    sp, SPOOL_INCOMING, inode, refusal.leaf, sizeof(refusal.leaf));
	refusal.writer =
	    openat(sp->dir[SPOOL_INCOMING], refusal.leaf, O_RDWR | O_CLOEXEC);
	cr_assert_geq(refusal.writer, 0);
	cr_assert_eq(flock(refusal.writer, LOCK_EX | LOCK_NB), 0);
	refusal.sp = sp;
}

/* mutations: common/spool/spool_file.c: spool_file_settled() looks at the links
 * before it locks; open_and_judge() the same. */
Test(spool_file, D7_a_message_that_is_refused_meanwhile_is_not_taken)
{
	struct scratch s;
	struct stat st;
	uint64_t inode;
	int fd;

	scratch_open(&s);
	inode = scratch_put(&s).inode;
	fd = spool_open_file(&s.sp, SPOOL_INCOMING, inode, O_RDONLY);
	cr_assert_geq(fd, 0);
	begin_refusal(&s.sp, inode);
	cr_expect_eq(spool_file_settled(fd), -ENOENT);
	cr_expect_null(refusal.sp);
	close(fd);
	inode = scratch_put(&s).inode;
	begin_refusal(&s.sp, inode);
	cr_expect_eq(
	    spool_open_settled(&s.sp, SPOOL_INCOMING, inode, O_RDONLY, &st),
	    -ENOENT);
	cr_expect_null(refusal.sp);
	scratch_close(&s);
}
