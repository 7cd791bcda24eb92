#include "ipc/msg.h"

#include "base/io.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* The size that Linux grants to all by default (wmem_max, doubled for the
 * kernel's own book-keeping): several of the largest frames. */
#define CHAN_BUFFER 212992

/* Room for more descriptors than a frame may have, so that a frame with too
 * many is recognized. */
#define CHAN_FDS    4

int
chan_pair(int ret_fds[2])
{
	const int size = CHAN_BUFFER;
	int fds[2], i;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		0, fds) < 0)
		return -errno;
	for (i = 0; i < 2; i++) {
		/* On refusal the default stays, which is enough for a frame. */
		(void)setsockopt(
		    fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
		(void)setsockopt(
		    fds[i], SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	}
	ret_fds[0] = fds[0];
	ret_fds[1] = fds[1];
	return 0;
}

static void
attach_fd(struct msghdr *hdr, int fd)
{
	struct cmsghdr *c;

	c = CMSG_FIRSTHDR(hdr);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
}

int
chan_send_frame(int sock, const void *frame, size_t len, int fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct iovec iov = { .iov_len = len };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	memcpy(
	    &iov.iov_base, &frame, sizeof(frame)); /* sendmsg() only reads it */
	if (fd >= 0) {
		hdr.msg_control = control;
		hdr.msg_controllen = sizeof(control);
		attach_fd(&hdr, fd);
	}
	do {
		n = sendmsg(sock, &hdr, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	/* The error of a peer that ended with frames unread comes once. */
	return errno == ECONNRESET ? -EPIPE : -errno;
}

int
chan_send(int sock, const struct msg *msg, int fd)
{
	struct buf frame = { 0 };
	int r = msg_encode(msg, &frame);

	if (r == 0)
		r = chan_send_frame(sock, frame.data, frame.len, fd);
	buf_done(&frame);
	return r;
}

/* Take the descriptors out: the first to *ret_fd, the rest is closed. Returns
 * the number of all. */
static size_t
take_fds(struct msghdr *hdr, int *ret_fd)
{
	struct cmsghdr *c;
	size_t total = 0, i, n;
	int fd;

	for (c = CMSG_FIRSTHDR(hdr); c != NULL; c = CMSG_NXTHDR(hdr, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
		for (i = 0; i < n; i++, total++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (total == 0)
				*ret_fd = fd;
			else
				close(fd);
		}
	}
	return total;
}

/* A peer that ended with frames unread causes a reset, which is reported before
 * the frames that it had sent: read on until end of file. */
static ssize_t
receive(int sock, struct msghdr *hdr)
{
	const size_t room = hdr->msg_controllen;
	ssize_t n;

	do {
		hdr->msg_controllen = room;
		n = recvmsg(sock, hdr, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	return n < 0 ? -errno : n;
}

int
chan_recv(int sock, struct chan_frame *frame)
{
	_Alignas(
	    struct cmsghdr) char control[CMSG_SPACE(CHAN_FDS * sizeof(int))];
	struct iovec iov = { frame->data, sizeof(frame->data) };
	struct msghdr hdr = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = receive(sock, &hdr);
	size_t nfds;

	frame->fd = -1;
	if (n <= 0)
		return (int)n;
	nfds = take_fds(&hdr, &frame->fd);
	if (nfds > 1 || (hdr.msg_flags & MSG_TRUNC) != 0 ||
	    msg_decode(frame->data, (size_t)n, &frame->msg) < 0) {
		io_close(&frame->fd);
		return -EBADMSG;
	}
	return 1;
}
