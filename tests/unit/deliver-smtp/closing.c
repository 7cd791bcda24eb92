#include "tests/unit/deliver-smtp/bench.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

/* The place at a destination is given back by DONE: no connection may be left
 * then. The servers here read and write by hand, and look at the state of the
 * connection when DONE has come, however much they have not read. */

#define SHORT       (100 * USEC_PER_MSEC)
#define CONTENT_BIG ((size_t)16 << 20)

static bool
is_connected(int client)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	cr_assert_eq(getsockopt(client, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	return info.tcpi_state == TCP_ESTABLISHED;
}

/* One connection, to the server that is read from by hand. */
static int
take_client(struct bench *b, int sock)
{
	int client;

	bench_deliver(b, AGENT_SMTP, "127.0.0.1:%u", 1);
	while (TAILQ_EMPTY(&b->context.running) && !b->done)
		bench_turn(b);
	client = accept4(sock, NULL, NULL, SOCK_CLOEXEC);
	cr_assert_geq(client, 0);
	return client;
}

/* Say it; then run until something has come for it, unless it was the last. */
static void
say(struct bench *b, int client, const char *text, bool last)
{
	char heard[4096];

	cr_assert_eq(io_write_all(client, text, strlen(text)), 0);
	while (!last && recv(client, heard, sizeof(heard), MSG_DONTWAIT) <= 0)
		bench_turn(b);
}

static const char *const to_content[] = { "220 a\r\n", "250 b\r\n", "250 c\r\n",
	"250 d\r\n", "354 e\r\n", "250 f\r\n", "221 g\r\n", NULL };
static const char *const refusal[] = { "554 no\r\n", NULL };

static const struct {
	const char *name;
	const char *const *says;
	size_t count; /* of them; then it is silent */
	size_t content;
	enum dialog_state shortened;
	const char *want;
	enum agent_site end;
} rows[] = {
	{ "QUIT is answered", to_content, 7, 3, DIALOG_CLOSED, "0S2.0.0",
	    AGENT_SITE_TALKED },
	{ "QUIT is not answered", to_content, 6, 3, DIALOG_QUIT, "0S2.0.0",
	    AGENT_SITE_TALKED },
	{ "the greeting refuses", refusal, 1, 3, DIALOG_CLOSED,
	    "0D4.0.0:", AGENT_SITE_FAILED },
	{ "no greeting", to_content, 0, 3, DIALOG_GREETING,
	    "receiving the greeting", AGENT_SITE_FAILED },
	{ "no answer to the dot", to_content, 5, 3, DIALOG_DOT,
	    "more than once", AGENT_SITE_DOUBTED },
	{ "the message is not read", to_content, 5, CONTENT_BIG, DIALOG_CONTENT,
	    "timed out while sending the message", AGENT_SITE_DOUBTED },
};

Test(closing, done_comes_when_the_connection_is_closed)
{
	char *content = malloc(CONTENT_BIG);
	size_t i, k;

	memset(content, 'a', CONTENT_BIG);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct bench b;
		int sock, client;

		bench_open(&b, content, rows[i].content);
		sock = bench_reserve_port(&b);
		cr_assert_eq(listen(sock, 1), 0);
		b.context.settings.limits[rows[i].shortened] = SHORT;
		client = take_client(&b, sock);
		for (k = 0; k < rows[i].count; k++)
			say(&b, client, rows[i].says[k],
			    k + 1 == rows[i].count);
		cr_expect(is_connected(client), "%s", rows[i].name);
		bench_run(&b);
		cr_expect_not(is_connected(client), "%s", rows[i].name);
		bench_expect_end(&b, rows[i].want, rows[i].end);
		close(client);
		close(sock);
		bench_close(&b);
	}
	free(content);
}

Test(closing, what_is_given_up_is_closed_at_once)
{
	size_t count;

	for (count = 0; count < 6; count++) {
		struct bench b;
		int sock, client;
		size_t k;

		bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
		sock = bench_reserve_port(&b);
		cr_assert_eq(listen(sock, 1), 0);
		client = take_client(&b, sock);
		for (k = 0; k < count; k++)
			say(&b, client, to_content[k], false);
		session_abandon_all(&b.context, "4.3.2", "stop");
		cr_expect_not(is_connected(client), "after %zu", count);
		close(client);
		close(sock);
		bench_close(&b);
	}
}
