#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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

void
io_default_signals(void)
{
	const struct sigaction sa = { .sa_handler = SIG_DFL };
	int sig;

	for (sig = 1; sig <= SIGRTMAX; sig++)
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
