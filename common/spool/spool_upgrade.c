/* The move of drops from a maildrop/ that anybody could write to, as earlier
 * versions had it, to the maildrop/ behind the gate. */
#include "spool/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/io.h"
#include "spool/accept.h"
#include "spool/format.h"
#include "spool/marker.h"

#define OLD_NAME   "maildrop"
#define OPEN_DIR   (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define CHUNK      65536
/* A file above this size that has a block for less than one byte in SPARSE is a
 * hole and no mail: copying it would fill the disk with nothing. */
#define SPARSE_MIN (1 << 20)
#define SPARSE     8

struct upgrade {
	const struct spool_owner *owner;
	uint64_t largest;      /* bytes of a drop that is copied; 0: any */
	int from, to, corrupt; /* directories */
};

static int
copy_bytes(int from, int to, uint64_t size)
{
	char chunk[CHUNK];
	uint64_t off;
	int64_t n;
	int r = 0;

	for (off = 0; r == 0 && off < size; off += (uint64_t)n) {
		n = io_pread_all(from, chunk,
		    size - off < CHUNK ? (size_t)(size - off) : CHUNK,
		    (int64_t)off);
		if (n <= 0)
			return n < 0 ? (int)n : format_damaged("too short");
		r = io_write_all(to, chunk, (size_t)n);
	}
	return r;
}

/* The copy is verified, not the old file: a user who still has the old file
 * open for writing can change that one only. */
static int
check_copy(int fd, uid_t uid)
{
	struct queue_file file;
	int r = queue_file_read(fd, &file);

	if (r == 0)
		r = queue_file_verify(fd, &file);
	if (r == 0 && file.uid != uid)
		r = format_damaged("not of the user who owns it");
	return r;
}

static int
fill_copy(const struct upgrade *u, int from, int to, const struct stat *st)
{
	const bool private = u->owner->private;
	int r = copy_bytes(from, to, (uint64_t)st->st_size);

	if (r == 0)
		r = check_copy(to, st->st_uid);
	if (r == 0 && !private && fchown(to, st->st_uid, u->owner->qmail) < 0)
		r = -errno;
	if (r == 0 && fchmod(to, private ? 0600 : 0660) < 0)
		r = -errno;
	if (r == 0 && fsync(to) < 0)
		r = -errno;
	return r;
}

/* The copy is named by the old inode, so that a copy that is made again after a
 * crash has the same name, and no second message. */
static int
copy_drop(const struct upgrade *u, int from, const struct stat *st)
{
	char name[SPOOL_DROP_MAX], temp[SPOOL_DROP_MAX + 8];
	int fd, r;

	spool_drop_name(st->st_uid, (uint64_t)st->st_ino, name);
	snprintf(temp, sizeof(temp), SPOOL_TEMP_PREFIX "%s", name);
	(void)unlinkat(u->to, temp, 0);
	fd = openat(u->to, temp,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = fill_copy(u, from, fd, st);
	if (r == 0 && spool_sys_real.renameat(u->to, temp, u->to, name) < 0 &&
	    errno != EEXIST)
		r = -errno;
	if (r == 0 && fsync(u->to) < 0)
		r = -errno;
	(void)unlinkat(u->to, temp, 0);
	io_close(&fd);
	return r;
}

/* Refuses a drop that is larger than a message may be, before any of it is
 * copied. */
static int
judge_size(const struct upgrade *u, const struct stat *st)
{
	const uint64_t size = (uint64_t)st->st_size;
	const uint64_t stored = (uint64_t)st->st_blocks * 512;

	if (u->largest != 0 && size > u->largest)
		return format_damaged("larger than a message may be");
	if (size > SPARSE_MIN && stored < size / SPARSE)
		return format_damaged("a hole");
	return 0;
}

static int
take_drop(const struct upgrade *u, const char *name)
{
	struct queue_file file;
	struct stat st;
	int fd = openat(u->from, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;

	if (r == 0 && !S_ISREG(st.st_mode))
		r = format_damaged("not a regular file");
	if (r == 0)
		r = spool_file_settled(fd);
	if (r == 0)
		r = queue_file_read(fd, &file);
	if (r == 0)
		r = judge_size(u, &st);
	if (r == 0)
		r = copy_drop(u, fd, &st);
	io_close(&fd);
	return r;
}

/* A file that is no message is kept for the operator, named by its inode. */
static int
put_aside(const struct upgrade *u, const char *name)
{
	char aside[64];
	struct stat st;

	if (fstatat(u->from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	snprintf(
	    aside, sizeof(aside), "maildrop.%" PRIu64, (uint64_t)st.st_ino);
	if (spool_sys_real.renameat(u->from, name, u->corrupt, aside) < 0)
		return -errno;
	return 0;
}

static int
take_one(const struct upgrade *u, const char *name)
{
	int r = take_drop(u, name);

	if (r == 0)
		return unlinkat(u->from, name, 0) < 0 ? -errno : 0;
	if (r == -EBADMSG || r == -ELOOP || r == -ENXIO)
		return put_aside(u, name);
	return r;
}

/* Each drop is tried; the first error is returned. */
static int
take_all(const struct upgrade *u)
{
	int copy = fcntl(u->from, F_DUPFD_CLOEXEC, 3), bad = 0, r;
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;

	if (dir == NULL) {
		r = -errno;
		io_close(&copy);
		return r;
	}
	while ((e = readdir(dir)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		r = take_one(u, e->d_name);
		bad = bad == 0 && r != -ENOENT ? r : bad;
	}
	closedir(dir);
	return bad;
}

/* Users lose their access first, so that the directory does not change while it
 * is read. */
static int
empty_old(int queue, int old, struct upgrade u)
{
	int r = fchmod(old, 0700) < 0 ? -errno : 0;

	u.from = old;
	u.to = openat(queue, spool_dirs[SPOOL_MAILDROP].name, OPEN_DIR);
	u.corrupt = openat(queue, spool_dirs[SPOOL_CORRUPT].name, OPEN_DIR);
	if (r == 0 && (u.to < 0 || u.corrupt < 0))
		r = -errno;
	if (r == 0)
		r = take_all(&u);
	/* A note that the pick-up of an earlier version left. */
	(void)unlinkat(queue, "lock/pickup", 0);
	if (r == 0 && unlinkat(queue, OLD_NAME, AT_REMOVEDIR) < 0)
		r = -errno;
	io_close(&u.to);
	io_close(&u.corrupt);
	return r;
}

static bool
is_missing(int queue, enum spool_dir dir)
{
	struct stat st;

	return fstatat(queue, spool_dirs[dir].name, &st, AT_SYMLINK_NOFOLLOW) <
	    0;
}

static int
upgrade(int queue, const struct upgrade *u)
{
	int r = 0, old;

	if (is_missing(queue, SPOOL_MAILDROP))
		r = spool_make_maildrop(queue, u->owner);
	if (r == 0 && is_missing(queue, SPOOL_PREPARED))
		r = spool_make_dir(queue, SPOOL_PREPARED, u->owner);
	if (r == 0 && is_missing(queue, SPOOL_DELETED))
		r = spool_make_dir(queue, SPOOL_DELETED, u->owner);
	old = openat(queue, OLD_NAME, OPEN_DIR);
	if (r == 0 && old >= 0)
		r = empty_old(queue, old, *u);
	io_close(&old);
	return r;
}

uint64_t
spool_largest(uint64_t max_content, uint32_t max_rcpts)
{
	const uint64_t rest = QUEUE_FILE_HEADER + ACCEPT_ADDED_MAX +
	    FORMAT_RCPT_MAX * ((uint64_t)max_rcpts + 1) + QUEUE_FILE_TRAILER;

	return max_content == 0 ? 0 : max_content + rest;
}

int
spool_upgrade(const char *base, uint32_t queue, const struct spool_owner *owner,
    uint64_t largest)
{
	const struct upgrade u = { .owner = owner, .largest = largest };
	uint32_t split;
	char *path;
	int fd, r = 0;

	if (asprintf(&path, "%s/queue%" PRIu32, base, queue) < 0)
		return -ENOMEM;
	fd = open(path, OPEN_DIR);
	free(path);
	/* A directory that is no queue is reported by spool_open(). */
	if (fd >= 0 && marker_read(fd, &split) == 0)
		r = upgrade(fd, &u);
	io_close(&fd);
	return r;
}
