#include "deliver-smtp/connection/connection.h"

#include <errno.h>
#include <event2/event.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "base/io.h"
#include "deliver-smtp/protection/tls.h"

/* One read takes a whole record of TLS, at most. */
#define READ_MAX (16384 + 512)

struct stream {
	int sock;
	struct event *in, *out;
	const struct stream_ops *ops;
	void *arg;
	struct buf waiting;
	size_t sent;     /* of waiting, without TLS */
	struct tls *tls; /* NULL: in the clear */
	bool shaking;    /* TLS is not there yet */
	/* Something of the last read is left in TLS: a timer, for an event that
	 * is made active runs in the same turn of the loop, again and again. */
	struct event *more;
};

/* ---- out ---- */

struct buf *
stream_out(struct stream *s)
{
	return &s->waiting;
}

/* The octets for the socket. */
static size_t
unsent(const struct stream *s, const char **ret_data)
{
	if (s->tls != NULL)
		return tls_waiting(s->tls, ret_data);
	*ret_data = s->waiting.len == 0 ? NULL : s->waiting.data + s->sent;
	return s->waiting.len - s->sent;
}

bool
stream_is_drained(const struct stream *s)
{
	const char *data;

	return unsent(s, &data) == 0 && (s->tls == NULL || s->waiting.len == 0);
}

static void
note_sent(struct stream *s, size_t n)
{
	if (s->tls != NULL) {
		tls_sent(s->tls, n);
		return;
	}
	s->sent += n;
	if (s->sent < s->waiting.len)
		return;
	s->sent = 0;
	buf_reset(&s->waiting);
}

static int
send_some(struct stream *s)
{
	const char *data;
	size_t len = unsent(s, &data);
	ssize_t n;

	if (len == 0)
		return 0;
	n = send(s->sock, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	note_sent(s, (size_t)n);
	return 0;
}

/* All that waits in the clear goes through TLS. */
static int
encrypt(struct stream *s)
{
	int r;

	if (s->tls == NULL || s->shaking)
		return 0;
	r = tls_write(s->tls, s->waiting.data, s->waiting.len);
	buf_reset(&s->waiting);
	return r;
}

int
stream_flush(struct stream *s)
{
	int r = encrypt(s);

	if (r == 0)
		r = send_some(s);
	if (r < 0)
		return r;
	return stream_is_drained(s) ? 1 : stream_ask(s);
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

	if (s->shaking) { /* an error shows where it reads */
		return;
	}
	if (r != 0)
		s->ops->written(s->arg, r < 0 ? r : 0);
}

/* ---- in ---- */

/* 0: nothing is there now; -EPIPE: the end; -errno. */
static ssize_t
receive(struct stream *s, char *data, size_t size)
{
	ssize_t n = recv(s->sock, data, size, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return n == 0 ? -EPIPE : n;
}

/* One read of the socket, into TLS. */
static ssize_t
receive_tls(struct stream *s)
{
	static char data[READ_MAX]; /* sessions share it */
	ssize_t n = receive(s, data, sizeof(data));
	int r;

	if (n <= 0)
		return n;
	r = tls_feed(s->tls, data, (size_t)n);
	return r < 0 ? r : n;
}

/* Octets that TLS has already do not make the socket readable. */
static void
read_more(struct stream *s)
{
	const struct timeval now = { 0 };

	if (tls_has_more(s->tls))
		(void)evtimer_add(s->more, &now);
}

/* An answer of TLS itself goes out. */
static void
settle(struct stream *s)
{
	const char *data;

	read_more(s);
	if (tls_waiting(s->tls, &data) > 0 && send_some(s) == 0 &&
	    tls_waiting(s->tls, &data) > 0)
		(void)stream_ask(s);
}

static ssize_t
read_tls(struct stream *s, char *data, size_t size)
{
	ssize_t n = tls_read(s->tls, data, size);

	if (n == 0) {
		n = receive_tls(s);
		if (n > 0)
			n = tls_read(s->tls, data, size);
	}
	if (n >= 0)
		settle(s);
	return n;
}

ssize_t
stream_read(struct stream *s, char *data, size_t size)
{
	return s->tls != NULL ? read_tls(s, data, size)
			      : receive(s, data, size);
}

/* ---- TLS ---- */

/* 1: done; 0: more is needed; -errno, after the alert of ours has gone. */
static int
shake(struct stream *s)
{
	int r = tls_shake(s->tls), sent = send_some(s);

	if (r == 0 && sent < 0)
		return sent;
	if (r >= 0 && !stream_is_drained(s) && stream_ask(s) < 0)
		return -ENOMEM;
	if (r == 1)
		read_more(s);
	return r;
}

static void
go_on_shaking(struct stream *s)
{
	ssize_t n = receive_tls(s);
	int r = n < 0 ? (int)n : n == 0 ? 0 : shake(s);

	if (r == 0)
		return;
	s->shaking = r < 0; /* nothing more comes of it then */
	s->ops->secured(s->arg, r < 0 ? r : 0);
}

bool
stream_has_more(const struct stream *s)
{
	return s->tls != NULL && tls_has_more(s->tls);
}

const struct tls *
stream_tls(const struct stream *s)
{
	return s->tls;
}

static void
on_readable(evutil_socket_t sock UNUSED, short what UNUSED, void *arg)
{
	struct stream *s = arg;

	if (s->shaking)
		go_on_shaking(s);
	else
		s->ops->readable(s->arg);
}

int
stream_secure(struct stream *s, struct tls *tls)
{
	int r;

	ASSERT(s->tls == NULL && stream_is_drained(s));
	s->tls = tls;
	s->shaking = true;
	s->more = evtimer_new(event_get_base(s->in), on_readable, s);
	if (s->more == NULL)
		return -ENOMEM;
	r = shake(s);
	return r < 0 ? r : 0;
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
	int queued = 0;

	return !stream_is_drained(s) ||
	    (ioctl(s->sock, SIOCOUTQ, &queued) == 0 && queued > 0);
}

/* All or nothing: there is no later. */
static void
send_last(struct stream *s, const struct buf *last)
{
	const char *data = last == NULL ? NULL : last->data;
	size_t len = last == NULL ? 0 : last->len;

	if (s->tls != NULL) {
		if (!s->shaking)
			(void)tls_write(s->tls, data, len);
		tls_part(s->tls);
		len = tls_waiting(s->tls, &data);
	}
	if (len > 0)
		(void)send(s->sock, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* An orderly end would wait behind octets that the server does not read, so a
 * connection that is stuck is reset. */
static void
part(struct stream *s, const struct buf *last)
{
	const struct linger reset = { .l_onoff = 1 };

	if (is_stuck(s))
		(void)setsockopt(
		    s->sock, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	else
		send_last(s, last);
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
	if (s->more != NULL)
		event_free(s->more);
	io_close(&s->sock);
	tls_free(&s->tls);
	buf_done(&s->waiting);
	free(s);
}
