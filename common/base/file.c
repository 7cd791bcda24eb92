#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

static int
refuse(struct buf *ret_why, int error, const char *why)
{
	int r = buf_add_str(ret_why, why);

	return r < 0 ? r : -error;
}

bool
file_others_may_write(const struct stat *st)
{
	if (st->st_uid != 0)
		return true;
	if ((st->st_mode & S_IWGRP) != 0 && st->st_gid != 0)
		return true;
	return (st->st_mode & S_IWOTH) != 0;
}

/* Checks a resolved, absolute directory and every one above it. Cuts the path.
 */
static int
check_dirs(char *dir, struct buf *ret_why)
{
	struct stat st;
	int r;

	for (;; dir = dirname(dir)) {
		if (stat(dir, &st) < 0)
			return refuse(ret_why, errno, strerror(errno));
		if (file_others_may_write(&st) &&
		    !((st.st_mode & S_ISVTX) != 0 && st.st_uid == 0)) {
			r = buf_printf(ret_why,
			    "not trusted: others than root may write to %s",
			    dir);
			return r < 0 ? r : -EPERM;
		}
		if (strcmp(dir, "/") == 0)
			return 0;
	}
}

/* The path has its directories as they are: no link, no "." and no "..". */
static bool
is_straight(const char *path)
{
	int fd = strstr(path, "/.") != NULL
	    ? -EINVAL
	    : io_open_straight(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return false;
	io_close(&fd);
	return true;
}

static int
check_dirs_above(const char *path, struct buf *ret_why)
{
	char *given = strdup(path);
	int r = given == NULL ? -ENOMEM : check_dirs(dirname(given), ret_why);

	free(given);
	return r;
}

/* Checks the directories of the file itself, and of the name that led to it. */
static int
check_trust(const char *path, const struct stat *st, struct buf *ret_why)
{
	char real[PATH_MAX], *given;
	int r;

	if (file_others_may_write(st))
		return refuse(ret_why, EPERM,
		    st->st_uid != 0
			? "not trusted: others than root may write (chown root)"
			: "not trusted: others than root may write "
			  "(chmod go-w)");
	if (is_straight(path))
		return check_dirs_above(path, ret_why);
	if (realpath(path, real) == NULL)
		return refuse(ret_why, errno, strerror(errno));
	r = check_dirs(dirname(real), ret_why);
	if (r < 0)
		return r;
	given = strdup(path);
	if (given == NULL)
		return -ENOMEM;
	if (realpath(dirname(given), real) == NULL)
		r = refuse(ret_why, errno, strerror(errno));
	else
		r = check_dirs(real, ret_why);
	free(given);
	return r;
}

static int
check_kind(
    const char *path, int fd, size_t max, uid_t *ret_owner, struct buf *ret_why)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return refuse(ret_why, errno, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return refuse(ret_why, EISDIR, "is a directory");
	if (!S_ISREG(st.st_mode))
		return refuse(ret_why, EINVAL, "is not a regular file");
	if (st.st_size > 0 && (uint64_t)st.st_size > max)
		return refuse(ret_why, EFBIG, "is too large");
	*ret_owner = st.st_uid;
	return geteuid() == 0 ? check_trust(path, &st, ret_why) : 0;
}

/* Reads to the end, whatever fstat() said: the file may grow meanwhile. */
static int
read_all(int fd, size_t max, struct buf *out, struct buf *ret_why)
{
	size_t got = 0;

	for (;;) {
		size_t room = 16384;
		int64_t n;
		int r = buf_reserve(out, room);

		if (r < 0)
			return r;
		n = io_read_all(fd, out->data + out->len, room);
		if (n < 0)
			return refuse(ret_why, (int)-n, strerror((int)-n));
		out->len += (size_t)n;
		out->data[out->len] = '\0';
		got += (size_t)n;
		if (got > max)
			return refuse(ret_why, EFBIG, "is too large");
		if ((size_t)n < room)
			return 0;
	}
}

int
file_read_owned(const char *path, size_t max, struct buf *out, uid_t *ret_owner,
    struct buf *ret_why)
{
	uid_t owner = 0;
	int r, fd;

	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return refuse(ret_why, errno, strerror(errno));
	r = check_kind(path, fd, max, &owner, ret_why);
	if (r == 0)
		r = read_all(fd, max, out, ret_why);
	io_close(&fd);
	if (r == 0)
		*ret_owner = owner;
	return r;
}

int
file_read(const char *path, size_t max, struct buf *out, struct buf *ret_why)
{
	uid_t ignored;

	return file_read_owned(path, max, out, &ignored, ret_why);
}

static int
write_new(int dir, const char *name, mode_t mode, const struct buf *text)
{
	int r, fd;

	/* A crash may have left one there, or somebody put one there. */
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(dir, name,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	r = io_write_all(fd, text->data, text->len);
	if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
		r = -errno;
	io_close(&fd);
	return r;
}

int
file_replace(int dir, const char *name, mode_t mode, const struct buf *text)
{
	char temp[NAME_MAX + 1];
	int r;

	if (snprintf(temp, sizeof(temp), "%s.new", name) >= (int)sizeof(temp))
		return -ENAMETOOLONG;
	r = write_new(dir, temp, mode, text);
	if (r == 0 && renameat(dir, temp, dir, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, temp, 0);
	else if (fsync(dir) < 0)
		r = -errno;
	return r;
}

size_t
path_closed(const char *path)
{
	char part[PATH_MAX];
	struct stat st;
	size_t len;

	for (len = 1; len < sizeof(part); len++) {
		if (path[len] != '/' && path[len] != '\0')
			continue;
		memcpy(part, path, len);
		part[len] = '\0';
		if (stat(part, &st) < 0)
			return 0;
		if (S_ISDIR(st.st_mode) &&
		    faccessat(AT_FDCWD, part, X_OK, AT_EACCESS) < 0)
			return errno == EACCES ? len : 0;
		if (path[len] == '\0')
			return 0;
	}
	return 0;
}
