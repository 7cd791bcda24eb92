#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int
io_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* An offset that stands for the position of the descriptor. */
#define HERE (-1)

static int64_t
read_whole(int fd, char *to, size_t len, int64_t off)
{
	size_t got = 0;
	ssize_t n;

	while (got < len) {
		n = off == HERE
		    ? read(fd, to + got, len - got)
		    : pread(fd, to + got, len - got, off + (int64_t)got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (int64_t)got;
}

int64_t
io_read_all(int fd, void *data, size_t len)
{
	return read_whole(fd, data, len, HERE);
}

int64_t
io_pread_all(int fd, void *data, size_t len, int64_t off)
{
	return off < 0 ? -EINVAL : read_whole(fd, data, len, off);
}

int
io_open_straight(const char *path, int flags)
{
	const struct open_how how = {
		.flags = (unsigned)flags,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	if (path[0] != '/')
		return -EINVAL;
	fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

void
io_default_signals(void)
{
	const struct sigaction sa = { .sa_handler = SIG_DFL };
	int sig;

	for (sig = 1; sig <= SIGRTMAX; sig++)
		(void)sigaction(sig, &sa, NULL);
}

/* The set of signals in one line of /proc/self/status; false: there is none. */
static bool
read_set(const char *status, const char *name, uint64_t *ret_set)
{
	const char *line = strstr(status, name);
	char *end;

	if (line == NULL)
		return false;
	line += strlen(name);
	*ret_set = strtoull(line, &end, 16);
	return end != line && *end == '\n';
}

/* Signals that are ignored or caught. */
static bool
find_set_signals(uint64_t *ret_set)
{
	char status[4096];
	uint64_t ignored = 0, caught = 0;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	int64_t n = fd < 0 ? -1 : io_read_all(fd, status, sizeof(status) - 1);

	io_close(&fd);
	if (n < 0)
		return false;
	status[n] = '\0';
	if (!read_set(status, "\nSigIgn:\t", &ignored) ||
	    !read_set(status, "\nSigCgt:\t", &caught))
		return false;
	*ret_set = ignored | caught;
	return true;
}

void
io_default_set_signals(void)
{
	const struct sigaction sa = { .sa_handler = SIG_DFL };
	uint64_t set = 0;
	int sig;

	if (!find_set_signals(&set)) {
		io_default_signals();
		return;
	}
	for (sig = 1; sig <= SIGRTMAX; sig++)
		if ((set >> (sig - 1) & 1) != 0)
			(void)sigaction(sig, &sa, NULL);
}

void
io_ignore_write_signals(void)
{
	const struct sigaction sa = { .sa_handler = SIG_IGN };

	(void)sigaction(SIGPIPE, &sa, NULL);
	(void)sigaction(SIGXFSZ, &sa, NULL);
}

int
io_std_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
		if (fd < 0)
			return -errno;
	} while (fd <= 2);
	close(fd);
	return 0;
}

int
io_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

void
io_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}
