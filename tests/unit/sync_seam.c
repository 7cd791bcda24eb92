#include "tests/unit/sync_seam.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"

static char calls[64];
static bool notes;

void
sync_seam_begin(void)
{
	memset(calls, 0, sizeof(calls));
	notes = true;
}

const char *
sync_seam_end(void)
{
	notes = false;
	return calls;
}

static int
note(char letter, long r)
{
	const size_t n = notes && r == 0 ? strlen(calls) : sizeof(calls);

	if (n + 1 < sizeof(calls))
		calls[n] = letter;
	return (int)r;
}

int
fsync(int fd)
{
	struct stat st;
	const bool is_dir = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);

	return note(is_dir ? 'd' : 'f', syscall(SYS_fsync, fd));
}

int
renameat2(
    int olddir, const char *old, int newdir, const char *name, unsigned flags)
{
	return note(
	    'r', syscall(SYS_renameat2, olddir, old, newdir, name, flags));
}

int
renameat(int olddir, const char *old, int newdir, const char *name)
{
	return renameat2(olddir, old, newdir, name, 0);
}

int
unlinkat(int dir, const char *name, int flags)
{
	return note('u', syscall(SYS_unlinkat, dir, name, flags));
}
