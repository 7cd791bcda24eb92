#include "dying_sys.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static struct {
	unsigned left; /* points until the end; a death has two each call */
	bool fails;    /* instead of dying */
} fate;

static char trace[64];

static void
note(char letter)
{
	const size_t n = strlen(trace);

	if (letter != '\0' && n + 1 < sizeof(trace))
		trace[n] = letter;
}

const char *
dying_trace(void)
{
	return trace;
}

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

#define DYING(letter, type, name, params, args) \
	static type dying_##name params         \
	{                                       \
		type r;                         \
                                                \
		note(letter);                   \
		if (!pass())                    \
			return -1;              \
		r = spool_sys_real.name args;   \
		if (!fate.fails)                \
			(void)pass();           \
		return r;                       \
	}

DYING('\0', int, openat, (int dir, const char *name, int flags, mode_t mode),
    (dir, name, flags, mode))
DYING('\0', ssize_t, write, (int fd, const void *data, size_t len),
    (fd, data, len))
DYING('p', ssize_t, pwrite, (int fd, const void *data, size_t len, off_t off),
    (fd, data, len, off))
DYING('l', int, linkat,
    (int olddir, const char *old, int newdir, const char *name, int flags),
    (olddir, old, newdir, name, flags))
DYING('r', int, renameat,
    (int olddir, const char *old, int newdir, const char *name),
    (olddir, old, newdir, name))
DYING('\0', int, unlinkat, (int dir, const char *name, int flags),
    (dir, name, flags))
DYING('\0', int, flock, (int fd, int op), (fd, op))
DYING('f', int, fsync, (int fd), (fd))
DYING('\0', int, close, (int fd), (fd))
DYING('\0', int, fstatvfs, (int fd, struct statvfs *out), (fd, out))

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
	memset(trace, 0, sizeof(trace));
	fate.left = nth;
	fate.fails = fails;
}

bool
dying_came(void)
{
	return fate.left == 0;
}
