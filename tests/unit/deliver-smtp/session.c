#include "tests/unit/deliver-smtp/bench.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "config/conf.h"

#define CONTENT "Subject: x\n\n.dot\nend\n"
#define WIRE    "Subject: x\r\n\r\n..dot\r\nend\r\n.\r\n"
#define SHORT   (50 * USEC_PER_MSEC)

/* clang-format off */
#define TO_DATA                                         \
	{ "", "220 mx\r\n" },                           \
	{ "EHLO me.example\r\n", "250 mx\r\n" },        \
	{ "MAIL FROM:<s@y>\r\n", "250 ok\r\n" },        \
	{ "RCPT TO:<r0@x>\r\n", "250 ok\r\n" }

static const struct step plain[] = {
	TO_DATA,
	{ "DATA\r\n", "354 go\r\n" },
	{ "\r\n.\r\n", "250 2.0.0 queued\r\n" },
	{ "QUIT\r\n", "221 bye\r\n" },
	{ NULL, NULL },
};
static const struct step pipelined[] = {
	{ "", "220 mx\r\n" },
	{ "EHLO me.example\r\n", "250-mx\r\n250 PIPELINING\r\n" },
	{ "DATA\r\n", "250 ok\r\n250 ok\r\n550 5.1.1 no\r\n354 go\r\n" },
	{ "\r\n.\r\n", "250 2.0.0 queued\r\n" },
	{ "QUIT\r\n", "221 bye\r\n" },
	{ NULL, NULL },
};
static const struct step lmtp[] = {
	{ "", "220 mx\r\n" },
	{ "LHLO me.example\r\n", "250-mx\r\n250 PIPELINING\r\n" },
	{ "DATA\r\n", "250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n" },
	{ "\r\n.\r\n", "250 2.0.0 a\r\n452 4.2.2 full\r\n" },
	{ "QUIT\r\n", "221 bye\r\n" },
	{ NULL, NULL },
};
static const struct step silent[] = { { NULL, NULL } };
/* clang-format on */

/* One job against a server; results compared without the port. */
static void
expect(struct bench *b, const char *result, bool site_failed)
{
	cr_expect_not_null(strstr(buf_str(&b->results), result),
	    "want %s, got %s", result, buf_str(&b->results));
	cr_expect_eq(b->site_failed, site_failed, "%s", buf_str(&b->site));
	cr_expect_eq(b->site.len > 1, site_failed, "%s", buf_str(&b->site));
}

static void
run(struct bench *b, const struct step *steps)
{
	bench_open(b, CONTENT, strlen(CONTENT));
	bench_serve(b, NULL, steps);
	bench_deliver(b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(b);
}

Test(session, one_message)
{
	struct bench b;
	char want[64];

	run(&b, plain);
	snprintf(want, sizeof(want),
	    "0S2.0.0:127.0.0.1[127.0.0.1]:%u:250 2.0.0 queued\n",
	    b.server.port);
	expect(&b, want, false);
	cr_expect_str_eq(buf_str(&b.server.got),
	    "EHLO me.example\r\nMAIL FROM:<s@y>\r\nRCPT TO:<r0@x>\r\n"
	    "DATA\r\n" WIRE "QUIT\r\n");
	bench_close(&b);
}

Test(session, N10_pipelined)
{
	struct bench b;

	bench_open(&b, CONTENT, strlen(CONTENT));
	bench_serve(&b, NULL, pipelined);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 2);
	bench_run(&b);
	expect(&b, "0S2.0.0:", false);
	expect(&b, "1F5.1.1:", false);
	bench_close(&b);
}

Test(session, N11_lmtp_over_a_local_socket)
{
	char dir[] = "/tmp/qsched-unit-XXXXXX", path[64], hop[80];
	struct bench b;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/Lmtp", dir);
	snprintf(hop, sizeof(hop), "unix:%s", path);
	bench_open(&b, CONTENT, strlen(CONTENT));
	bench_serve(&b, path, lmtp);
	bench_deliver(&b, AGENT_LMTP, hop, 2);
	bench_run(&b);
	expect(&b, "0S2.0.0:localhost[/tmp/", false);
	expect(&b, "1D4.2.2:", false);
	bench_close(&b);
	unlink(path);
	/* Nobody listens any more. */
	bench_open(&b, CONTENT, strlen(CONTENT));
	bench_deliver(&b, AGENT_LMTP, hop, 1);
	bench_run(&b);
	expect(&b, "0D4.4.1:none:connect to localhost[", true);
	expect(&b, "No such file or directory", true);
	bench_close(&b);
	rmdir(dir);
}

Test(session, next_hops_that_are_none)
{
	static const char *const hops[] = { "", "mx:0", "unix:/run/lmtp",
		"a b" };
	struct bench b;
	size_t i;

	bench_open(&b, CONTENT, strlen(CONTENT));
	for (i = 0; i < ARRAY_LEN(hops); i++) {
		bench_deliver(&b, AGENT_SMTP, hops[i], 2);
		bench_run(&b);
		expect(&b, "0D4.3.5:none:not a next hop for smtp: ", true);
		expect(&b, "1D4.3.5:none:", true);
	}
	bench_close(&b);
}

/* ---- names ---- */

Test(session, a_name_of_etc_hosts)
{
	struct bench b;

	/* Whatever its addresses are: of ::1 nobody listens. */
	bench_open(&b, CONTENT, strlen(CONTENT));
	bench_serve(&b, NULL, plain);
	bench_deliver(&b, AGENT_SMTP, "localhost:%u", 1);
	bench_run(&b);
	expect(&b, "0S2.0.0:localhost[127.0.0.1]:", false);
	bench_close(&b);
}

Test(session, ended_while_a_name_is_looked_up)
{
	struct bench b;

	bench_open(&b, CONTENT, strlen(CONTENT));
	bench_deliver(&b, AGENT_SMTP, "no-such-name.invalid", 1);
	while (TAILQ_EMPTY(&b.context.running) && !b.done)
		bench_turn(&b);
	session_abandon_all(&b.context, "4.3.2", "stop");
	bench_run(&b);
	cr_expect_not_null(strstr(buf_str(&b.results), "0D4."));
	bench_close(&b);
}

Test(session, a_name_is_looked_up_after_a_reload)
{
	struct bench b;

	bench_open(&b, CONTENT, strlen(CONTENT));
	bench_serve(&b, NULL, plain);
	cr_assert_eq(resolver_reload(b.context.resolver), 0);
	bench_turn(&b);
	bench_deliver(&b, AGENT_SMTP, "localhost:%u", 1);
	bench_run(&b);
	expect(&b, "0S2.0.0:", false);
	bench_close(&b);
}

/* ---- connecting ---- */

/* A port of the loopback on which nobody listens. */
static int
reserve_port(struct bench *b)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t len = sizeof(in);
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(sock, (struct sockaddr *)&in, sizeof(in)), 0);
	cr_assert_eq(getsockname(sock, (struct sockaddr *)&in, &len), 0);
	b->server.port = ntohs(in.sin_port);
	return sock;
}

Test(session, N1_refused)
{
	char want[96];
	struct bench b;
	int sock;

	bench_open(&b, CONTENT, strlen(CONTENT));
	sock = reserve_port(&b);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 2);
	bench_run(&b);
	snprintf(want, sizeof(want),
	    "0D4.4.1:none:connect to 127.0.0.1[127.0.0.1]:%u: Connection "
	    "refused\n",
	    b.server.port);
	expect(&b, want, true);
	expect(&b, "1D4.4.1:none:connect to ", true);
	cr_expect_str_eq(buf_str(&b.site) + 6,
	    strstr(want, "connect") == NULL ? "" : buf_str(&b.site) + 6);
	cr_expect_eq(strncmp(buf_str(&b.site), "4.4.1 connect to ", 17), 0);
	close(sock);
	bench_close(&b);
}

Test(session, N1_unreachable)
{
	struct bench b;

	/* The one address that TCP has no route to on any host. */
	bench_open(&b, CONTENT, strlen(CONTENT));
	bench_deliver(&b, AGENT_SMTP, "255.255.255.255", 1);
	bench_run(&b);
	expect(&b, "0D4.4.1:none:connect to 255.255.255.255[", true);
	expect(&b, "Network is unreachable", true);
	bench_close(&b);
}

Test(session, N1_no_answer_in_connect)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	int sock, full[8];
	struct bench b;
	size_t i;

	/* A queue without room: further SYNs are not answered. */
	bench_open(&b, CONTENT, strlen(CONTENT));
	sock = reserve_port(&b);
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
	expect(&b, "Connection timed out", true);
	expect(&b, "0D4.4.1:none:connect to ", true);
	for (i = 0; i < ARRAY_LEN(full); i++)
		close(full[i]);
	close(sock);
	bench_close(&b);
}

Test(session, P12_no_descriptor_is_not_the_fault_of_the_site)
{
	int taken[64], n = 0;
	struct rlimit limit = { 64, 64 };
	struct bench b;

	bench_open(&b, CONTENT, strlen(CONTENT));
	bench_serve(&b, NULL, plain);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while ((taken[n] = dup(0)) >= 0)
		n++;
	cr_assert_gt(n, 0);
	close(taken[--n]); /* for the queue file */
	bench_run(&b);
	expect(&b, "0D4.3.0:none:connect to ", false);
	expect(&b, "Too many open files", false);
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
	TO_DATA, { "DATA\r\n", "354 go\r\n" }, { "\r\n.\r\n", NULL } };
static const struct step closed_quit[] = {
	TO_DATA, { "DATA\r\n", "354 go\r\n" },
	{ "\r\n.\r\n", "250 2.0.0 queued\r\n" }, { "QUIT\r\n", NULL } };
static const struct step quits_itself[] = {
	TO_DATA, { "DATA\r\n", "354 go\r\n" },
	{ "\r\n.\r\n", "250 2.0.0 queued\r\n" }, { "", NULL } };
static const struct step refuses[] = {
	{ "", "554 5.3.2 not here\r\n" }, { NULL, NULL } };
static const struct step rubbish[] = { { "", "hello\r\n" }, { NULL, NULL } };
static const struct step enough[] = {
	TO_DATA, { "DATA\r\n", "354 go\r\n" },
	{ "\r\n", "552 5.3.4 enough\r\n" }, { "", NULL } };

static const struct {
	const char *name;
	const struct step *steps;
	const char *want;
	bool site_failed;
} ends[] = {
	{ "greeting", closed_greeting, "0D4.4.2:", true },
	{ "EHLO", closed_ehlo, "while performing the handshake", true },
	{ "MAIL", closed_mail, "while sending MAIL FROM", true },
	{ "dot", closed_dot, "more than once", true },
	{ "N12 QUIT", closed_quit, "0S2.0.0:", false },
	{ "N12 before QUIT", quits_itself, "0S2.0.0:", false },
	{ "N5 refusing greeting", refuses, "554 5.3.2 not here", true },
	{ "N6 rubbish", rubbish, "0D4.5.0:", true },
};
/* clang-format on */

Test(session, N3_N12_the_connection_ends)
{
	struct bench b;
	size_t i;

	for (i = 0; i < ARRAY_LEN(ends); i++) {
		run(&b, ends[i].steps);
		expect(&b, ends[i].want, ends[i].site_failed);
		cr_expect_eq(b.server.connections, 1, "%s", ends[i].name);
		bench_close(&b);
	}
}

/* ---- N4: time limits ---- */

Test(session, N4_silence)
{
	static const struct {
		enum dialog_state state;
		const struct step *steps;
		const char *want;
	} rows[] = {
		{ DIALOG_GREETING, silent, "while receiving the greeting" },
		{ DIALOG_MAIL, plain, "while sending MAIL FROM" },
		{ DIALOG_DOT, plain, "more than once" },
		{ DIALOG_QUIT, plain, "0S2.0.0:" },
	};
	/* The server goes silent when the state is reached. */
	struct step cut[ARRAY_LEN(plain)];
	size_t i, k;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		static const size_t steps[] = { 0, 2, 5, 6 };
		struct bench b;

		for (k = 0; k < ARRAY_LEN(plain); k++)
			cut[k] = k < steps[i] ? plain[k]
					      : (struct step){ NULL, NULL };
		bench_open(&b, CONTENT, strlen(CONTENT));
		bench_serve(&b, NULL, cut);
		b.context.settings.limits[rows[i].state] = SHORT;
		bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
		bench_run(&b);
		expect(&b, rows[i].want, rows[i].state != DIALOG_QUIT);
		bench_close(&b);
	}
}

Test(session, N4_a_server_that_does_not_read)
{
	size_t len = 16 << 20;
	char *content = malloc(len);
	int sock, client;
	struct bench b;
	ssize_t n;

	memset(content, 'a', len);
	bench_open(&b, content, len);
	sock = reserve_port(&b);
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
	expect(&b, "timed out while sending the message", true);
	close(client);
	close(sock);
	free(content);
	bench_close(&b);
}

/* ---- content ---- */

Test(session, C2_a_large_message)
{
	size_t len = 5 << 20, i;
	char *content = malloc(len);
	struct bench b;

	for (i = 0; i < len; i++)
		content[i] = i % 70 == 69 ? '\n' : (char)('a' + i % 26);
	bench_open(&b, content, len);
	bench_serve(&b, NULL, plain);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(&b);
	expect(&b, "0S2.0.0:", false);
	cr_expect_gt(b.server.got.len, len + len / 70);
	bench_close(&b);
	free(content);
}

Test(session, D8_a_file_that_cannot_be_read_is_not_ended)
{
	size_t len = 1 << 20;
	char *content = malloc(len), path[64];
	struct bench b;
	int fd;

	memset(content, 'a', len);
	bench_open(&b, content, len);
	bench_serve(&b, NULL, plain);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	while (TAILQ_EMPTY(&b.context.running) && !b.done)
		bench_turn(&b);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", b.fd);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, 70000), 0);
	close(fd);
	bench_run(&b);
	expect(&b, "0D4.3.0:", false);
	expect(&b, "cannot be read", false);
	cr_expect_null(
	    memmem(b.server.got.data, b.server.got.len, "\r\n.\r\n", 5));
	bench_close(&b);
	free(content);
}

Test(session, N5_refused_in_the_middle_of_the_message)
{
	size_t len = 16 << 20;
	char *content = malloc(len);
	struct bench b;

	memset(content, '\n', len);
	bench_open(&b, content, len);
	bench_serve(&b, NULL, enough);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(&b);
	/* Or its words were lost on the way, with the connection. */
	if (b.site_failed)
		expect(&b, "0D4.4.2:", true);
	else
		expect(
		    &b, "552 5.3.4 enough (in reply to an unfinished", false);
	bench_close(&b);
	free(content);
}

/* ---- N9: the second time without pipelining ---- */

/* clang-format off */
static const struct step confused[] = {
	{ "", "220 mx\r\n" },
	{ "EHLO me.example\r\n", "250-mx\r\n250 PIPELINING\r\n" },
	{ "DATA\r\n", "250 ok\r\n550 5.1.1 no\r\n250 ok\r\n250 ok\r\n354 go\r\n" },
	{ NULL, NULL },
};
static const struct step sane[] = {
	{ "", "220 mx\r\n" },
	{ "EHLO me.example\r\n", "250-mx\r\n250 PIPELINING\r\n" },
	{ "MAIL FROM:<s@y>\r\n", "250 ok\r\n" },
	{ "RCPT TO:<r0@x>\r\n", "250 ok\r\n" },
	{ "RCPT TO:<r1@x>\r\n", "250 ok\r\n" },
	{ "DATA\r\n", "354 go\r\n" },
	{ "\r\n.\r\n", "250 2.0.0 queued\r\n" },
	{ "QUIT\r\n", "221 bye\r\n" },
	{ NULL, NULL },
};
/* clang-format on */

Test(session, N9_again_without_pipelining)
{
	struct bench b;

	bench_open(&b, CONTENT, strlen(CONTENT));
	bench_serve(&b, NULL, confused);
	b.server.again = sane;
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 2);
	bench_run(&b);
	expect(&b, "0S2.0.0:", false);
	expect(&b, "1S2.0.0:", false);
	cr_expect_eq(b.server.connections, 2);
	/* Known from now on. */
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 2);
	bench_run(&b);
	expect(&b, "0S2.0.0:", false);
	cr_expect_eq(b.server.connections, 3);
	bench_close(&b);
}

Test(session, ended_in_the_middle)
{
	struct bench b;

	bench_open(&b, CONTENT, strlen(CONTENT));
	bench_serve(&b, NULL, silent);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 2);
	while (b.server.connections == 0 && !b.done)
		bench_turn(&b);
	session_abandon_all(&b.context, "4.3.2", "stop");
	bench_run(&b);
	expect(&b, "0D4.3.2:127.0.0.1[127.0.0.1]:", false);
	expect(&b, "1D4.3.2:127.0.0.1[127.0.0.1]:", false);
	bench_close(&b);
}
