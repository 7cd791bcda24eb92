#include "spool/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int
real_openat(int dir, const char *name, int flags, mode_t mode)
{
	return openat(dir, name, flags, mode);
}

static int
real_open_cached(int dir, const char *name, int flags)
{
	struct open_how how = { .flags = (uint64_t)(unsigned)flags,
		.resolve = RESOLVE_CACHED };

	return (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
}

static ssize_t
real_pread_cached(int fd, void *data, size_t len, off_t off)
{
	const struct iovec v = { data, len };

	return preadv2(fd, &v, 1, off, RWF_NOWAIT);
}

/* A file system without RENAME_NOREPLACE (NFS) gets the old call, for maildirs,
 * whose names are new ones; no queue is run there (spool_create()). */
static int
real_renameat(int olddir, const char *old, int newdir, const char *name)
{
	int r = renameat2(olddir, old, newdir, name, RENAME_NOREPLACE);

	if (r < 0 && errno == EINVAL)
		r = renameat(olddir, old, newdir, name);
	return r;
}

static int
real_replaceat(int dir, const char *old, const char *name)
{
	return renameat(dir, old, dir, name);
}

const struct spool_sys spool_sys_real = {
	.openat = real_openat,
	.pread = pread,
	.open_cached = real_open_cached,
	.pread_cached = real_pread_cached,
	.write = write,
	.pwrite = pwrite,
	.ftruncate = ftruncate,
	.linkat = linkat,
	.renameat = real_renameat,
	.replaceat = real_replaceat,
	.unlinkat = unlinkat,
	.utimensat = utimensat,
	.flock = flock,
	.fsync = fsync,
	.syncfs = syncfs,
	.close = close,
	.statx = statx,
	.fstatvfs = fstatvfs,
};

int
spool_write_all(
    const struct spool_sys *sys, int fd, const void *data, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n =
		    sys->write(fd, (const char *)data + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

int
spool_write_at(const struct spool_sys *sys, int fd, const void *data,
    size_t len, off_t off)
{
	ssize_t n;

	do
		n = sys->pwrite(fd, data, len, off);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == (ssize_t)len ? 0 : -EIO;
}
