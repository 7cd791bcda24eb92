/* Servers that answer before they read, over connections that may be kept. */
#include "tests/unit/deliver-smtp/bench.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/io.h"

static struct bench b;

TestSuite(eager, .timeout = 120);

#define LONG_LINES 1500
#define LONG_LINE  "0123456789012345678901234567890123456789012345678901234\n"

/* Everything that can happen now happens. */
static void
settle(void)
{
	int i;

	for (i = 0; i < 50; i++)
		bench_turn(&b);
}

static void
read_until(int sock, const char *want)
{
	struct buf got = { 0 };
	char c;

	while (got.len < strlen(want) ||
	    memcmp(got.data + got.len - strlen(want), want, strlen(want)) != 0)
		if (recv(sock, &c, 1, MSG_DONTWAIT) == 1)
			buf_add_char(&got, c);
		else
			bench_turn(&b);
	buf_done(&got);
}

static void
say(int sock, const char *what)
{
	cr_assert_eq(io_write_all(sock, what, strlen(what)), 0);
	settle();
}

static int
listen_there(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	cr_assert_eq(bind(sock, (struct sockaddr *)&un, sizeof(un)), 0);
	cr_assert_eq(listen(sock, 1), 0);
	return sock;
}

/* mutation: deliver-smtp/connection/talk.c, on_written() without `gone`. */
Test(eager, N7_room_in_the_socket_says_nothing_of_a_kept_connection)
{
	static const char *const octets[] = { "2", "5", "0", " ", "o", "k" };
	static char content[LONG_LINES * sizeof(LONG_LINE)];
	char dir[BENCH_PATH], path[BENCH_PATH + 2], hop[BENCH_PATH + 8];
	int sock, client;
	size_t i;

	for (i = 0; i < LONG_LINES; i++)
		memcpy(content + i * strlen(LONG_LINE), LONG_LINE,
		    sizeof(LONG_LINE));
	bench_open(&b, content, strlen(content));
	b.reuse = true;
	bench_template(dir);
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	snprintf(hop, sizeof(hop), "unix:%s", path);
	sock = listen_there(path);
	bench_deliver(&b, AGENT_LMTP, hop, 1);
	while ((client = accept(sock, NULL, NULL)) < 0)
		bench_turn(&b);
	say(client, "220 mx\r\n");
	read_until(client, "LHLO me.example\r\n");
	say(client, "250 mx\r\n");
	read_until(client, "MAIL FROM:<s@y>\r\n");
	say(client, "250 ok\r\n");
	read_until(client, "RCPT TO:<r0@x>\r\n");
	say(client, "250 ok\r\n");
	read_until(client, "DATA\r\n");
	say(client, "354 go\r\n");
	for (i = 0; i < ARRAY_LEN(octets); i++)
		say(client, octets[i]);
	say(client, "\r\n");
	cr_assert(b.kept, "%s", buf_str(&b.results));
	b.done = false;
	read_until(client, "\r\n.\r\n");
	settle();
	cr_expect_not(b.done, "the delivery had ended before");
	close(client);
	while (b.closed != b.number)
		bench_turn(&b);
	close(sock);
	unlink(path);
	rmdir(dir);
	bench_close(&b);
}

struct finish {
	bool ended, open;
};

static void
on_report(void *arg UNUSED, uint32_t place UNUSED, const struct verdict *v)
{
	cr_expect_eq(v->outcome, AGENT_FAILED);
}

static void
on_ended(void *arg, struct dialog_end *end)
{
	struct finish *f = arg;

	f->ended = true;
	f->open = end->open;
}

#define MANY 2000

static void
say_many(int sock, const char *what)
{
	struct buf text = { 0 };
	int i;

	for (i = 0; i < MANY + 1; i++)
		buf_add_str(&text, "250 ok\r\n");
	buf_add_str(&text, what);
	say(sock, buf_str(&text));
	buf_done(&text);
}

/* mutation: deliver-smtp/connection/talk.c, proceed() that leaves end.open. */
Test(eager, N7_a_reply_to_commands_that_were_not_sent_keeps_nothing)
{
	static const struct talk_ops ops = { .report = on_report,
		.ended = on_ended };
	static struct agent_rcpt rcpts[MANY];
	static char address[] = "r@x";
	struct talk_task task = { .dialog = { .keep = true,
				      .helo = "me",
				      .sender = "s@y",
				      .peer = "mx",
				      .rcpts = rcpts,
				      .nrcpts = MANY },
		.content = { "", -1, 0, 0 } };
	struct finish f = { 0 };
	struct talk *t = NULL;
	int pair[2], least = 1, i;

	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	task.limits = b.context.settings.limits;
	for (i = 0; i < MANY; i++)
		rcpts[i].address = address;
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
	cr_assert_eq(talk_start(b.base, pair[0], &task, &ops, &f, &t), 0);
	say(pair[1], "220 mx\r\n");
	read_until(pair[1], "EHLO me\r\n");
	say(pair[1], "250-mx\r\n250 PIPELINING\r\n");
	say_many(pair[1], "554 no\r\n");
	cr_assert_not(f.ended, "RSET waits behind the commands");
	say(pair[1], "250 ok\r\n");
	cr_expect(f.ended);
	cr_expect_not(f.open);
	talk_free(&t);
	close(pair[1]);
	bench_close(&b);
}
