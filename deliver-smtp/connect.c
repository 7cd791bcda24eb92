#include "deliver-smtp/net.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/io.h"

struct connect_attempt {
	int sock;
	struct event *event;
	connect_fn *done;
	void *arg;
};

static void
attempt_free(struct connect_attempt *a)
{
	if (a->event != NULL)
		event_free(a->event);
	io_close(&a->sock);
	free(a);
}

static int
outcome(int sock, short what)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (what & EV_TIMEOUT)
		return -ETIMEDOUT;
	if (getsockopt(sock, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		return -errno;
	return -error;
}

static void
on_ready(evutil_socket_t sock, short what, void *arg)
{
	struct connect_attempt *a = arg;
	connect_fn *done = a->done;
	void *done_arg = a->arg;
	int r = outcome(sock, what);

	if (r == 0) {
		r = sock;
		a->sock = -1;
	}
	attempt_free(a);
	done(done_arg, r);
}

/* EAGAIN is a local socket whose server has no room in its queue: connect()
 * does not wait there, so neither can we. */
static int
open_socket(const struct sockaddr *address, socklen_t address_len)
{
	int one = 1;
	int sock = socket(
	    address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int error;

	if (sock < 0)
		return -errno;
	/* Commands are written whole: waiting for more only costs time. */
	if (address->sa_family != AF_UNIX)
		(void)setsockopt(
		    sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(sock, address, address_len) == 0 || errno == EINPROGRESS)
		return sock;
	error = errno == EAGAIN ? ECONNREFUSED : errno;
	io_close(&sock);
	return -error;
}

int
connect_start(struct event_base *base, const struct sockaddr *address,
    socklen_t address_len, usec_t limit, connect_fn *done, void *arg,
    struct connect_attempt **ret_attempt)
{
	const struct timeval tv = clock_timeval(limit);
	int sock = open_socket(address, address_len);
	struct connect_attempt *a;

	if (sock < 0)
		return sock;
	a = calloc(1, sizeof(*a));
	if (a == NULL) {
		io_close(&sock);
		return -ENOMEM;
	}
	a->sock = sock;
	a->done = done;
	a->arg = arg;
	a->event = event_new(base, sock, EV_WRITE, on_ready, a);
	if (a->event == NULL || event_add(a->event, &tv) < 0) {
		attempt_free(a);
		return -ENOMEM;
	}
	*ret_attempt = a;
	return 0;
}

void
connect_cancel(struct connect_attempt **attempt)
{
	struct connect_attempt *a = *attempt;

	*attempt = NULL;
	if (a != NULL)
		attempt_free(a);
}

bool
connect_error_is_local(int error)
{
	static const int local[] = { EMFILE, ENFILE, ENOMEM, ENOBUFS };
	size_t i;

	for (i = 0; i < ARRAY_LEN(local); i++)
		if (local[i] == -error)
			return true;
	return false;
}
