#include "qctl/read/peer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/io.h"

#define SOCKET_NAME   "operate" /* in lock/ */
#define SELECTION_MAX 1000

/* The name is below a descriptor: a path may be longer than an address. */
int
peer_connect(struct peer *p, const struct spool *sp, usec_t limit)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd, r = 0;

	*p = (struct peer){ .fd = -1, .limit = limit, .serial = 1 };
	if (sp->dir[SPOOL_LOCK] < 0)
		return -EACCES;
	p->fd = fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	snprintf(to.sun_path, sizeof(to.sun_path),
	    "/proc/self/fd/%d/" SOCKET_NAME, sp->dir[SPOOL_LOCK]);
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		r = -errno;
	if (r < 0)
		io_close(&p->fd);
	return r;
}

void
peer_close(struct peer *p)
{
	io_close(&p->fd);
}

static int
wait_for(const struct peer *p, short events)
{
	struct pollfd pfd = { .fd = p->fd, .events = events };
	int n;

	do
		n = poll(&pfd, 1, (int)(p->limit / USEC_PER_MSEC));
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n == 0 ? -ETIMEDOUT : 0;
}

int
peer_put(struct peer *p, const struct msg *msg)
{
	int r;

	while ((r = chan_send(p->fd, msg, -1)) == -EAGAIN)
		if ((r = wait_for(p, POLLOUT)) < 0)
			return r;
	return r;
}

int
peer_act(struct peer *p, const struct msg *msg)
{
	int r = peer_put(p, msg), error;
	uint32_t running;

	if (r == -EPIPE && (error = peer_answer(p, &error, &running)) < 0)
		r = error;
	return r;
}

int
peer_ask(struct peer *p, const struct msg *msg)
{
	uint32_t running;
	int error, r = peer_act(p, msg);

	return r < 0 ? r : peer_answer(p, &error, &running);
}

int
peer_take(struct peer *p, struct chan_frame *frame)
{
	int r;

	while ((r = chan_recv(p->fd, frame)) == -EAGAIN)
		if ((r = wait_for(p, POLLIN)) < 0)
			return r;
	if (r == 1 && frame->left > 0) { /* a datagram of ACT has one */
		io_close(&frame->fd);
		r = -EBADMSG;
	}
	frame->left = 0; /* of this peer; the next may be another */
	return r == 0 ? -EPIPE : r < 0 ? r : 0;
}

int
peer_answer(struct peer *p, int *ret_error, uint32_t *ret_running)
{
	static struct chan_frame frame; /* large */
	int r = peer_take(p, &frame);

	if (r < 0)
		return r;
	io_close(&frame.fd);
	if (frame.msg.type != MSG_ACTED)
		return -EBADMSG;
	/* No ACT has serial 0: the connection is refused. */
	if (frame.msg.u.ACTED.serial == 0)
		return frame.msg.u.ACTED.error < 0 ? frame.msg.u.ACTED.error
						   : -EBADMSG;
	*ret_error = frame.msg.u.ACTED.error;
	*ret_running = frame.msg.u.ACTED.running;
	return 0;
}

int
peer_end(struct peer *p, enum spool_act act, const char *selection)
{
	const struct msg msg = { .type = MSG_ACT_END,
		.u.ACT_END = { .act = act,
		    .selection = {
			selection, strnlen(selection, SELECTION_MAX) } } };

	return peer_put(p, &msg);
}
