#include "qscheduler/children/children.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/io.h"

#define FILE_NAME "children"

/* Above the numbers of channel and lock in a child: making the channel does not
 * replace it. */
int
child_locks_open(int base, int *ret_fd)
{
	int high,
	    fd = openat(base, FILE_NAME,
		O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	high = fcntl(fd, F_DUPFD_CLOEXEC, DAEMON_LOCK_FD + 1);
	if (high < 0) {
		int r = -errno;

		io_close(&fd);
		return r;
	}
	io_close(&fd);
	*ret_fd = high;
	return 0;
}

off_t
child_lock_at(uint32_t queue, uint32_t place)
{
	return (off_t)queue * GROUP_MAX + place;
}

static struct flock
lock_of(short type, off_t at, off_t len)
{
	return (struct flock){
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = at,
		.l_len = len,
	};
}

int
child_lock_take(int fd, off_t at)
{
	struct flock own = lock_of(F_RDLCK, at, 1);

	return fcntl(fd, F_SETLK, &own) < 0 ? -errno : 0;
}

/* A process of another PID namespace has the number 0 here. */
static int
find_holder(int fd, off_t at, off_t len, pid_t *ret_pid)
{
	struct flock found = lock_of(F_WRLCK, at, len);

	if (fcntl(fd, F_GETLK, &found) < 0)
		return -errno;
	*ret_pid = found.l_type == F_UNLCK ? 0 : found.l_pid;
	return found.l_type != F_UNLCK;
}

int
child_lock_holder(int fd, off_t at, pid_t *ret_pid)
{
	return find_holder(fd, at, 1, ret_pid);
}

int
child_locks_any(int fd, uint32_t queue)
{
	pid_t pid;

	return find_holder(fd, child_lock_at(queue, 0), GROUP_MAX, &pid);
}
