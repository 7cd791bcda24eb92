#include "ipc/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ipc/names.h"

/* A directory of this name cannot be unlinked, and may have content. */
static int
set_aside(const char *name)
{
	char from[sizeof(SHM_DIR) + IPC_NAME_MAX], to[64];

	snprintf(from, sizeof(from), SHM_DIR "%s", name);
	snprintf(to, sizeof(to), SHM_DIR "/not-qscheduler.%08x%08x",
	    arc4random(), arc4random());
	return rename(from, to) < 0 ? -errno : 0;
}

int
shm_remove(const char *name)
{
	if (shm_unlink(name) == 0 || errno == ENOENT)
		return 0;
	if (geteuid() == 0)
		return set_aside(name);
	return errno == EACCES ? -EPERM : -errno;
}

int
shm_allocate(int fd, size_t size)
{
	int r;

	do {
		r = posix_fallocate(fd, 0, (off_t)size);
	} while (r == EINTR);
	return -r;
}
