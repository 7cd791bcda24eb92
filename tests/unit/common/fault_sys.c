#include "fault_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

const char *const fault_names[FAULT_NCALLS] = {
	[FAULT_OPENAT] = "openat",
	[FAULT_WRITE] = "write",
	[FAULT_PWRITE] = "pwrite",
	[FAULT_FTRUNCATE] = "ftruncate",
	[FAULT_LINKAT] = "linkat",
	[FAULT_RENAMEAT] = "renameat",
	[FAULT_REPLACEAT] = "replaceat",
	[FAULT_UNLINKAT] = "unlinkat",
	[FAULT_UTIMENSAT] = "utimensat",
	[FAULT_FLOCK] = "flock",
	[FAULT_FSYNC] = "fsync",
	[FAULT_SYNCFS] = "syncfs",
	[FAULT_CLOSE] = "close",
	[FAULT_FSTATVFS] = "fstatvfs",
};

static struct {
	struct plan {
		unsigned count, nth;
		bool on;
		int error;
	} plans[FAULT_NCALLS];
	unsigned total, cut;
	size_t short_write;
	bool interrupted;
	int no_tmpfile;
	bool has_statvfs;
	struct statvfs statvfs;
	void (*seen)(enum fault_call call, void *arg);
	void *arg;
} state;

void
fault_reset(void)
{
	memset(&state, 0, sizeof(state));
}

static void
plan(enum fault_call call, unsigned nth, bool on, int error)
{
	struct plan *p = &state.plans[call];

	*p = (struct plan){ .nth = nth, .on = on, .error = error };
}

void
fail_nth(enum fault_call call, unsigned nth, int error)
{
	plan(call, nth, false, error);
}

void
fail_from(enum fault_call call, unsigned nth, int error)
{
	plan(call, nth, true, error);
}

void
fault_cut(unsigned nth)
{
	state.total = 0;
	state.cut = nth;
}

bool
fault_was_cut(void)
{
	return state.total >= state.cut;
}

void
fault_short_writes(size_t at_most)
{
	state.short_write = at_most;
}

void
fault_no_tmpfile(int error)
{
	state.no_tmpfile = error;
}

void
fault_statvfs(const struct statvfs *v)
{
	state.has_statvfs = v != NULL;
	if (v != NULL)
		state.statvfs = *v;
}

void
fault_watch(void (*seen)(enum fault_call call, void *arg), void *arg)
{
	state.seen = seen;
	state.arg = arg;
}

unsigned
fault_count(enum fault_call call)
{
	return state.plans[call].count;
}

static bool
fails(enum fault_call call)
{
	struct plan *p = &state.plans[call];

	p->count++;
	state.total++;
	if (state.cut > 0 && state.total >= state.cut) {
		errno = EIO;
		return true;
	}
	if (p->nth == 0 || p->count < p->nth || (p->count > p->nth && !p->on))
		return false;
	errno = p->error;
	return true;
}

static void
saw(enum fault_call call, bool ok)
{
	int error = errno;

	if (ok && state.seen != NULL)
		state.seen(call, state.arg);
	errno = error;
}

/* Trim a length as the test wants; false: interrupted this time. */
static bool
trim(size_t *len)
{
	if (state.short_write == 0)
		return true;
	state.interrupted = !state.interrupted;
	if (state.interrupted) {
		errno = EINTR;
		return false;
	}
	if (*len > state.short_write)
		*len = state.short_write;
	return true;
}

/* The real call unless this one is to fail. */
#define PASS(call, type, expr)            \
	do {                              \
		type r_;                  \
		if (fails(call))          \
			return -1;        \
		r_ = spool_sys_real.expr; \
		saw(call, r_ >= 0);       \
		return r_;                \
	} while (0)

static int
fault_openat(int dir, const char *name, int flags, mode_t mode)
{
	if (state.no_tmpfile != 0 && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = state.no_tmpfile;
		return -1;
	}
	PASS(FAULT_OPENAT, int, openat(dir, name, flags, mode));
}

static ssize_t
fault_write(int fd, const void *data, size_t len)
{
	if (!trim(&len))
		return -1;
	PASS(FAULT_WRITE, ssize_t, write(fd, data, len));
}

static ssize_t
fault_pwrite(int fd, const void *data, size_t len, off_t off)
{
	if (!trim(&len))
		return -1;
	PASS(FAULT_PWRITE, ssize_t, pwrite(fd, data, len, off));
}

static int
fault_ftruncate(int fd, off_t len)
{
	PASS(FAULT_FTRUNCATE, int, ftruncate(fd, len));
}

static int
fault_linkat(
    int olddir, const char *old, int newdir, const char *name, int flags)
{
	PASS(FAULT_LINKAT, int, linkat(olddir, old, newdir, name, flags));
}

static int
fault_renameat(int olddir, const char *old, int newdir, const char *name)
{
	PASS(FAULT_RENAMEAT, int, renameat(olddir, old, newdir, name));
}

static int
fault_replaceat(int dir, const char *old, const char *name)
{
	PASS(FAULT_REPLACEAT, int, replaceat(dir, old, name));
}

static int
fault_unlinkat(int dir, const char *name, int flags)
{
	PASS(FAULT_UNLINKAT, int, unlinkat(dir, name, flags));
}

static int
fault_utimensat(
    int dir, const char *name, const struct timespec times[2], int flags)
{
	PASS(FAULT_UTIMENSAT, int, utimensat(dir, name, times, flags));
}

static int
fault_flock(int fd, int op)
{
	PASS(FAULT_FLOCK, int, flock(fd, op));
}

static int
fault_fsync(int fd)
{
	PASS(FAULT_FSYNC, int, fsync(fd));
}

static int
fault_syncfs(int fd)
{
	PASS(FAULT_SYNCFS, int, syncfs(fd));
}

/* The descriptor goes in any case, as Linux does it. */
static int
fault_close(int fd)
{
	int r = spool_sys_real.close(fd);

	if (fails(FAULT_CLOSE))
		return -1;
	saw(FAULT_CLOSE, r == 0);
	return r;
}

static int
fault_fstatvfs(int fd, struct statvfs *out)
{
	if (state.has_statvfs) {
		*out = state.statvfs;
		return 0;
	}
	PASS(FAULT_FSTATVFS, int, fstatvfs(fd, out));
}

const struct spool_sys fault_sys = {
	.openat = fault_openat,
	.write = fault_write,
	.pwrite = fault_pwrite,
	.ftruncate = fault_ftruncate,
	.linkat = fault_linkat,
	.renameat = fault_renameat,
	.replaceat = fault_replaceat,
	.unlinkat = fault_unlinkat,
	.utimensat = fault_utimensat,
	.flock = fault_flock,
	.fsync = fault_fsync,
	.syncfs = fault_syncfs,
	.close = fault_close,
	.fstatvfs = fault_fstatvfs,
};
