/* System calls of the spool that fail, and a death in the midst of them. */
#include "tests/unit/queue-send/world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct spool_sys world_sys;

static struct {
	enum world_call call;
	int error, times;
} fault;

void
world_fail(enum world_call call, int error, int times)
{
	fault.call = call;
	fault.error = error;
	fault.times = times;
}

static struct {
	_Atomic unsigned count; /* threads count, too */
	unsigned at;            /* 0: never */
} cut;

void
world_cut(unsigned nth)
{
	cut.count = 0;
	cut.at = nth;
}

bool
world_was_cut(void)
{
	return cut.at > 0 && cut.count >= cut.at;
}

static char trace[2][256];
static size_t traced;

static void
note(char letter)
{
	if (traced + 1 < sizeof(trace[0]))
		trace[0][traced++] = letter;
}

const char *
world_trace(void)
{
	memcpy(trace[1], trace[0], sizeof(trace[1]));
	memset(trace[0], 0, sizeof(trace[0]));
	traced = 0;
	return trace[1];
}

static bool
fails(enum world_call call)
{
	cut.count++;
	if (world_was_cut()) {
		errno = EIO;
		return true;
	}
	if (call == CALL_NONE || fault.call != call)
		return false;
	if (fault.times > 0 && --fault.times == 0)
		fault.call = CALL_NONE;
	errno = fault.error;
	return true;
}

static unsigned opens;

unsigned
world_opens(void)
{
	const unsigned n = opens;

	opens = 0;
	return n;
}

static int
sys_openat(int dir, const char *name, int flags, mode_t mode)
{
	opens += (flags & O_NOCTTY) != 0; /* as spool_open_file() does */
	if ((flags & O_ACCMODE) != O_RDONLY &&
	    (flags & (O_CREAT | O_TMPFILE)) == 0 && fails(CALL_OPEN))
		return -1;
	return spool_sys_real.openat(dir, name, flags, mode);
}

static ssize_t
sys_pwrite(int fd, const void *data, size_t len, off_t off)
{
	note('p');
	return fails(CALL_PWRITE) ? -1
				  : spool_sys_real.pwrite(fd, data, len, off);
}

static ssize_t
sys_write(int fd, const void *data, size_t len)
{
	note('a');
	return fails(CALL_WRITE) ? -1 : spool_sys_real.write(fd, data, len);
}

static int
sys_renameat(int olddir, const char *old, int newdir, const char *name)
{
	note('r');
	return fails(CALL_RENAME)
	    ? -1
	    : spool_sys_real.renameat(olddir, old, newdir, name);
}

static int
sys_linkat(int olddir, const char *old, int newdir, const char *name, int flags)
{
	return fails(CALL_LINK)
	    ? -1
	    : spool_sys_real.linkat(olddir, old, newdir, name, flags);
}

static int
sys_unlinkat(int dir, const char *name, int flags)
{
	note('u');
	return fails(CALL_UNLINK) ? -1
				  : spool_sys_real.unlinkat(dir, name, flags);
}

static int
sys_fsync(int fd)
{
	note('f');
	return fails(CALL_FSYNC) ? -1 : spool_sys_real.fsync(fd);
}

static int
sys_syncfs(int fd)
{
	note('s');
	return fails(CALL_SYNCFS) ? -1 : spool_sys_real.syncfs(fd);
}

void
world_sys_init(void)
{
	world_sys = spool_sys_real;
	world_sys.openat = sys_openat;
	world_sys.pwrite = sys_pwrite;
	world_sys.write = sys_write;
	world_sys.renameat = sys_renameat;
	world_sys.linkat = sys_linkat;
	world_sys.unlinkat = sys_unlinkat;
	world_sys.fsync = sys_fsync;
	world_sys.syncfs = sys_syncfs;
}

struct rlimit
world_starve(void)
{
	struct rlimit limit, low;
	int fd = dup(0);

	cr_assert_geq(fd, 0);
	close(fd);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = (rlim_t)fd;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	return limit;
}
