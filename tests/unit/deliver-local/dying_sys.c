#include "dying_sys.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

static struct {
	unsigned left; /* points until the end; a death has two each call */
	bool fails;    /* instead of dying */
} fate;

/* false: this call fails. */
static bool
pass(void)
{
	if (fate.left == 0 || --fate.left > 0)
		return true;
	if (!fate.fails)
		(void)kill(getpid(), SIGKILL);
	errno = EIO;
	return false;
}

#define DYING(type, name, params, args)       \
	static type dying_##name params       \
	{                                     \
		type r;                       \
                                              \
		if (!pass())                  \
			return -1;            \
		r = spool_sys_real.name args; \
		if (!fate.fails)              \
			(void)pass();         \
		return r;                     \
	}

DYING(int, openat, (int dir, const char *name, int flags, mode_t mode),
    (dir, name, flags, mode))
DYING(ssize_t, write, (int fd, const void *data, size_t len), (fd, data, len))
DYING(ssize_t, pwrite, (int fd, const void *data, size_t len, off_t off),
    (fd, data, len, off))
DYING(int, linkat,
    (int olddir, const char *old, int newdir, const char *name, int flags),
    (olddir, old, newdir, name, flags))
DYING(int, renameat,
    (int olddir, const char *old, int newdir, const char *name),
    (olddir, old, newdir, name))
DYING(int, unlinkat, (int dir, const char *name, int flags), (dir, name, flags))
DYING(int, flock, (int fd, int op), (fd, op))
DYING(int, fsync, (int fd), (fd))
DYING(int, close, (int fd), (fd))
DYING(int, fstatvfs, (int fd, struct statvfs *out), (fd, out))

void
dying_sys(struct spool_sys *ret, unsigned nth, bool fails)
{
	*ret = (struct spool_sys){ .openat = dying_openat,
		.write = dying_write,
		.pwrite = dying_pwrite,
		.ftruncate = ftruncate,
		.linkat = dying_linkat,
		.renameat = dying_renameat,
		.replaceat = spool_sys_real.replaceat,
		.unlinkat = dying_unlinkat,
		.utimensat = utimensat,
		.flock = dying_flock,
		.fsync = dying_fsync,
		.syncfs = syncfs,
		.close = dying_close,
		.fstatvfs = dying_fstatvfs };
	fate.left = nth;
	fate.fails = fails;
}

bool
dying_came(void)
{
	return fate.left == 0;
}
