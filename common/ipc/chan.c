#include "ipc/msg.h"

#include "base/bytes.h"
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

/* The descriptor that goes along with a frame. */
struct attached {
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
};

static void
attach_fd(struct msghdr *hdr, struct attached *room, int fd)
{
	struct cmsghdr *c;

	if (fd < 0)
		return;
	*room = (struct attached){ 0 };
	hdr->msg_control = room->control;
	hdr->msg_controllen = sizeof(room->control);
	c = CMSG_FIRSTHDR(hdr);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
}

int
chan_send_frames(int sock, const void *frames, size_t len, int fd)
{
	struct attached attached;
	struct iovec iov = { .iov_len = len };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	/* sendmsg() only reads them. */
	memcpy(&iov.iov_base, &frames, sizeof(frames));
	attach_fd(&hdr, &attached, fd);
	do {
		n = sendmsg(sock, &hdr, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	/* The error of a peer that ended with frames unread comes once. */
	return errno == ECONNRESET ? -EPIPE : -errno;
}

int
chan_send_many(int sock, const struct chan_out out[], unsigned count)
{
	struct mmsghdr headers[CHAN_MANY] = { 0 };
	struct attached attached[CHAN_MANY];
	struct iovec iov[CHAN_MANY];
	unsigned i;
	int n;

	count = count < CHAN_MANY ? count : CHAN_MANY;
	for (i = 0; i < count; i++) {
		const struct buf *frames = out[i].frames;

		iov[i] = (struct iovec){ frames->data, frames->len };
		headers[i].msg_hdr.msg_iov = &iov[i];
		headers[i].msg_hdr.msg_iovlen = 1;
		attach_fd(&headers[i].msg_hdr, &attached[i], out[i].fd);
	}
	do
		n = sendmmsg(sock, headers, count, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	return errno == ECONNRESET ? -EPIPE : -errno;
}

int
chan_send(int sock, const struct msg *msg, int fd)
{
	struct buf frame = { 0 };
	int r = msg_encode(msg, &frame);

	if (r == 0)
		r = chan_send_frames(sock, frame.data, frame.len, fd);
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

int
chan_next(struct chan_frame *frame)
{
	const char *data = frame->data + frame->at;
	size_t len = frame->left;

	if (len == 0)
		return 0;
	if (len >= sizeof(uint32_t) && bytes_get_u32(data) < len)
		len = bytes_get_u32(data);
	if (msg_decode(data, len, &frame->msg) < 0) {
		frame->left = 0;
		return -EBADMSG;
	}
	frame->at += len;
	frame->left -= len;
	return 1;
}

/* One received datagram: what chan_recv() returns of it. */
static int
judge(struct msghdr *hdr, size_t len, struct chan_frame *frame)
{
	const size_t nfds = take_fds(hdr, &frame->fd);

	if (len == 0) { /* a frame without a byte can carry some */
		io_close(&frame->fd);
		return 0;
	}
	frame->left = nfds > 1 || (hdr->msg_flags & MSG_TRUNC) != 0 ? 0 : len;
	if (chan_next(frame) == 1)
		return 1;
	io_close(&frame->fd);
	return -EBADMSG;
}

/* Where a frame is received. */
struct receiver {
	_Alignas(
	    struct cmsghdr) char control[CMSG_SPACE(CHAN_FDS * sizeof(int))];
	struct iovec iov;
};

static struct msghdr
make_header(struct receiver *r, struct chan_frame *frame)
{
	frame->fd = -1;
	frame->at = frame->left = 0;
	r->iov = (struct iovec){ frame->data, sizeof(frame->data) };
	return (struct msghdr){
		.msg_iov = &r->iov,
		.msg_iovlen = 1,
		.msg_control = r->control,
		.msg_controllen = sizeof(r->control),
	};
}

/* A peer that ended with frames unread causes a reset, which is reported before
 * the frames that it had sent: read on until end of file. */
int
chan_recv_many(
    int sock, struct chan_frame frames[], int ret_results[], unsigned max)
{
	struct receiver receivers[CHAN_MANY];
	struct mmsghdr headers[CHAN_MANY];
	unsigned i;
	int n;

	max = max < CHAN_MANY ? max : CHAN_MANY;
	do {
		for (i = 0; i < max; i++)
			headers[i] =
			    (struct mmsghdr){ .msg_hdr = make_header(
						  &receivers[i], &frames[i]) };
		n = recvmmsg(
		    sock, headers, max, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL);
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return -errno;
	for (i = 0; i < (unsigned)n; i++)
		ret_results[i] =
		    judge(&headers[i].msg_hdr, headers[i].msg_len, &frames[i]);
	if (n == 0 || ret_results[0] != 0)
		return n;
	while (n > 0) /* frames behind the end are nobody's */
		io_close(&frames[--n].fd);
	return 0;
}

int
chan_recv(int sock, struct chan_frame *frame)
{
	int result = chan_next(frame), n;

	if (result != 0) {
		frame->fd = -1;
		return result;
	}
	n = chan_recv_many(sock, frame, &result, 1);
	return n == 1 ? result : n;
}
