#include "log/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

/* Up to PIPE_BUF bytes a pipe takes all or nothing, and lines of several
 * processes never mix. A stream socket does so with what fits into one buffer
 * of the kernel. A file takes any number. A datagram has one line. */
static size_t
most_at_once(int fd, mode_t mode)
{
	int type = 0;
	socklen_t len = sizeof(type);

	if (S_ISREG(mode))
		return LOG_BATCH_BYTES;
	if (S_ISSOCK(mode) &&
	    (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
		type != SOCK_STREAM))
		return 0;
	return S_ISSOCK(mode) || S_ISFIFO(mode) ? PIPE_BUF : 0;
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
	sink->most = most_at_once(fd, st.st_mode);
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
 * PIPE_BUF bytes fit, which is as much as is written at once. */
static bool
can_write(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	return poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLOUT) != 0;
}

/* The end in data of what was written whole or in part: `from` for nothing. */
static size_t
write_bytes(const struct log_sink *sink, const struct log_batch *b, size_t from,
    size_t to)
{
	const char *data = b->data.data + from;
	ssize_t n;

	if (sink->waits && !can_write(sink->fd))
		return from;
	do
		n = sink->socket ? send(sink->fd, data, to - from,
				       MSG_DONTWAIT | MSG_NOSIGNAL)
				 : write(sink->fd, data, to - from);
	while (n < 0 && errno == EINTR);
	return n < 0 ? from : from + (size_t)n;
}

/* The first line behind i that is not to go into one write with it. */
static size_t
end_of_write(const struct log_sink *sink, const struct log_batch *b, size_t i)
{
	const size_t from = log_batch_start(b, i);

	for (i++; i < b->count && b->ends[i] - from <= sink->most; i++)
		;
	return i;
}

size_t
log_sink_write(const struct log_sink *sink, const struct log_batch *b, size_t i)
{
	size_t from, to, end;

	while (i < b->count) {
		from = log_batch_start(b, i);
		end = end_of_write(sink, b, i);
		to = write_bytes(sink, b, from, b->ends[end - 1]);
		/* The first of them may fit where all do not. */
		if (to == from && end > i + 1)
			to = write_bytes(sink, b, from, b->ends[i]);
		if (to < b->ends[i])
			break;
		while (i < end && b->ends[i] <= to)
			i++;
		if (to > log_batch_start(b, i))
			break; /* line i is torn */
	}
	return i;
}

bool
log_sink_is_journal(int fd, const char *stream)
{
	char own[48];
	struct stat st;

	if (stream == NULL || fstat(fd, &st) < 0)
		return false;
	snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st.st_dev,
	    (uintmax_t)st.st_ino);
	return strcmp(own, stream) == 0;
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

int
log_sink_syslog_head(struct buf *out, int priority, const char *program)
{
	const time_t now = time(NULL);
	char when[32];
	struct tm tm = { 0 };

	localtime_r(&now, &tm);
	(void)strftime(when, sizeof(when), "%b %e %H:%M:%S", &tm);
	return buf_printf(out, "<%d>%s %s[%d]: ", LOG_MAIL | priority, when,
	    program, (int)getpid());
}

/* The number of lines from i on that were sent, or -errno. */
static int
send_lines(int fd, struct log_batch *b, size_t i)
{
	struct mmsghdr to_send[LOG_BATCH_LINES] = { 0 };
	struct iovec iov[LOG_BATCH_LINES];
	unsigned n = 0;
	int sent;

	for (; i < b->count; i++, n++) {
		const size_t from = log_batch_start(b, i);

		iov[n] = (struct iovec){ .iov_base = b->data.data + from,
			.iov_len = b->ends[i] - from };
		to_send[n].msg_hdr =
		    (struct msghdr){ .msg_iov = &iov[n], .msg_iovlen = 1 };
	}
	sent = sendmmsg(fd, to_send, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	return sent < 0 ? -errno : sent;
}

size_t
log_sink_syslog_send(int *fd, const char *path, struct log_batch *b, size_t i)
{
	bool fresh = false; /* connected for line i */
	int n;

	while (i < b->count) {
		if (*fd < 0) {
			*fd = log_sink_syslog(path);
			fresh = true;
		}
		if (*fd < 0)
			break;
		n = send_lines(*fd, b, i);
		if (n > 0) {
			i += (size_t)n;
			fresh = false;
			continue;
		}
		if (n == -EAGAIN || n == -ENOBUFS)
			break;
		/* A restarted syslog daemon has a new socket. */
		io_close(fd);
		if (fresh)
			break;
	}
	return i;
}
