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

/* Signals that are ignored, and that are caught. One read gets all of a file
 * that the kernel makes as it is read. */
static bool
find_set_signals(uint64_t *ret_ignored, uint64_t *ret_caught)
{
	char status[4096];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);

	io_close(&fd);
	if (n < 0)
		return false;
	status[n] = '\0';
	return read_set(status, "\nSigIgn:\t", ret_ignored) &&
	    read_set(status, "\nSigCgt:\t", ret_caught);
}

static uint64_t
bit_of(int sig)
{
	return (uint64_t)1 << (sig - 1);
}

void
io_default_but_write_signals(void)
{
	const uint64_t of_write = bit_of(SIGPIPE) | bit_of(SIGXFSZ);
	const struct sigaction sa = { .sa_handler = SIG_DFL };
	uint64_t ignored = 0, caught = 0;
	int sig;

	if (!find_set_signals(&ignored, &caught)) {
		io_default_signals();
		ignored = caught = 0;
	}
	for (sig = 1; sig <= SIGRTMAX; sig++)
		if (((ignored | caught) & ~of_write & bit_of(sig)) != 0)
			(void)sigaction(sig, &sa, NULL);
	if ((ignored & of_write) != of_write)
		io_ignore_write_signals();
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
