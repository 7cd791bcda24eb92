/* Orders of calls, as the seam of the spool sees them. The right one is what
 * accept_commit() does; the wrong ones are what others have done, and what
 * this test must be able to catch. */
#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

/* One message at a time in a process: the file is the last that was written.
 */
static int writing = -1;

static int
plain_openat(int dir, const char *name, int flags, mode_t mode)
{
	return openat(dir, name, flags, mode);
}

static int
no_tmpfile(int dir, const char *name, int flags, mode_t mode)
{
	if ((flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return openat(dir, name, flags, mode);
}

static ssize_t
note_write(int fd, const void *data, size_t len)
{
	writing = fd;
	return write(fd, data, len);
}

static int
fsync_linkat(
    int olddir, const char *old, int newdir, const char *name, int flags)
{
	if (fsync(writing) < 0)
		return -1;
	return linkat(olddir, old, newdir, name, flags);
}

static int
fsync_renameat(int olddir, const char *old, int newdir, const char *name)
{
	if (fsync(writing) < 0)
		return -1;
	return renameat(olddir, old, newdir, name);
}

static int
no_fsync(int fd UNUSED)
{
	return 0;
}

#define SYS(open_call, link_call, rename_call, fsync_call)                   \
	{                                                                    \
		.openat = open_call, .write = note_write, .pwrite = pwrite,  \
		.ftruncate = ftruncate, .linkat = link_call,                 \
		.renameat = rename_call, .unlinkat = unlinkat,               \
		.utimensat = utimensat, .flock = flock, .fsync = fsync_call, \
		.close = close, .fstatvfs = fstatvfs,                        \
	}

const struct spool_sys cut_sys_named = SYS(no_tmpfile, linkat, renameat, fsync);
const struct spool_sys cut_sys_fsync_link =
    SYS(plain_openat, fsync_linkat, renameat, no_fsync);
const struct spool_sys cut_sys_fsync_rename =
    SYS(no_tmpfile, linkat, fsync_renameat, no_fsync);
