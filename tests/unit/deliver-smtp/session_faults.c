/* Sessions that do not come to a good end. */
#include "tests/unit/deliver-smtp/bench.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "config/conf.h"

#define SHORT (50 * USEC_PER_MSEC)

/* clang-format off */
static const struct step silent[] = { { NULL, NULL } };
/* clang-format on */

static void
run(struct bench *b, const struct step *steps)
{
	bench_open(b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	bench_serve(b, NULL, steps);
	bench_deliver(b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(b);
}

/* ---- connecting ---- */

Test(session_faults, N1_refused)
{
	char want[96];
	struct bench b;
	int sock;

	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	sock = bench_reserve_port(&b);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 2);
	bench_run(&b);
	snprintf(want, sizeof(want),
	    "0D4.4.1:none:connect to 127.0.0.1[127.0.0.1]:%u: Connection "
	    "refused\n",
	    b.server.port);
	bench_expect(&b, want, true);
	bench_expect(&b, "1D4.4.1:none:connect to ", true);
	cr_expect_eq(strncmp(buf_str(&b.site), "4.4.1 connect to ", 17), 0);
	close(sock);
	bench_close(&b);
}

Test(session_faults, N1_unreachable)
{
	struct bench b;

	/* The one address that TCP has no route to on any host. */
	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	bench_deliver(&b, AGENT_SMTP, "255.255.255.255", 1);
	bench_run(&b);
	bench_expect(&b, "0D4.4.1:none:connect to 255.255.255.255[", true);
	bench_expect(&b, "Network is unreachable", true);
	bench_close(&b);
}

Test(session_faults, N1_no_answer_in_connect)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	int sock, full[8];
	struct bench b;
	size_t i;

	/* A queue without room: further SYNs are not answered. */
	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	sock = bench_reserve_port(&b);
	cr_assert_eq(listen(sock, 0), 0);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in.sin_port = htons(b.server.port);
	for (i = 0; i < ARRAY_LEN(full); i++) {
		full[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(full[i], (struct sockaddr *)&in, sizeof(in));
	}
	b.context.settings.connect_limit = SHORT;
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(&b);
	bench_expect(&b, "Connection timed out", true);
	bench_expect(&b, "0D4.4.1:none:connect to ", true);
	for (i = 0; i < ARRAY_LEN(full); i++)
		close(full[i]);
	close(sock);
	bench_close(&b);
}

Test(session_faults, P12_no_descriptor_is_not_the_fault_of_the_site)
{
	int taken[64], n = 0;
	struct rlimit limit = { 64, 64 };
	struct bench b;

	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	bench_serve(&b, NULL, bench_plain);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while ((taken[n] = dup(0)) >= 0)
		n++;
	cr_assert_gt(n, 0);
	close(taken[--n]); /* for the queue file */
	bench_run(&b);
	bench_expect(&b, "0D4.3.0:none:connect to ", false);
	bench_expect(&b, "Too many open files", false);
	cr_expect_eq(strncmp(buf_str(&b.site), "4.3.0 connect to ", 17), 0,
	    "%s: our own trouble", buf_str(&b.site));
	while (n > 0)
		close(taken[--n]);
	bench_close(&b);
}

/* ---- ends at every point ---- */

/* clang-format off */
static const struct step closed_greeting[] = { { "", NULL } };
static const struct step closed_ehlo[] = {
	{ "", "220 mx\r\n" }, { "\r\n", "25" }, { "", NULL } };
static const struct step closed_mail[] = {
	{ "", "220 mx\r\n" }, { "EHLO me.example\r\n", "250 mx\r\n" },
	{ "MAIL FROM:<s@y>\r\n", NULL } };
static const struct step closed_dot[] = {
	BENCH_TO_DATA, { "DATA\r\n", "354 go\r\n" }, { "\r\n.\r\n", NULL } };
static const struct step closed_quit[] = {
	BENCH_TO_DATA, { "DATA\r\n", "354 go\r\n" },
	{ "\r\n.\r\n", "250 2.0.0 queued\r\n" }, { "QUIT\r\n", NULL } };
static const struct step quits_itself[] = {
	BENCH_TO_DATA, { "DATA\r\n", "354 go\r\n" },
	{ "\r\n.\r\n", "250 2.0.0 queued\r\n" }, { "", NULL } };
static const struct step refuses[] = {
	{ "", "554 5.3.2 not here\r\n" }, { NULL, NULL } };
static const struct step rubbish[] = { { "", "hello\r\n" }, { NULL, NULL } };

static const struct {
	const char *name;
	const struct step *steps;
	const char *want;
	enum agent_site end;
} ends[] = {
	{ "greeting", closed_greeting, "0D4.4.2:", AGENT_SITE_FAILED },
	{ "EHLO", closed_ehlo, "while performing the handshake", AGENT_SITE_FAILED },
	{ "MAIL", closed_mail, "while sending MAIL FROM", AGENT_SITE_FAILED },
	{ "dot", closed_dot, "more than once", AGENT_SITE_DOUBTED },
	{ "N12 QUIT", closed_quit, "0S2.0.0:", AGENT_SITE_TALKED },
	{ "N12 before QUIT", quits_itself, "0S2.0.0:", AGENT_SITE_TALKED },
	{ "N5 refusing greeting", refuses, ":host 127.0.0.1[127.0.0.1] said: 554 5.3.2 not here",
	    AGENT_SITE_FAILED },
	{ "N5 that is no failure of the message", refuses, "0D4.3.2:127.0.0.1[127.0.0.1]:",
	    AGENT_SITE_FAILED },
	{ "N6 rubbish", rubbish, "0D4.5.0:", AGENT_SITE_FAILED },
};
/* clang-format on */

Test(session_faults, N3_N12_the_connection_ends)
{
	struct bench b;
	size_t i;

	for (i = 0; i < ARRAY_LEN(ends); i++) {
		run(&b, ends[i].steps);
		bench_expect_end(&b, ends[i].want, ends[i].end);
		cr_expect_eq(b.server.connections, 1, "%s", ends[i].name);
		bench_close(&b);
	}
}

/* ---- N4: time limits ---- */

Test(session_faults, N4_silence)
{
	static const struct {
		enum dialog_state state;
		const struct step *steps;
		const char *want;
		enum agent_site end;
	} rows[] = {
		{ DIALOG_GREETING, silent, "while receiving the greeting",
		    AGENT_SITE_FAILED },
		{ DIALOG_MAIL, bench_plain, "while sending MAIL FROM",
		    AGENT_SITE_FAILED },
		{ DIALOG_DOT, bench_plain, "more than once",
		    AGENT_SITE_DOUBTED },
		{ DIALOG_QUIT, bench_plain, "0S2.0.0:", AGENT_SITE_TALKED },
	};
	/* The server goes silent when the state is reached. */
	struct step cut[ARRAY_LEN(bench_plain)];
	size_t i, k;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		static const size_t steps[] = { 0, 2, 5, 6 };
		struct bench b;

		for (k = 0; k < ARRAY_LEN(bench_plain); k++)
			cut[k] = k < steps[i] ? bench_plain[k]
					      : (struct step){ NULL, NULL };
		bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
		bench_serve(&b, NULL, cut);
		b.context.settings.limits[rows[i].state] = SHORT;
		bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
		bench_run(&b);
		bench_expect_end(&b, rows[i].want, rows[i].end);
		bench_close(&b);
	}
}

/* An octet now and then, within one reply. */
static void
on_drip(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	int client = *(int *)arg;

	if (client >= 0)
		(void)send(client, "2", 1, MSG_NOSIGNAL);
}

Test(session_faults, N4_an_octet_now_and_then_is_silence)
{
	struct timeval tv = { .tv_usec = SHORT / 10 };
	int sock, client = -1;
	struct event *drip;
	struct bench b;

	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	sock = bench_reserve_port(&b);
	cr_assert_eq(listen(sock, 1), 0);
	drip = event_new(b.base, -1, EV_PERSIST, on_drip, &client);
	event_add(drip, &tv);
	b.context.settings.limits[DIALOG_GREETING] = SHORT;
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	while (TAILQ_EMPTY(&b.context.running) && !b.done)
		bench_turn(&b);
	client = accept4(sock, NULL, NULL, SOCK_CLOEXEC);
	bench_run(&b);
	bench_expect(&b, "timed out while receiving the greeting", true);
	event_free(drip);
	close(client);
	close(sock);
	bench_close(&b);
}

Test(session_faults, N4_a_server_that_does_not_read)
{
	size_t len = 16 << 20;
	char *content = malloc(len);
	int sock, client;
	struct bench b;
	ssize_t n;

	memset(content, 'a', len);
	bench_open(&b, content, len);
	sock = bench_reserve_port(&b);
	cr_assert_eq(listen(sock, 1), 0);
	b.context.settings.limits[DIALOG_CONTENT] = SHORT;
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	while (TAILQ_EMPTY(&b.context.running) && !b.done)
		bench_turn(&b);
	client = accept4(sock, NULL, NULL, SOCK_CLOEXEC);
	cr_assert_geq(client, 0);
	/* All that it has to say, a reply each time we have spoken. */
	static const char *const says[] = { "220 a\r\n", "250 b\r\n",
		"250 c\r\n", "250 d\r\n", "354 e\r\n" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(says); i++) {
		char line[512];

		cr_assert_eq(io_write_all(client, says[i], strlen(says[i])), 0);
		if (i + 1 == ARRAY_LEN(says))
			break;
		do {
			bench_turn(&b);
			n = recv(client, line, sizeof(line), MSG_DONTWAIT);
		} while (n <= 0);
	}
	bench_run(&b);
	bench_expect_end(
	    &b, "timed out while sending the message", AGENT_SITE_DOUBTED);
	close(client);
	close(sock);
	free(content);
	bench_close(&b);
}
