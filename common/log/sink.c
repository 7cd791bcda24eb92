#include "log/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"

/* Opening a pipe by its descriptor makes a new open file description, whose
 * O_NONBLOCK no other process shares. */
static int
open_again(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

void
log_sink_open(struct log_sink *sink, int fd)
{
	struct stat st;
	int again;

	*sink = (struct log_sink){ .fd = fd, .waits = true };
	if (fstat(fd, &st) < 0)
		return;
	sink->socket = S_ISSOCK(st.st_mode);
	sink->waits = !S_ISREG(st.st_mode) && !sink->socket;
	if (!S_ISFIFO(st.st_mode))
		return;
	again = open_again(fd);
	if (again < 0)
		return;
	sink->fd = again;
	sink->own = true;
	sink->waits = false;
}

/* A terminal, or a pipe that may not be opened again: poll() says whether
 * PIPE_BUF bytes fit, which is more than a line has. */
static bool
can_write(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	return poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLOUT) != 0;
}

bool
log_sink_write(const struct log_sink *sink, const char *line, size_t len)
{
	ssize_t n;

	if (sink->waits && !can_write(sink->fd))
		return false;
	do
		n = sink->socket
		    ? send(sink->fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL)
		    : write(sink->fd, line, len);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len;
}

int
log_sink_syslog(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	int fd;

	if (len >= sizeof(to.sun_path))
		return -1;
	memcpy(to.sun_path, path, len + 1);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		io_close(&fd);
	return fd;
}

static size_t
syslog_head(int priority, const char *program, char *out, size_t size)
{
	static const char months[12][4] = { "Jan", "Feb", "Mar", "Apr", "May",
		"Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	time_t now = time(NULL);
	struct tm tm = { 0 };
	int n;

	localtime_r(&now, &tm);
	n = snprintf(out, size,
	    "<%d>%s %2d %02d:%02d:%02d %s[%d]: ", LOG_MAIL | priority,
	    months[tm.tm_mon], tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
	    program, (int)getpid());
	return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

bool
log_sink_syslog_send(int *fd, const char *path, int priority,
    const char *program, const char *line, size_t len)
{
	char head[160];
	struct iovec iov[2] = {
		{ .iov_base = head,
		    .iov_len =
			syslog_head(priority, program, head, sizeof(head)) },
		{ .iov_base = (void *)(uintptr_t)line, .iov_len = len },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	int tries;

	/* A restarted syslog daemon has a new socket. */
	for (tries = 0; tries < 2; tries++) {
		if (*fd < 0)
			*fd = log_sink_syslog(path);
		if (*fd < 0)
			return false;
		if (sendmsg(*fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			return true;
		if (errno == EAGAIN || errno == ENOBUFS)
			return false;
		io_close(fd);
	}
	return false;
}
