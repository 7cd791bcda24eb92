#include "ipc/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "ipc/names.h"

/* Of the pages of all queues together, with room to spare. */
#define ROOM_BYTES  ((uint64_t)1 << 20)
#define ROOM_INODES 16

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

static uint64_t
free_bytes(const struct statvfs *v)
{
	return (uint64_t)v->f_bavail * v->f_frsize;
}

/* A file system without a limit of inodes has f_files 0. */
static void
describe_room(const struct statvfs *v, char text[SHM_TEXT_SIZE])
{
	int n = snprintf(text, SHM_TEXT_SIZE,
	    "not enough room in " SHM_DIR ": %" PRIu64 " of %" PRIu64 " KB",
	    free_bytes(v) / 1024, (uint64_t)v->f_blocks * v->f_frsize / 1024);

	if (v->f_files > 0)
		n += snprintf(text + n, SHM_TEXT_SIZE - (size_t)n,
		    " and %" PRIu64 " of %" PRIu64 " inodes",
		    (uint64_t)v->f_favail, (uint64_t)v->f_files);
	snprintf(text + n, SHM_TEXT_SIZE - (size_t)n, " are free");
}

const char *
shm_describe(int error, char text[SHM_TEXT_SIZE])
{
	struct statvfs v;

	if (error != -ENOSPC || statvfs(SHM_DIR, &v) < 0)
		return strerror(-error);
	describe_room(&v, text);
	return text;
}

int
shm_judge_room(char text[SHM_TEXT_SIZE])
{
	struct statvfs v;

	if (statvfs(SHM_DIR, &v) < 0 ||
	    (free_bytes(&v) >= ROOM_BYTES &&
		(v.f_files == 0 || v.f_favail >= ROOM_INODES)))
		return 0;
	describe_room(&v, text);
	return -ENOSPC;
}
