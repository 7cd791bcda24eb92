#include "spool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/num.h"
#include "spool/format.h"

/* The widest mode that a file may have, by whether users share the queue. */
static mode_t
widest_mode(const struct spool *sp)
{
	return sp->private ? 0600 : 0660;
}

/* Shared: any owner, but the group that alone can make names in these
 * directories. Private: the one user, and root. */
static bool
owner_fits(const struct spool *sp, const struct stat *st)
{
	const uid_t uid = st->st_uid;

	return (!sp->private && st->st_gid == sp->group) || uid == 0 ||
	    uid == sp->owner[SPOOL_INCOMING] || uid == sp->owner[SPOOL_ACTIVE];
}

/* Checks that hold for every file of the spool. */
static int
judge_kind(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return format_refused(S_ISLNK(st->st_mode)
			? "a symbolic link"
			: "not a regular file");
	if (st->st_nlink == 0)
		return -ENOENT;
	if (st->st_nlink > 1)
		return format_refused("more than one link");
	return 0;
}

int
spool_judge_file(const struct spool *sp, uint64_t inode, const struct stat *st)
{
	int r = judge_kind(st);

	if (r < 0)
		return r;
	if ((uint64_t)st->st_ino != inode)
		return format_refused("not named by its inode");
	if (!owner_fits(sp, st))
		return format_refused("owned by a stranger");
	if ((st->st_mode & 07777 & ~widest_mode(sp)) != 0)
		return format_refused("mode too wide");
	return 0;
}

/* The reason why a name could not be opened: its kind, or the error. */
static int
explain(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    const char *leaf, int error)
{
	struct stat st;
	int r;

	if (error == ENOENT ||
	    fstatat(sp->dir[dir], leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -error;
	r = spool_judge_file(sp, inode, &st);
	return r < 0 ? r : -error;
}

/* Reads write no time of access, which would change the inode of each message
 * once more, in the journal. Only the owner of the file may ask for that: when
 * one is another's, so many that follow are opened without asking. */
#define UNASKED 32
static _Atomic unsigned unasked;

static int
ask_for_no_atime(void)
{
	const unsigned left = unasked;

	if (left > 0)
		unasked = left - 1;
	return left > 0 ? 0 : O_NOATIME;
}

static bool
is_anothers(int fd, int asked)
{
	const bool refused = fd < 0 && errno == EPERM && asked != 0;

	if (refused)
		unasked = UNASKED;
	return refused;
}

static int
open_once(const struct spool *sp, enum spool_dir dir, const char *leaf,
    int flags, bool cached)
{
	const int all = flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

	return cached ? sp->sys->open_cached(sp->dir[dir], leaf, all)
		      : sp->sys->openat(sp->dir[dir], leaf, all, 0);
}

/* cached: only if that waits for no disk. */
static int
open_leaf(const struct spool *sp, enum spool_dir dir, const char *leaf,
    int flags, bool cached)
{
	const int ask = ask_for_no_atime();
	int fd = open_once(sp, dir, leaf, flags | ask, cached);

	if (is_anothers(fd, ask))
		fd = open_once(sp, dir, leaf, flags, cached);
	return fd;
}

/* locked: with the shared lock; what is no queue file is told all the same. */
static int
open_and_judge(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    int flags, bool locked, struct stat *ret_st)
{
	char leaf[SPOOL_PATH_MAX];
	int fd, r = 0, lock = 0;

	spool_leaf(sp, dir, inode, leaf, sizeof(leaf));
	fd = open_leaf(sp, dir, leaf, flags, false);
	if (fd < 0)
		return explain(sp, dir, inode, leaf, errno);
	if (locked && flock(fd, LOCK_SH | LOCK_NB) < 0)
		lock = -errno;
	r = fstat(fd, ret_st) < 0 ? -errno
				  : spool_judge_file(sp, inode, ret_st);
	if (r == 0)
		r = lock;
	if (r == 0)
		return fd;
	sp->sys->close(fd);
	return r;
}

int
spool_open_file(
    const struct spool *sp, enum spool_dir dir, uint64_t inode, int flags)
{
	struct stat st;

	return open_and_judge(sp, dir, inode, flags, false, &st);
}

int
spool_open_cached(
    const struct spool *sp, enum spool_dir dir, uint64_t inode, int flags)
{
	char leaf[SPOOL_PATH_MAX];
	struct stat st;
	int fd, r;

	spool_leaf(sp, dir, inode, leaf, sizeof(leaf));
	fd = open_leaf(sp, dir, leaf, flags, true);
	if (fd < 0)
		return -EAGAIN;
	r = fstat(fd, &st) < 0 ? -errno : spool_judge_file(sp, inode, &st);
	if (r == 0)
		return fd;
	sp->sys->close(fd);
	return -EAGAIN;
}

int
spool_open_stat(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    int flags, struct stat *ret_st)
{
	return open_and_judge(sp, dir, inode, flags, false, ret_st);
}

int
spool_open_settled(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    int flags, struct stat *ret_st)
{
	return open_and_judge(sp, dir, inode, flags, true, ret_st);
}

void
spool_drop_name(uid_t uid, uint64_t random, char out[SPOOL_DROP_MAX])
{
	snprintf(out, SPOOL_DROP_MAX, "%u.%016" PRIx64, (unsigned)uid, random);
}

bool
spool_drop_parse(const char *name, uid_t *ret_uid)
{
	const char *dot = strchr(name, '.');
	char text[16];
	uint64_t uid;

	if (dot == NULL || (size_t)(dot - name) >= sizeof(text) ||
	    strlen(dot + 1) != 16 || strspn(dot + 1, "0123456789abcdef") != 16)
		return false;
	memcpy(text, name, (size_t)(dot - name));
	text[dot - name] = '\0';
	if (num_u64(text, 0, UINT32_MAX - 1, &uid) < 0)
		return false;
	*ret_uid = (uid_t)uid;
	return true;
}

static int
judge_drop(const struct spool *sp, const char *name, const struct stat *st)
{
	int r = judge_kind(st);
	uid_t uid;

	if (r < 0)
		return r;
	if (!spool_drop_parse(name, &uid) || st->st_uid != uid)
		return format_refused("not of the user in its name");
	if (!owner_fits(sp, st))
		return format_refused("of another group");
	if ((st->st_mode & 07777) != widest_mode(sp))
		return format_refused("mode not that of a queue file");
	return 0;
}

int
spool_refuse(const char *reason)
{
	return format_refused(reason);
}

int
spool_drop_open(const struct spool *sp, const char *name)
{
	const int dir = sp->dir[SPOOL_MAILDROP];
	struct stat st;
	int fd, r;

	fd = sp->sys->openat(dir, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	if (fd < 0) {
		r = -errno;
		if (r == -ENOENT ||
		    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return r;
		return judge_drop(sp, name, &st) < 0 ? -EPERM : r;
	}
	r = fstat(fd, &st) < 0 ? -errno : judge_drop(sp, name, &st);
	if (r == 0)
		return fd;
	sp->sys->close(fd);
	return r;
}

int
spool_drop_move(const struct spool *sp, const char *name, uint64_t inode)
{
	char leaf[SPOOL_PATH_MAX];

	spool_leaf(sp, SPOOL_INCOMING, inode, leaf, sizeof(leaf));
	if (sp->sys->renameat(sp->dir[SPOOL_MAILDROP], name,
		sp->dir[SPOOL_INCOMING], leaf) < 0)
		return -errno;
	return 0;
}

/* A writer that refuses a message removes its name before it unlocks the file.
 */
int
spool_file_settled(int fd)
{
	struct stat st;

	if (flock(fd, LOCK_SH | LOCK_NB) < 0)
		return -errno;
	flock(fd, LOCK_UN);
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_nlink == 0 ? -ENOENT : 0;
}

static int
set_times(
    const struct spool *sp, const char *leaf, const struct timespec times[2])
{
	return sp->sys->utimensat(
		   sp->dir[SPOOL_DEFER], leaf, times, AT_SYMLINK_NOFOLLOW) < 0
	    ? -errno
	    : 0;
}

/* 1: it is there. */
static int
make_empty(const struct spool *sp, const char *leaf)
{
	int fd = sp->sys->openat(sp->dir[SPOOL_DEFER], leaf,
	    O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	sp->sys->close(fd);
	return 1;
}

int
spool_set_due(const struct spool *sp, uint64_t inode, usec_t due_wall)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	char leaf[SPOOL_PATH_MAX];
	int r;

	times[1].tv_sec = due_wall / USEC_PER_SEC;
	times[1].tv_nsec = due_wall % USEC_PER_SEC * 1000;
	spool_leaf(sp, SPOOL_DEFER, inode, leaf, sizeof(leaf));
	r = set_times(sp, leaf, times);
	if (r == -ENOENT)
		r = make_empty(sp, leaf);
	return r == 1 ? set_times(sp, leaf, times) : r;
}

int
spool_lock(const struct spool *sp, const char *name, bool wait)
{
	int fd, r;

	fd = sp->sys->openat(sp->dir[SPOOL_LOCK], name,
	    O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	do
		r = flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB));
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return fd;
	r = -errno;
	sp->sys->close(fd);
	return r;
}
