#include "spool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <linux/magic.h>

#include "base/io.h"
#include "base/num.h"
#include "spool/format.h"
#include "spool/marker.h"

/* clang-format off */
const struct spool_dir_info spool_dirs[SPOOL_NDIRS] = {
	/*                     name       split  qmailq shared private */
	[SPOOL_MAILDROP] = { SPOOL_GATE "/maildrop",
				         false, true,  03777, 0700 },
	[SPOOL_PREPARED] = { "prepared", false, false, 02770, 0700 },
	[SPOOL_INCOMING] = { "incoming", true,  true,  02770, 0700 },
	[SPOOL_ACTIVE]   = { "active",   true,  false, 02770, 0700 },
	[SPOOL_DEFERRED] = { "deferred", true,  false, 02770, 0700 },
	[SPOOL_HOLD]     = { "hold",     false, false, 02770, 0700 },
	[SPOOL_CORRUPT]  = { "corrupt",  false, false, 02770, 0700 },
	[SPOOL_DELETED]  = { "deleted",  false, false, 02770, 0700 },
	[SPOOL_DEFER]    = { "defer",    true,  false, 02770, 0700 },
	[SPOOL_BOUNCE]   = { "bounce",   true,  false, 02770, 0700 },
	[SPOOL_LOCK]     = { "lock",     false, false, 02770, 0700 },
};
/* clang-format on */

/* Of the last spool_open() that ended with -EMEDIUMTYPE. */
static _Thread_local char layout_error[SPOOL_ERROR_MAX];

#define OPEN_DIR     (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

#define OLD_MAILDROP "maildrop"

/* The marker is written last: a queue with a marker has all directories. One
 * without them was made by a development version, or lost them. */
static int
refuse_dirs(const char *what, const char *name, const char *remedy)
{
	static _Thread_local char text[256];

	snprintf(text, sizeof(text),
	    "%s directory %s/; nothing was changed: %s", what, name, remedy);
	format_refused(text);
	return -EMEDIUMTYPE;
}

/* O_PATH, since the gate may be passed and not read. */
static int
open_dir(struct spool *sp, enum spool_dir dir)
{
	const char *name = spool_dirs[dir].name;
	struct stat st;
	int fd;

	if (fstatat(sp->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == EACCES ? 0
		    : errno == ENOENT
		    ? refuse_dirs("there is no", name, "put back the directory")
		    : -errno;
	sp->owner[dir] = st.st_uid;
	if (faccessat(sp->fd, name, X_OK, AT_EACCESS) < 0)
		return errno == EACCES ? 0 : -errno;
	fd = sp->sys->openat(sp->fd, name, OPEN_DIR, 0);
	if (fd < 0)
		return -errno;
	sp->dir[dir] = fd;
	return 0;
}

/* Does one journal, or none (tmpfs), keep the order of all names? Other file
 * systems are taken not to: btrfs logs a directory alone, and after a power cut
 * a file that had been moved there and removed is back under the name from
 * before the move. */
static bool
has_one_journal(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 &&
	    (fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_SUPER_MAGIC ||
		fs.f_type == TMPFS_MAGIC);
}

static int
open_dirs(struct spool *sp, unsigned dirs)
{
	struct stat st;
	unsigned dir;
	int r = marker_read(sp->fd, &sp->split);

	for (dir = 0; r == 0 && dir < SPOOL_NDIRS; dir++)
		if ((dirs & SPOOL_DIR_BIT(dir)) != 0)
			r = open_dir(sp, dir);
	if (r == 0 && faccessat(sp->fd, OLD_MAILDROP, F_OK, 0) == 0)
		r = refuse_dirs("there is an old", OLD_MAILDROP,
		    "deliver its mail with the qscheduler that made it, then "
		    "remove it");
	if (r == 0 && fstat(sp->fd, &st) < 0)
		r = -errno;
	/* Only the owner may enter: one user runs the instance. */
	if (r == 0)
		sp->private = (st.st_mode & 0077) == 0;
	if (r == 0)
		sp->keeps_order = has_one_journal(sp->fd);
	if (r == 0)
		sp->group = st.st_gid;
	return r;
}

int
spool_open_some(struct spool *sp, const struct spool_sys *sys, const char *base,
    uint32_t queue, unsigned dirs)
{
	unsigned dir;
	int r;

	*sp = (struct spool){ .sys = sys, .queue = queue, .fd = -1 };
	for (dir = 0; dir < SPOOL_NDIRS; dir++)
		sp->dir[dir] = -1;
	if (asprintf(&sp->path, "%s/queue%" PRIu32, base, queue) < 0) {
		sp->path = NULL;
		return -ENOMEM;
	}
	sp->fd = sys->openat(AT_FDCWD, sp->path, OPEN_DIR, 0);
	r = sp->fd < 0 ? -errno : open_dirs(sp, dirs);
	if (r == -EMEDIUMTYPE)
		snprintf(layout_error, sizeof(layout_error), "%s: %s", sp->path,
		    queue_file_reason());
	if (r < 0)
		spool_close(sp);
	return r;
}

const char *
spool_error(int error)
{
	return error == -EMEDIUMTYPE ? layout_error : strerror(-error);
}

int
spool_open(struct spool *sp, const struct spool_sys *sys, const char *base,
    uint32_t queue)
{
	return spool_open_some(
	    sp, sys, base, queue, SPOOL_DIR_BIT(SPOOL_NDIRS) - 1);
}

bool
spool_is_in_memory(const struct spool *sp)
{
	struct statfs fs;

	return fstatfs(sp->fd, &fs) == 0 &&
	    (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

void
spool_close(struct spool *sp)
{
	unsigned dir;

	for (dir = 0; dir < SPOOL_NDIRS; dir++)
		io_close(&sp->dir[dir]);
	io_close(&sp->fd);
	free(sp->path);
	sp->path = NULL;
}

static int
make_seal(int dir)
{
	int r = 0,
	    fd = openat(dir, SPOOL_SEALED,
		O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0 || fsync(fd) < 0)
		r = -errno;
	io_close(&fd);
	return r;
}

int
spool_set_sealed(const char *base, uint32_t queue, bool sealed)
{
	char *path;
	int dir, r = 0;

	if (asprintf(&path, "%s/queue%" PRIu32, base, queue) < 0)
		return -ENOMEM;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		r = -errno;
	else if (sealed)
		r = make_seal(dir);
	else if (unlinkat(dir, SPOOL_SEALED, 0) < 0 && errno != ENOENT)
		r = -errno;
	if (r == 0 && fsync(dir) < 0)
		r = -errno;
	io_close(&dir);
	free(path);
	return r;
}

/* An error counts as "not sealed": the supervisor scans the directories after
 * it has set the mark, and finds a message that came in all the same. */
bool
spool_is_sealed(const struct spool *sp)
{
	struct stat st;

	return fstatat(sp->fd, SPOOL_SEALED, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

bool
spool_is_sealed_at(const char *base, uint32_t queue)
{
	char *path;
	bool sealed;

	if (asprintf(&path, "%s/queue%" PRIu32 "/" SPOOL_SEALED, base, queue) <
	    0)
		return false;
	sealed = faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	free(path);
	return sealed;
}

_Static_assert(2 * NUM_DIGITS_MAX + 2 <= SPOOL_PATH_MAX, "a leaf fits");

void
spool_leaf(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    char *out, size_t size)
{
	ASSERT(size >= SPOOL_PATH_MAX);
	if (spool_dirs[dir].split) {
		out += num_format(inode % sp->split, out);
		*out++ = '/';
	}
	num_format(inode, out);
}

void
spool_path(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    char *out, size_t size)
{
	char leaf[SPOOL_PATH_MAX];

	spool_leaf(sp, dir, inode, leaf, sizeof(leaf));
	snprintf(out, size, "%s/%s", spool_dirs[dir].name, leaf);
}

bool
spool_name_leaf(enum spool_dir dir, uint32_t split, const char *name, char *out,
    size_t size)
{
	const int n = spool_dirs[dir].split
	    ? snprintf(out, size, "%" PRIu32 "/%s", split, name)
	    : snprintf(out, size, "%s", name);

	return n < (int)size;
}

int
spool_stat(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    struct stat *ret_st)
{
	char leaf[SPOOL_PATH_MAX];

	spool_leaf(sp, dir, inode, leaf, sizeof(leaf));
	return fstatat(sp->dir[dir], leaf, ret_st, AT_SYMLINK_NOFOLLOW) < 0
	    ? -errno
	    : 0;
}

int
spool_open_name(
    const struct spool *sp, enum spool_dir dir, uint64_t inode, int flags)
{
	char leaf[SPOOL_PATH_MAX];
	int fd;

	spool_leaf(sp, dir, inode, leaf, sizeof(leaf));
	fd = sp->sys->openat(sp->dir[dir], leaf,
	    flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

int
spool_move(const struct spool *sp, enum spool_dir from, enum spool_dir to,
    uint64_t inode)
{
	char old[SPOOL_PATH_MAX], new[SPOOL_PATH_MAX];

	spool_leaf(sp, from, inode, old, sizeof(old));
	spool_leaf(sp, to, inode, new, sizeof(new));
	if (sp->sys->renameat(sp->dir[from], old, sp->dir[to], new) < 0)
		return -errno;
	return 0;
}

#define CORRUPT_NAME_MAX  200
#define CORRUPT_TRIES_MAX 1000

/* A name that is safe to list, to log and to open again. */
static void
clean_name(const char *name, char out[CORRUPT_NAME_MAX + 1])
{
	static const char plain[] = "0123456789-._abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t i;

	for (i = 0; i < CORRUPT_NAME_MAX && name[i] != '\0'; i++)
		out[i] = strchr(plain, name[i]) == NULL ? '_' : name[i];
	out[i] = '\0';
	if (out[0] == '.')
		out[0] = '_';
}

int
spool_move_corrupt(const struct spool *sp, enum spool_dir from, uint32_t split,
    const char *name)
{
	char old[16 + NAME_MAX + 1], clean[CORRUPT_NAME_MAX + 1];
	char new[CORRUPT_NAME_MAX + 16];
	unsigned i;

	if (strchr(name, '/') != NULL ||
	    !spool_name_leaf(from, split, name, old, sizeof(old)))
		return -EINVAL;
	clean_name(name, clean);
	snprintf(new, sizeof(new), "%s", clean);
	for (i = 1; i <= CORRUPT_TRIES_MAX; i++) {
		if (sp->sys->renameat(
			sp->dir[from], old, sp->dir[SPOOL_CORRUPT], new) == 0)
			return 0;
		if (errno != EEXIST && errno != ENOTEMPTY)
			return -errno;
		snprintf(new, sizeof(new), "%s.%u", clean, i);
	}
	return -EEXIST;
}

int
spool_remove(const struct spool *sp, enum spool_dir dir, uint64_t inode)
{
	char leaf[SPOOL_PATH_MAX];

	spool_leaf(sp, dir, inode, leaf, sizeof(leaf));
	return sp->sys->unlinkat(sp->dir[dir], leaf, 0) < 0 ? -errno : 0;
}

int
spool_sync_names(const struct spool *sp, enum spool_dir dir, uint64_t inode)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	char leaf[SPOOL_PATH_MAX];
	char *slash;
	int fd, r;

	spool_leaf(sp, dir, inode, leaf, sizeof(leaf));
	slash = strchr(leaf, '/');
	if (slash != NULL)
		*slash = '\0';
	fd =
	    sp->sys->openat(sp->dir[dir], slash == NULL ? "." : leaf, flags, 0);
	if (fd < 0)
		return -errno;
	r = (sp->keeps_order ? sp->sys->fsync : sp->sys->syncfs)(fd);
	r = r < 0 ? -errno : 0;
	sp->sys->close(fd);
	return r;
}
