/* TLS below a stream, in the event loop, against a server at a pair of sockets.
 */
#include <criterion/criterion.h>
#include <event2/event.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deliver-smtp/connection/connection.h"
#include "tests/unit/deliver-smtp/bench.h"

#define RECORDS 100

struct pair {
	struct event_base *base;
	int sock; /* the server's */
	struct tls_context *context;
	SSL_CTX *server;
	struct peer_tls peer;
	struct stream *stream;
	bool secured;
	unsigned turns, octets; /* that were readable, and came */
};

static void
on_readable(void *arg)
{
	struct pair *p = arg;
	char clear[64];
	ssize_t n = stream_read(p->stream, clear, sizeof(clear));

	cr_assert_geq(n, 0);
	p->turns++;
	p->octets += (unsigned)n;
}

static void
on_written(void *arg UNUSED, int error)
{
	cr_assert_eq(error, 0);
}

static void
on_secured(void *arg, int error)
{
	struct pair *p = arg;

	cr_assert_eq(error, 0);
	p->secured = true;
}

static const struct stream_ops ops = { on_readable, on_written, on_secured };

static void
turn(struct pair *p)
{
	event_base_loop(p->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

/* The server's to us, in one piece. */
static void
carry_in(struct pair *p)
{
	struct buf out = { 0 };

	peer_take(&p->peer, &out);
	cr_assert_eq(send(p->sock, out.data, out.len, 0), (ssize_t)out.len);
	buf_done(&out);
}

static void
serve(struct pair *p)
{
	struct buf clear = { 0 };
	char data[4096];
	ssize_t n = recv(p->sock, data, sizeof(data), MSG_DONTWAIT);

	if (n > 0)
		peer_feed(&p->peer, data, (size_t)n, &clear);
	buf_done(&clear);
	carry_in(p);
}

static void
open_pair(struct pair *p)
{
	static const struct tls_want want = { .level = TLS_LEVEL_ENCRYPT,
		.relay = "mx:25" };
	char ca[BENCH_PATH];
	struct tls *tls;
	int socks[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, socks), 0);
	bench_template(ca);
	*p = (struct pair){ .base = event_base_new(), .sock = socks[0] };
	p->server = peer_context(PEER_GOOD, ca);
	unlink(ca);
	SSL_CTX_set_num_tickets(p->server, 0);
	peer_begin(&p->peer, p->server);
	cr_assert_eq(tls_context_new(NULL, &p->context, NULL), 0);
	cr_assert_eq(tls_new(p->context, &want, &tls), 0);
	cr_assert_eq(stream_new(p->base, socks[1], &ops, p, &p->stream), 0);
	cr_assert_eq(stream_secure(p->stream, tls), 0);
	while (!p->secured || !p->peer.done) {
		serve(p);
		turn(p);
	}
	p->turns = 0;
}

static void
close_pair(struct pair *p)
{
	stream_close(&p->stream, NULL);
	peer_end(&p->peer);
	tls_context_unref(&p->context);
	SSL_CTX_free(p->server);
	event_base_free(p->base);
	close(p->sock);
}

/* Many records of an octet each, in one read: other connections have their turn
 * between them. */
Test(tls_stream, N22_a_record_a_turn)
{
	struct pair p;
	int i;

	open_pair(&p);
	for (i = 0; i < RECORDS; i++)
		peer_say(&p.peer, "x", 1);
	carry_in(&p);
	turn(&p);
	cr_expect_leq(p.turns, 2, "%u", p.turns);
	for (i = 0; i < 2 * RECORDS && p.octets < RECORDS; i++)
		turn(&p);
	cr_expect_eq(p.octets, RECORDS);
	close_pair(&p);
}
