#include "block.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/io.h"

/* The server must outlive no file system on its disk: at the end of a process
 * the mounts of its namespace go before its descriptors, and would wait for an
 * answer that nobody gives. */
static void
leave_mounts(const char *where)
{
	if (unshare(CLONE_NEWNS) == 0 &&
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
		(void)umount2(where, MNT_DETACH);
}

int
block_open(
    struct block *b, const char *image, const char *where, const char *control)
{
	char options[128];
	int fuse, fd = -1, r;

	*b = (struct block){ 0 };
	snprintf(b->dir, sizeof(b->dir), "%s", where);
	if (control != NULL) {
		fd =
		    open(control, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (fd < 0 || ftruncate(fd, 4096) < 0)
			return -errno;
	}
	b->control = mmap(NULL, sizeof(*b->control), PROT_READ | PROT_WRITE,
	    MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
	io_close(&fd);
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (b->control == MAP_FAILED || fuse < 0)
		return -errno;
	if (mkdir(where, 0700) < 0 && errno != EEXIST)
		return -errno;
	snprintf(options, sizeof(options),
	    "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (mount("block", where, "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
		r = -errno;
		close(fuse);
		return r;
	}
	b->server = fork();
	if (b->server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		leave_mounts(where);
		_exit(block_serve(b->control, image, fuse) < 0);
	}
	r = b->server < 0 ? -errno : 0;
	close(fuse);
	return r;
}

void
block_arm(struct block *b, uint64_t writes, uint64_t seed)
{
	atomic_store(&b->control->seed, seed);
	atomic_store(
	    &b->control->cut_at, atomic_load(&b->control->writes) + writes);
}

static bool
gone_within(const struct block *b, int msec)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	for (; msec > 0 && atomic_load(&b->control->is_cut) == 0; msec--)
		nanosleep(&moment, NULL);
	return atomic_load(&b->control->is_cut) != 0;
}

int
block_wait(struct block *b)
{
	char path[sizeof(b->dir) + 8];
	int fd;

	if (gone_within(b, 3000))
		return 0;
	block_arm(b, 0, atomic_load(&b->control->seed));
	snprintf(path, sizeof(path), "%s/disk", b->dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)fsync(fd);
	io_close(&fd);
	return gone_within(b, 3000) ? 0 : -ETIMEDOUT;
}

void
block_close(struct block *b)
{
	if (b->server <= 0)
		return;
	if (umount2(b->dir, 0) < 0)
		umount2(b->dir, MNT_DETACH);
	waitpid(b->server, NULL, 0);
	b->server = 0;
	munmap(b->control, sizeof(*b->control));
}
