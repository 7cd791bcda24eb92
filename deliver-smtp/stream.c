#include "deliver-smtp/net.h"

#include <errno.h>
#include <event2/event.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "base/io.h"

struct stream {
	int sock;
	struct event *in, *out;
	const struct stream_ops *ops;
	void *arg;
	struct buf waiting;
	size_t sent; /* of waiting */
};

/* ---- out ---- */

struct buf *
stream_out(struct stream *s)
{
	return &s->waiting;
}

bool
stream_is_drained(const struct stream *s)
{
	return s->sent == s->waiting.len;
}

static int
send_some(struct stream *s)
{
	ssize_t n = send(s->sock, s->waiting.data + s->sent,
	    s->waiting.len - s->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	s->sent += (size_t)n;
	return 0;
}

int
stream_flush(struct stream *s)
{
	int r = stream_is_drained(s) ? 0 : send_some(s);

	if (r < 0)
		return r;
	if (!stream_is_drained(s))
		return stream_ask(s);
	s->sent = 0;
	buf_reset(&s->waiting);
	return 1;
}

int
stream_ask(struct stream *s)
{
	return event_add(s->out, NULL) < 0 ? -ENOMEM : 0;
}

static void
on_writable(evutil_socket_t sock UNUSED, short what UNUSED, void *arg)
{
	struct stream *s = arg;
	int r = stream_flush(s);

	if (r != 0)
		s->ops->written(s->arg, r < 0 ? r : 0);
}

/* ---- in ---- */

ssize_t
stream_read(struct stream *s, char *data, size_t size)
{
	ssize_t n = recv(s->sock, data, size, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return n == 0 ? -EPIPE : n;
}

static void
on_readable(evutil_socket_t sock UNUSED, short what UNUSED, void *arg)
{
	struct stream *s = arg;

	s->ops->readable(s->arg);
}

/* ---- begin and end ---- */

int
stream_new(struct event_base *base, int sock, const struct stream_ops *ops,
    void *arg, struct stream **ret_stream)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		io_close(&sock);
		return -ENOMEM;
	}
	s->sock = sock;
	s->ops = ops;
	s->arg = arg;
	s->in = event_new(base, sock, EV_READ | EV_PERSIST, on_readable, s);
	s->out = event_new(base, sock, EV_WRITE, on_writable, s);
	if (s->in == NULL || s->out == NULL || event_add(s->in, NULL) < 0) {
		stream_close(&s, NULL);
		return -ENOMEM;
	}
	*ret_stream = s;
	return 0;
}

/* Octets that were sent have not all arrived. */
static bool
is_stuck(const struct stream *s)
{
	int unsent = 0;

	return !stream_is_drained(s) ||
	    (ioctl(s->sock, SIOCOUTQ, &unsent) == 0 && unsent > 0);
}

/* An orderly end would wait behind octets that the server does not read, so a
 * connection that is stuck is reset. */
static void
part(const struct stream *s, const struct buf *last)
{
	const struct linger reset = { .l_onoff = 1 };

	if (is_stuck(s))
		(void)setsockopt(
		    s->sock, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	else if (last != NULL && last->len > 0)
		(void)send(s->sock, last->data, last->len,
		    MSG_DONTWAIT | MSG_NOSIGNAL);
}

void
stream_close(struct stream **stream, const struct buf *last)
{
	struct stream *s = *stream;

	*stream = NULL;
	if (s == NULL)
		return;
	part(s, last);
	if (s->in != NULL)
		event_free(s->in);
	if (s->out != NULL)
		event_free(s->out);
	io_close(&s->sock);
	buf_done(&s->waiting);
	free(s);
}
