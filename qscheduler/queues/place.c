/* The directory QUEUE_BASE: what the start opens or makes, and the same for a
 * check that changes nothing. */
#include "qscheduler/queues/base.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

/* A user who may rename it can put another one in its place. */
static int
place_check_above(const char *path, struct buf *ret_error)
{
	char *copy = strdup(path);
	struct stat st;
	int r = 0;

	if (copy == NULL)
		return base_fail(ret_error, -ENOMEM, path, NULL);
	if (stat(dirname(copy), &st) < 0)
		r = base_fail(ret_error, -errno, path,
		    errno == ENOENT ? "the directory above does not exist"
				    : NULL);
	else if ((st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0)
		r = base_fail(ret_error, -EPERM, path,
		    "the directory above is writable by everybody");
	free(copy);
	return r;
}

static int
place_check(const struct stat *st, const char *path, struct buf *ret_error)
{
	if (st->st_uid != geteuid())
		return base_fail(
		    ret_error, -EPERM, path, "belongs to another user");
	if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return base_fail(ret_error, -EPERM, path,
		    "is writable by others than its owner");
	return 0;
}

static int
place_begin(const char *path, struct buf *ret_error)
{
	if (path[0] != '/')
		return base_fail(ret_error, -EINVAL, path,
		    "queue_base must be an absolute path");
	return place_check_above(path, ret_error);
}

static int
place_open_there(const char *path, struct buf *ret_error)
{
	int r, fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return base_fail(ret_error, -errno, path,
		    errno == ENOTDIR || errno == ELOOP
			? "must be a directory, and not a link"
			: NULL);
	r = fstat(fd, &st) < 0 ? base_fail(ret_error, -errno, path, NULL)
			       : place_check(&st, path, ret_error);
	if (r == 0)
		return fd;
	io_close(&fd);
	return r;
}

int
base_place_open(const char *path, bool private, struct buf *ret_error)
{
	const mode_t mode = private ? 0700 : 0755;
	int fd, r = place_begin(path, ret_error);
	bool made;

	if (r < 0)
		return r;
	made = mkdir(path, mode) == 0;
	if (!made && errno != EEXIST)
		return base_fail(ret_error, -errno, path, NULL);
	fd = place_open_there(path, ret_error);
	if (fd < 0 || !made || fchmod(fd, mode) == 0) /* past our umask */
		return fd;
	r = base_fail(ret_error, -errno, path, NULL);
	io_close(&fd);
	return r;
}

/* The start will make it. */
static int
place_judge_absent(const char *path, struct buf *ret_error)
{
	char *copy = strdup(path);
	int r = 0;

	if (copy == NULL)
		return base_fail(ret_error, -ENOMEM, path, NULL);
	if (faccessat(AT_FDCWD, dirname(copy), W_OK | X_OK, AT_EACCESS) < 0) {
		r = -errno;
		(void)buf_printf(ret_error,
		    "%s: does not exist, and cannot be made in %s: %s", path,
		    copy, strerror(-r));
	}
	free(copy);
	return r;
}

int
base_place_judge(const char *path, struct buf *ret_error)
{
	struct stat st;
	int fd, r = place_begin(path, ret_error);

	if (r < 0)
		return r;
	if (lstat(path, &st) < 0 && errno == ENOENT)
		return place_judge_absent(path, ret_error);
	fd = place_open_there(path, ret_error);
	r = fd < 0 ? fd : 0;
	io_close(&fd);
	return r;
}
