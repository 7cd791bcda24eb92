#include "tests/unit/deliver-smtp/bench.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/conf.h"

#define SHORT (50 * USEC_PER_MSEC)

/* clang-format off */
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

static void
run(struct bench *b, const struct step *steps)
{
	bench_open(b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	bench_serve(b, NULL, steps);
	bench_deliver(b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(b);
}

Test(session, one_message)
{
	struct bench b;
	char want[64];

	run(&b, bench_plain);
	snprintf(want, sizeof(want),
	    "0S2.0.0:127.0.0.1[127.0.0.1]:%u:250 2.0.0 queued\n",
	    b.server.port);
	bench_expect(&b, want, false);
	cr_expect_str_eq(buf_str(&b.site), " ");
	cr_expect_str_eq(buf_str(&b.server.got),
	    "EHLO me.example\r\nMAIL FROM:<s@y>\r\nRCPT TO:<r0@x>\r\n"
	    "DATA\r\n" BENCH_WIRE "QUIT\r\n");
	bench_close(&b);
}

/* mutation: deliver-smtp/session/session.c, talk() without delivery->content.
 */
Test(session, X14_the_content_in_the_frame_is_what_is_sent)
{
	struct bench b;

	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	b.whole = true;
	bench_serve(&b, NULL, bench_plain);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(&b);
	bench_expect(&b, "0S2.0.0:", false);
	cr_expect_str_eq(buf_str(&b.server.got),
	    "EHLO me.example\r\nMAIL FROM:<s@y>\r\nRCPT TO:<r0@x>\r\n"
	    "DATA\r\n" BENCH_WIRE "QUIT\r\n");
	bench_close(&b);
}

Test(session, N10_pipelined)
{
	struct bench b;

	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	bench_serve(&b, NULL, pipelined);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 2);
	bench_run(&b);
	bench_expect(&b, "0S2.0.0:", false);
	bench_expect(&b, "1F5.1.1:", false);
	bench_close(&b);
}

Test(session, N11_lmtp_over_a_local_socket)
{
	char dir[BENCH_PATH], path[96], hop[112];
	struct bench b;

	bench_template(dir);
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/Lmtp", dir);
	snprintf(hop, sizeof(hop), "unix:%s", path);
	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	bench_serve(&b, path, lmtp);
	bench_deliver(&b, AGENT_LMTP, hop, 2);
	bench_run(&b);
	bench_expect(&b, "0S2.0.0:localhost[/", false);
	bench_expect(&b, "1D4.2.2:", false);
	bench_close(&b);
	unlink(path);
	/* Nobody listens any more. */
	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	bench_deliver(&b, AGENT_LMTP, hop, 1);
	bench_run(&b);
	bench_expect(&b, "0D4.4.1:none:connect to localhost[", true);
	bench_expect(&b, "No such file or directory", true);
	bench_close(&b);
	rmdir(dir);
}

Test(session, next_hops_that_are_none)
{
	static const char *const hops[] = { "", "mx:0", "unix:/run/lmtp",
		"a b" };
	struct bench b;
	size_t i;

	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	for (i = 0; i < ARRAY_LEN(hops); i++) {
		bench_deliver(&b, AGENT_SMTP, hops[i], 2);
		bench_run(&b);
		bench_expect(
		    &b, "0D4.3.5:none:not a next hop for smtp: ", true);
		bench_expect(&b, "1D4.3.5:none:", true);
	}
	bench_close(&b);
}

/* ---- names ---- */

/* A root that debootstrap has just made has no such file. */
static void
need_localhost(void)
{
	FILE *f = fopen("/etc/hosts", "re");
	char line[1024];
	bool found = false;

	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL)
		found = line[0] != '#' && strstr(line, "localhost") != NULL;
	if (f != NULL)
		fclose(f);
	if (!found)
		cr_skip_test("/etc/hosts has no localhost");
}

Test(session, a_name_of_etc_hosts)
{
	struct bench b;

	need_localhost();
	/* Whatever its addresses are: of ::1 nobody listens. */
	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	bench_serve(&b, NULL, bench_plain);
	bench_deliver(&b, AGENT_SMTP, "[localhost]:%u", 1);
	bench_run(&b);
	bench_expect(&b, "0S2.0.0:localhost[127.0.0.1]:", false);
	bench_close(&b);
}

Test(session, N1_the_next_address_after_one_that_refuses)
{
	struct bench b;
	char path[BENCH_PATH];

	bench_name_two(path);
	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	bench_serve(&b, NULL, bench_plain);
	bench_deliver(&b, AGENT_SMTP, "[two.test]:%u", 1);
	bench_run(&b);
	bench_expect(&b, "0S2.0.0:two.test[127.0.0.1]:", false);
	bench_close(&b);
	unlink(path);
}

/* clang-format off */
static const struct step busy[] = {
	{ "", "421 busy\r\n" }, { NULL, NULL } };
static const struct step no_ehlo[] = {
	{ "", "220 mx\r\n" }, { "\r\n", "451 later\r\n" }, { NULL, NULL } };
static const struct step gone[] = { { "", NULL }, { NULL, NULL } };
static const struct step not_now[] = {
	{ "", "220 mx\r\n" }, { "\r\n", "250 mx\r\n" },
	{ "\r\n", "451 later\r\n" }, { "QUIT\r\n", "221 bye\r\n" },
	{ NULL, NULL } };
/* clang-format on */

Test(session, N1_N28_the_next_address)
{
	static const struct {
		const struct step *first;
		const char *want;
	} rows[] = {
		{ busy, "0S2.0.0:two.test[127.0.0.1]:" },
		{ no_ehlo, "0S2.0.0:two.test[127.0.0.1]:" },
		{ gone, "0S2.0.0:two.test[127.0.0.1]:" },
		{ not_now, "0S2.0.0:two.test[127.0.0.1]:" },
	};
	struct bench b;
	char path[BENCH_PATH];
	size_t i;

	bench_name_two(path);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
		bench_serve(&b, "*", rows[i].first);
		b.server.again = bench_plain;
		bench_deliver(&b, AGENT_SMTP, "[two.test]:%u", 1);
		bench_run(&b);
		bench_expect(&b, rows[i].want, false);
		bench_close(&b);
	}
	unlink(path);
}

Test(session, ended_while_a_name_is_looked_up)
{
	struct bench b;

	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
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

	need_localhost();
	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	bench_serve(&b, NULL, bench_plain);
	cr_assert_eq(lookups_reload(&b.context.lookups), 0);
	bench_turn(&b);
	bench_deliver(&b, AGENT_SMTP, "[localhost]:%u", 1);
	bench_run(&b);
	bench_expect(&b, "0S2.0.0:", false);
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
	bench_serve(&b, NULL, bench_plain);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(&b);
	bench_expect(&b, "0S2.0.0:", false);
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
	bench_serve(&b, NULL, bench_plain);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	while (TAILQ_EMPTY(&b.context.running) && !b.done)
		bench_turn(&b);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", b.fd);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, 70000), 0);
	close(fd);
	bench_run(&b);
	bench_expect(&b, "0D4.3.0:", false);
	bench_expect(&b, "cannot be read", false);
	cr_expect_null(
	    memmem(b.server.got.data, b.server.got.len, "\r\n.\r\n", 5));
	bench_close(&b);
	free(content);
}

/* clang-format off */
static const struct step enough[] = {
	{ "", "220 mx\r\n" }, { "\r\n", "250 mx\r\n" },
	{ "\r\n", "250 ok\r\n" }, { "\r\n", "250 ok\r\n" }, { "DATA\r\n", "354 go\r\n" },
	{ "\r\n", "552 5.3.4 enough\r\n" }, { "", NULL } };
/* clang-format on */

/* On a local socket what was said before the end is always there to be read;
 * of TCP the end may overtake it. */
Test(session, N5_refused_in_the_middle_of_the_message)
{
	char dir[BENCH_PATH], path[96], hop[112];
	size_t len = 16 << 20;
	char *content = malloc(len);
	struct bench b;

	memset(content, '\n', len);
	bench_template(dir);
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/lmtp", dir);
	snprintf(hop, sizeof(hop), "unix:%s", path);
	bench_open(&b, content, len);
	bench_serve(&b, path, enough);
	bench_deliver(&b, AGENT_LMTP, hop, 1);
	bench_run(&b);
	bench_expect(&b, "0F5.3.4:", false);
	bench_expect(
	    &b, "552 5.3.4 enough (in reply to an unfinished message", false);
	bench_close(&b);
	unlink(path);
	rmdir(dir);
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

	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	bench_serve(&b, NULL, confused);
	b.server.again = sane;
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 2);
	bench_run(&b);
	bench_expect(&b, "0S2.0.0:", false);
	bench_expect(&b, "1S2.0.0:", false);
	cr_expect_eq(b.server.connections, 2);
	/* Known from now on. */
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 2);
	bench_run(&b);
	bench_expect(&b, "0S2.0.0:", false);
	cr_expect_eq(b.server.connections, 3);
	bench_close(&b);
}

/* The delivery waits for its greeting, or for what comes before. */
Test(session, N46_gives_up_its_slot)
{
	struct bench b;
	struct msg msg = { .type = MSG_CANCEL };

	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	bench_serve(&b, NULL, silent);
	msg.u.CANCEL = (struct msg_CANCEL){ b.number, AGENT_NOT_GREETED };
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	while (b.server.connections == 0 && !b.done)
		bench_turn(&b);
	cr_assert_eq(chan_send(b.link, &msg, -1), 0);
	bench_run(&b);
	bench_expect(&b,
	    ":no server has greeted within smtp_ungreeted_time, and other mail "
	    "waits for the slot\n",
	    true);
	bench_close(&b);
}

Test(session, ended_in_the_middle)
{
	struct bench b;

	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	bench_serve(&b, NULL, silent);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 2);
	while (b.server.connections == 0 && !b.done)
		bench_turn(&b);
	session_abandon_all(&b.context, "4.3.2", "stop");
	bench_run(&b);
	bench_expect(&b, "0D4.3.2:127.0.0.1[127.0.0.1]:", false);
	bench_expect(&b, "1D4.3.2:127.0.0.1[127.0.0.1]:", false);
	cr_expect_str_eq(
	    buf_str(&b.site), "4.3.2 stop", "%s", buf_str(&b.site));
	bench_close(&b);
}
