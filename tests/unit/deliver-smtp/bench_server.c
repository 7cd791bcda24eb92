/* Servers that follow a script, in the clear or with TLS. */
#include "tests/unit/deliver-smtp/bench.h"

#include <criterion/criterion.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/io.h"

const char BENCH_TLS[] = "TLS";

/* clang-format off */
const struct step bench_plain[BENCH_PLAIN_STEPS] = {
	BENCH_TO_DATA,
	{ "DATA\r\n", "354 go\r\n" },
	{ "\r\n.\r\n", "250 2.0.0 queued\r\n" },
	{ "QUIT\r\n", "221 bye\r\n" },
	{ NULL, NULL },
};
/* clang-format on */

struct client {
	struct server *server;
	struct bufferevent *bev;
	const struct step *step;
	struct buf got;      /* since the last step */
	struct peer_tls tls; /* ssl NULL: in the clear */
};

static bool
ends_with(const struct buf *got, const char *want)
{
	size_t len = strlen(want);

	return len <= got->len &&
	    memcmp(got->data + got->len - len, want, len) == 0;
}

static void
drop_client(struct client *c)
{
	if (c->bev != NULL)
		bufferevent_free(c->bev);
	c->bev = NULL;
	peer_end(&c->tls);
}

/* Its octets are used up. */
static void
end_client(struct client *c)
{
	const struct linger reset = { .l_onoff = 1 };

	c->server->over = true;
	if (c->bev == NULL)
		return;
	if (c->server->end == SERVER_IS_SILENT) {
		bufferevent_disable(c->bev, EV_READ);
		return;
	}
	if (c->server->end == SERVER_RESETS)
		(void)setsockopt(bufferevent_getfd(c->bev), SOL_SOCKET,
		    SO_LINGER, &reset, sizeof(reset));
	drop_client(c);
}

/* True: that was the last one of so many. */
static bool
use_up(size_t *left, size_t len)
{
	if (*left == 0)
		return false;
	*left -= len;
	return *left == 0;
}

/* At once: closing drops what a buffer holds. */
static void
send_now(struct client *c, const char *data, size_t len)
{
	struct server *s = c->server;

	if (s->over || c->bev == NULL)
		return;
	if (s->says > 0 && len > s->says)
		len = s->says;
	(void)send(bufferevent_getfd(c->bev), data, len, MSG_NOSIGNAL);
	if (use_up(&s->says, len))
		end_client(c);
}

static void
send_tls(struct client *c)
{
	struct buf out = { 0 };

	peer_take(&c->tls, &out);
	if (out.len > 0)
		send_now(c, out.data, out.len);
	buf_done(&out);
}

static void
say(struct client *c, const char *text)
{
	if (text == BENCH_TLS) {
		peer_begin(&c->tls, c->server->tls);
	} else if (c->tls.ssl != NULL) {
		peer_say(&c->tls, text, strlen(text));
		send_tls(c);
	} else {
		send_now(c, text, strlen(text));
	}
}

static void
go_on(struct client *c)
{
	while (c->bev != NULL && c->step->want != NULL &&
	    (c->tls.ssl == NULL || c->tls.done) &&
	    (*c->step->want == '\0' || ends_with(&c->got, c->step->want))) {
		buf_reset(&c->got);
		if (c->step->say == NULL)
			drop_client(c);
		else
			say(c, c->step->say);
		c->step++;
	}
}

static void
take(struct client *c, const char *data, size_t len)
{
	size_t i;

	for (i = 0; c->bev != NULL && i < len; i++) {
		buf_add(&c->got, data + i, 1);
		buf_add(&c->server->got, data + i, 1);
		if (data[i] == '\n')
			go_on(c);
	}
}

static void
note_handshake(struct client *c)
{
	struct server *s = c->server;

	snprintf(s->host, sizeof(s->host), "%s", c->tls.host);
	s->secured++;
	s->resumed += SSL_session_reused(c->tls.ssl) == 1;
	go_on(c);
}

static void
take_tls(struct client *c, const char *data, size_t len)
{
	bool was = c->tls.done;
	struct buf clear = { 0 };

	peer_feed(&c->tls, data, len, &clear);
	send_tls(c);
	if (c->bev == NULL)
		clear.len = 0;
	else if (c->tls.failed)
		drop_client(c);
	else if (c->tls.done && !was)
		note_handshake(c);
	if (clear.len > 0)
		take(c, clear.data, clear.len);
	buf_done(&clear);
}

static size_t
room(const struct client *c, size_t most)
{
	const size_t left = c->server->hears;

	return left > 0 && left < most ? left : most;
}

static void
hear(struct client *c, const char *data, size_t len)
{
	if (c->server->over)
		return;
	if (use_up(&c->server->hears, len))
		end_client(c);
	else if (c->tls.ssl == NULL)
		take(c, data, len);
	else
		take_tls(c, data, len);
}

static void
on_client_read(struct bufferevent *bev, void *arg)
{
	struct client *c = arg;
	char data[4096];
	size_t n;

	while (c->bev != NULL && c->tls.ssl == NULL &&
	    (n = bufferevent_read(bev, data, 1)) > 0)
		hear(c, data, n);
	while (c->bev != NULL && c->tls.ssl != NULL &&
	    (n = bufferevent_read(bev, data, room(c, sizeof(data)))) > 0)
		hear(c, data, n);
}

static void
on_client_event(struct bufferevent *bev UNUSED, short what UNUSED, void *arg)
{
	drop_client(arg);
}

static void
on_accept(evutil_socket_t sock, short what UNUSED, void *arg)
{
	struct server *s = arg;
	struct client *c = calloc(1, sizeof(*c));
	int fd = accept4(sock, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_lt(s->connections, ARRAY_LEN(s->clients));
	c->server = s;
	c->step = s->connections > 0 && s->again != NULL ? s->again : s->steps;
	s->clients[s->connections++] = c;
	c->bev = bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(c->bev, on_client_read, NULL, on_client_event, c);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
	if (s->over)
		end_client(c);
	else
		go_on(c);
}

static int
listen_at(const char *path, uint16_t *ret_port)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t len = sizeof(in);
	int sock;

	if (path == NULL)
		in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (path != NULL && *path == '/') {
		snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
		sock = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		cr_assert_eq(bind(sock, (struct sockaddr *)&un, sizeof(un)), 0);
	} else {
		sock = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		cr_assert_eq(bind(sock, (struct sockaddr *)&in, sizeof(in)), 0);
		cr_assert_eq(
		    getsockname(sock, (struct sockaddr *)&in, &len), 0);
		*ret_port = ntohs(in.sin_port);
	}
	cr_assert_eq(listen(sock, 16), 0);
	return sock;
}

void
bench_serve(struct bench *b, const char *path, const struct step *steps)
{
	struct server *s = &b->server;

	s->base = b->base;
	s->steps = steps;
	s->sock = listen_at(path, &s->port);
	s->event =
	    event_new(b->base, s->sock, EV_READ | EV_PERSIST, on_accept, s);
	event_add(s->event, NULL);
}

void
bench_server_close(struct server *s)
{
	unsigned i;

	for (i = 0; i < s->connections; i++) {
		struct client *c = s->clients[i];

		drop_client(c);
		buf_done(&c->got);
		free(c);
	}
	if (s->event != NULL)
		event_free(s->event);
	io_close(&s->sock);
	SSL_CTX_free(s->tls);
	buf_done(&s->got);
}
