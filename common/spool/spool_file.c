#include "spool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "spool/format.h"

/* The widest mode that a file may have, by whether users share the queue. */
static mode_t
widest_mode(const struct spool *sp, enum spool_dir dir)
{
	if (sp->private)
		return 0600;
	return dir == SPOOL_MAILDROP ? 0640 : 0660;
}

static bool
owner_fits(const struct spool *sp, enum spool_dir dir, uid_t uid)
{
	return dir == SPOOL_MAILDROP || uid == 0 ||
	    uid == sp->owner[SPOOL_INCOMING] || uid == sp->owner[SPOOL_ACTIVE];
}

/* D16: is this a queue file of ours? */
static int
judge(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return format_refused(S_ISLNK(st->st_mode)
			? "a symbolic link"
			: "not a regular file");
	if (st->st_nlink == 0)
		return -ENOENT;
	if (st->st_nlink > 1)
		return format_refused("more than one link");
	if ((uint64_t)st->st_ino != inode)
		return format_refused("not named by its inode");
	if (!owner_fits(sp, dir, st->st_uid))
		return format_refused("owned by a stranger");
	if ((st->st_mode & 07777 & ~widest_mode(sp, dir)) != 0)
		return format_refused("mode too wide");
	return 0;
}

/* Why a name could not be opened: what it is may be the answer. */
static int
explain(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    const char *leaf, int error)
{
	struct stat st;
	int r;

	if (error == ENOENT ||
	    fstatat(sp->dir[dir], leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -error;
	r = judge(sp, dir, inode, &st);
	if (r < 0)
		return r;
	/* Its owner made it so; elsewhere a permission is our own trouble. */
	if (error == EACCES && dir == SPOOL_MAILDROP)
		return format_refused("not readable");
	return -error;
}

int
spool_open_file(
    const struct spool *sp, enum spool_dir dir, uint64_t inode, int flags)
{
	char leaf[SPOOL_PATH_MAX];
	struct stat st;
	int fd, r;

	spool_leaf(sp, dir, inode, leaf, sizeof(leaf));
	fd = sp->sys->openat(sp->dir[dir], leaf,
	    flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	if (fd < 0)
		return explain(sp, dir, inode, leaf, errno);
	r = fstat(fd, &st) < 0 ? -errno : judge(sp, dir, inode, &st);
	if (r == 0)
		return fd;
	sp->sys->close(fd);
	return r;
}

/* A writer that refuses takes the name away before the lock goes. */
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

int
spool_set_due(const struct spool *sp, uint64_t inode, usec_t due_wall)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	char leaf[SPOOL_PATH_MAX];
	int fd, r = 0;

	times[1].tv_sec = due_wall / USEC_PER_SEC;
	times[1].tv_nsec = due_wall % USEC_PER_SEC * 1000;
	spool_leaf(sp, SPOOL_DEFER, inode, leaf, sizeof(leaf));
	fd = sp->sys->openat(sp->dir[SPOOL_DEFER], leaf,
	    O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (sp->sys->futimens(fd, times) < 0)
		r = -errno;
	sp->sys->close(fd);
	return r;
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
