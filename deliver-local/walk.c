#include "deliver-local/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

#define STEP_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define LINKS_MAX  8

struct walk {
	walk_denied_fn *denied;
	void *arg;
	int dir;
	int links;
	char rest[PATH_MAX]; /* the parts that are still to go */
};

/* Root alone can have made it, or can put another one there. */
static bool
is_of_root(int dir, const char *name)
{
	struct stat link, above;

	if (fstatat(dir, name, &link, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstat(dir, &above) < 0)
		return false;
	return S_ISLNK(link.st_mode) && link.st_uid == 0 && above.st_uid == 0 &&
	    ((above.st_mode & (S_IWGRP | S_IWOTH)) == 0 ||
		(above.st_mode & S_ISVTX) != 0);
}

static int
go_to(struct walk *w, int fd)
{
	if (fd < 0)
		return -errno;
	io_close(&w->dir);
	w->dir = fd;
	return 0;
}

/* The target of the link takes its place in the rest of the path. */
static int
follow(struct walk *w, const char *name, const char *behind)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(w->dir, name, target, sizeof(target));
	size_t left = strlen(behind);

	if (len < 0) /* no link: something else that is no directory */
		return errno == EINVAL ? -ENOTDIR : -errno;
	if (!is_of_root(w->dir, name) || ++w->links > LINKS_MAX)
		return -ELOOP;
	if ((size_t)len + 1 + left >= sizeof(w->rest))
		return -ENAMETOOLONG;
	memmove(w->rest + len + 1, behind, left + 1);
	memcpy(w->rest, target, (size_t)len);
	w->rest[len] = '/';
	return target[0] == '/' ? go_to(w, open("/", STEP_FLAGS)) : 0;
}

/* 1: that was the last part, whose name is *ret_name. */
static int
step(struct walk *w, char ret_name[NAME_MAX + 1])
{
	char *begin = w->rest + strspn(w->rest, "/");
	size_t len = strcspn(begin, "/");
	char *behind = begin + len;
	bool last = behind[strspn(behind, "/")] == '\0';
	int fd;

	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(ret_name, begin, len);
	ret_name[len] = '\0';
	if (len == 0)
		memcpy(ret_name, ".", 2);
	fd = openat(w->dir, ret_name, STEP_FLAGS);
	if (fd < 0 && errno == EACCES && w->denied != NULL &&
	    w->denied(w->arg, w->dir))
		fd = openat(w->dir, ret_name, STEP_FLAGS);
	if (fd < 0 && errno == ENOTDIR)
		return follow(w, ret_name, behind);
	if (last && (fd >= 0 || errno == ENOENT)) {
		io_close(&fd);
		return 1;
	}
	memmove(w->rest, behind, strlen(behind) + 1);
	return go_to(w, fd);
}

int
walk_to(const char *path, walk_denied_fn *denied, void *arg, int *ret_dir,
    char ret_name[NAME_MAX + 1])
{
	struct walk w = { .denied = denied, .arg = arg, .dir = -1 };
	size_t len = strlen(path);
	int r;

	if (path[0] != '/')
		return -EINVAL;
	if (len >= sizeof(w.rest))
		return -ENAMETOOLONG;
	memcpy(w.rest, path, len + 1);
	r = go_to(&w, open("/", STEP_FLAGS));
	while (r == 0)
		r = step(&w, ret_name);
	if (r < 0) {
		io_close(&w.dir);
		return r;
	}
	*ret_dir = w.dir;
	return 0;
}

int
walk_to_file(const char *path, walk_denied_fn *denied, void *arg, int *ret_dir)
{
	char above[PATH_MAX + 2], name[NAME_MAX + 1];
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		return -EINVAL;
	snprintf(above, sizeof(above), "%.*s/.", (int)(slash - path), path);
	return walk_to(above, denied, arg, ret_dir, name);
}
