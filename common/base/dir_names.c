#include "base/dir_names.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/types.h>

void
dir_names_begin(struct dir_names *d, int fd)
{
	d->fd = fd;
	d->at = d->len = 0;
}

/* 1, 0 at the end, or -errno. A directory that was removed has no names. */
static int
fill(struct dir_names *d)
{
	const ssize_t n = getdents64(d->fd, d->data, sizeof(d->data));

	d->at = d->len = 0;
	if (n < 0)
		return errno == ENOENT ? 0 : -errno;
	d->len = (size_t)n;
	return n > 0;
}

const char *
dir_names_next(struct dir_names *d, int *ret_error)
{
	const struct dirent64 *e;
	int r = 1;

	while (d->at < d->len || (r = fill(d)) == 1) {
		e = (const void *)(d->data + d->at);
		d->at += e->d_reclen;
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			return e->d_name;
	}
	*ret_error = r;
	return NULL;
}
