/* The next host in the same delivery: after a refusal for now, and after a
 * connection that was lost before the end of the message was sent; never after
 * it. The first connection to two.test goes to 127.0.0.2, the next one to
 * 127.0.0.1. */
#include "tests/unit/deliver-smtp/bench.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "config/conf.h"
#include "deliver-smtp/session/log.h"

#define FIRST  "two.test[127.0.0.2]:"
#define SECOND "two.test[127.0.0.1]:"

/* clang-format off */
#define HELLO { "", "220 mx\r\n" }, { "\r\n", "250 mx\r\n" }
#define PIPELINING \
	{ "", "220 mx\r\n" }, \
	{ "\r\n", "250-mx\r\n250 PIPELINING\r\n" }
#define OK     { "\r\n", "250 ok\r\n" }
#define GO     { "DATA\r\n", "354 go\r\n" }
#define BYE    { "QUIT\r\n", "221 bye\r\n" }
#define END    { NULL, NULL }
#define SAY(s) { "\r\n", s }
static const struct step takes_one[] = { HELLO, OK, OK, GO,
	{ "\r\n.\r\n", "250 2.0.0 queued\r\n" }, BYE, END };
/* clang-format on */

static struct bench b;
static char names[BENCH_PATH];

static void
start(void)
{
	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
}

static void
set_up(void)
{
	bench_name_two(names);
	start();
}

static void
tear_down(void)
{
	bench_close(&b);
	unlink(names);
}

TestSuite(session_next, .init = set_up, .fini = tear_down, .timeout = 120);

static void
deliver(const struct step *first, const struct step *second, uint32_t nrcpts)
{
	bench_serve(&b, "*", first);
	b.server.again = second;
	bench_deliver(&b, AGENT_SMTP, "[two.test]:%u", nrcpts);
	bench_run(&b);
}

/* ---- what goes on, and what does not ---- */

/* mutation: deliver-smtp/session/next.c, session_on_report() that reports at
 * once. */
Test(session_next, N28_before_the_end_of_the_message_was_sent)
{
	static const struct {
		const char *name;
		struct step steps[10];
	} rows[] = {
		{ "MAIL", { HELLO, SAY("451 later\r\n"), BYE, END } },
		{ "MAIL closed", { HELLO, SAY(NULL), END } },
		{ "RCPT", { HELLO, OK, SAY("450 no\r\n"), BYE, END } },
		{ "RCPT, 421", { HELLO, OK, SAY("421 no\r\n"), END } },
		{ "RCPT closed", { HELLO, OK, SAY(NULL), END } },
		{ "DATA", { HELLO, OK, OK, SAY("451 later\r\n"), BYE, END } },
		{ "DATA closed", { HELLO, OK, OK, SAY(NULL), END } },
		{ "dot",
		    { HELLO, OK, OK, GO, { "\r\n.\r\n", "452 full\r\n" }, BYE,
			END } },
		{ "pipelined, MAIL closed",
		    { PIPELINING, { "DATA\r\n", NULL }, END } },
		{ "pipelined, RCPT",
		    { PIPELINING, { "DATA\r\n", "250 a\r\n450 b\r\n503 c\r\n" },
			BYE, END } },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		if (i > 0)
			start();
		deliver(rows[i].steps, takes_one, 1);
		bench_expect(&b, "0S2.0.0:" SECOND, false);
		cr_expect_eq(b.server.connections, 2, "%s", rows[i].name);
		if (i + 1 < ARRAY_LEN(rows))
			bench_close(&b);
	}
}

Test(session_next, N28_in_the_middle_of_the_message)
{
	static const struct step first[] = { HELLO, OK, OK, GO,
		{ "\n\r\n", NULL }, END };
	size_t len = 16 << 20;
	char *content = malloc(len);

	memset(content, '\n', len);
	bench_close(&b);
	bench_open(&b, content, len);
	deliver(first, takes_one, 1);
	bench_expect(&b, "0S2.0.0:" SECOND, false);
	cr_expect_eq(b.server.connections, 2);
	free(content);
}

Test(session_next, N28_silence_is_waited_for_once)
{
	static const struct step silent[] = { PIPELINING, END };

	b.context.settings.limits[DIALOG_MAIL] = 50 * USEC_PER_MSEC;
	deliver(silent, takes_one, 1);
	bench_expect(&b, "0S2.0.0:" SECOND, false);
	cr_expect_eq(b.server.connections, 2);
	cr_expect_null(strstr(buf_str(&b.server.got), "two"));
}

/* mutation: deliver-smtp/dialog/ends.c, settle_unknown() without final. */
Test(session_next, N28_never_after_the_end_of_the_message)
{
	static const struct {
		struct step steps[8];
		const char *want;
		enum agent_site end;
	} rows[] = {
		{ { HELLO, OK, OK, GO, { "\r\n.\r\n", NULL }, END },
		    "more than once", AGENT_SITE_DOUBTED },
		{ { HELLO, OK, OK, GO, { "\r\n.\r\n", "what\r\n" }, END },
		    "more than once", AGENT_SITE_DOUBTED },
		{ { HELLO, OK, OK, GO, { "\r\n.\r\n", "554 5.6.0 no\r\n" }, BYE,
		      END },
		    "0F5.6.0:" FIRST, AGENT_SITE_TALKED },
		{ { HELLO, OK, SAY("550 5.1.1 no\r\n"), BYE, END },
		    "0F5.1.1:" FIRST, AGENT_SITE_TALKED },
		{ { HELLO, SAY("550 5.7.1 no\r\n"), BYE, END },
		    "0F5.7.1:" FIRST, AGENT_SITE_TALKED },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		if (i > 0)
			start();
		deliver(rows[i].steps, takes_one, 1);
		bench_expect_end(&b, rows[i].want, rows[i].end);
		cr_expect_eq(b.server.connections, 1, "%zu", i);
		if (i + 1 < ARRAY_LEN(rows))
			bench_close(&b);
	}
}

/* ---- each recipient ---- */

Test(session_next, N28_each_recipient_for_itself)
{
	static const struct step first[] = { HELLO, OK, OK,
		SAY("450 4.2.1 no\r\n"), SAY("550 5.1.1 no\r\n"), GO,
		{ "\r\n.\r\n", "250 2.0.0 queued\r\n" }, BYE, END };

	deliver(first, takes_one, 3);
	bench_expect(&b, "0S2.0.0:" FIRST, false);
	bench_expect(&b, "1S2.0.0:" SECOND, false);
	bench_expect(&b, "2F5.1.1:" FIRST, false);
	cr_expect_not_null(strstr(buf_str(&b.server.got),
	    "QUIT\r\nEHLO me.example\r\nMAIL FROM:<s@y>\r\n"
	    "RCPT TO:<r1@x>\r\nDATA\r\n"));
}

Test(session_next, N28_the_last_host_that_spoke_of_it_counts)
{
	static const struct step first[] = { HELLO, OK,
		SAY("450 4.2.1 first\r\n"), SAY("450 4.2.1 first\r\n"), BYE,
		END };
	static const struct step second[] = { HELLO, OK,
		SAY("451 4.7.1 second\r\n"), SAY("550 5.1.1 second\r\n"), BYE,
		END };

	deliver(first, second, 2);
	bench_expect(&b, "0D4.7.1:" SECOND, false);
	bench_expect(&b, "1F5.1.1:" SECOND, false);
}

/* The second host says nothing about the recipient: what the first one has said
 * helps more. That one talks to us, so the site does not fail. */
Test(session_next, N28_a_second_host_that_is_of_no_use)
{
	static const struct step first[] = { HELLO, OK,
		SAY("450 4.7.1 grey\r\n"), BYE, END };
	static const struct step refuses[] = { { "", "421 busy\r\n" }, END };

	deliver(first, refuses, 1);
	bench_expect(&b, "0D4.7.1:" FIRST, false);
	cr_expect_eq(b.server.connections, 2);
}

/* Each host offers STARTTLS, refuses it, and defers MAIL in the clear.
 *
 * mutation: deliver-smtp/session/next.c, session_forget_tls() that leaves
 * fell_back. */
Test(session_next, N8_N28_each_host_may_be_spoken_to_in_the_clear)
{
	static const struct step steps[] = { { "", "220 mx\r\n" },
		{ "\r\n", "250-mx\r\n250 STARTTLS\r\n" },
		SAY("454 4.7.0 not now\r\n"), BYE, END };
	char *got;

	deliver(steps, steps, 1);
	bench_expect(&b, "0D4.7.0:" SECOND, false);
	cr_expect_eq(b.server.connections, 4);
	got = strstr(buf_str(&b.server.got), "MAIL FROM:<s@y>\r\n");
	cr_assert_not_null(got);
	cr_expect_not_null(strstr(got + 1, "MAIL FROM:<s@y>\r\n"));
}

/* A fallback is for destinations of which no host gets as far as MAIL. */
Test(session_next, N39_none_where_a_host_has_said_something)
{
	static const struct step first[] = { HELLO, OK,
		SAY("450 4.7.1 grey\r\n"), BYE, END };
	static const struct step refuses[] = { { "", "421 busy\r\n" }, END };
	struct settings *settings = &b.context.settings;

	bench_serve(&b, "*", first);
	b.server.again = refuses;
	snprintf(settings->fallback, sizeof(settings->fallback),
	    "[127.0.0.3]:%u", b.server.port);
	bench_deliver(&b, AGENT_SMTP, "[two.test]:%u", 1);
	bench_run(&b);
	bench_expect(&b, "0D4.7.1:" FIRST, false);
	cr_expect_eq(b.server.connections, 2);
}

/* The limit of what comes before MAIL has ended while the first host was past
 * MAIL. What that one said of the recipient stands. */
Test(session_next, N38_the_next_host_has_a_limit_too)
{
	static const struct step first[] = { HELLO, { "\r\n", "" }, END };
	static const struct step silent[] = { END };

	b.context.settings.before_limit = 200 * USEC_PER_MSEC;
	b.context.settings.limits[DIALOG_MAIL] = 400 * USEC_PER_MSEC;
	deliver(first, silent, 1);
	bench_expect(&b, "0D4.4.2:" FIRST, true);
	cr_expect_eq(b.server.connections, 2);
	cr_expect_not_null(
	    strstr(buf_str(&b.site), "within smtp_before_mail_timeout"));
}

Test(session_next, N28_a_second_host_that_cannot_be_connected_to)
{
	static const struct step first[] = { HELLO, OK,
		SAY("450 4.7.1 grey\r\n"), BYE, END };

	bench_serve(&b, "*", first);
	bench_deliver(&b, AGENT_SMTP, "[two.test]:%u", 1);
	while (b.server.connections == 0 && !b.done)
		bench_turn(&b);
	event_del(b.server.event);
	io_close(&b.server.sock);
	bench_run(&b);
	bench_expect(&b, "0D4.7.1:" FIRST, false);
}

Test(session_next, N28_lmtp_too)
{
	static const struct step first[] = { HELLO, OK, OK, OK, GO,
		{ "\r\n.\r\n", "250 2.0.0 a\r\n452 4.3.1 b\r\n" }, BYE, END };

	bench_serve(&b, "*", first);
	b.server.again = takes_one;
	bench_deliver(&b, AGENT_LMTP, "[two.test]:%u", 2);
	bench_run(&b);
	bench_expect(&b, "0S2.0.0:" FIRST, false);
	bench_expect(&b, "1S2.0.0:" SECOND, false);
}

/* ---- bounds ---- */

Test(session_next, N28_so_many_sessions)
{
	static const struct step first[] = { HELLO, OK,
		SAY("450 4.7.1 grey\r\n"), BYE, END };
	static const struct step late[] = { { "", "421 busy\r\n" }, END };

	b.context.settings.session_limit = 1;
	deliver(first, takes_one, 1);
	bench_expect(&b, "0D4.7.1:" FIRST, false);
	cr_expect_eq(b.server.connections, 1);
	bench_close(&b);
	/* One that does not get past the handshake does not count. */
	start();
	b.context.settings.session_limit = 1;
	deliver(late, takes_one, 1);
	bench_expect(&b, "0S2.0.0:" SECOND, false);
}

Test(session_next, N28_no_limit)
{
	static const struct step first[] = { HELLO, OK,
		SAY("450 4.7.1 grey\r\n"), BYE, END };

	b.context.settings.session_limit = 0;
	deliver(first, first, 1);
	bench_expect(&b, "0D4.7.1:" SECOND, false);
	cr_expect_eq(b.server.connections, 2);
}

/* ---- the log ---- */

Test(session_next, N28_the_line_says_what_follows)
{
	static const char want[] =
	    ": ID: relay=h, nrcpt=2, dsn=4.7.1 (busy; the next host is tried)"
	    "\n";
	char got[256];
	int fd[2];
	ssize_t n;

	cr_assert_eq(pipe(fd), 0);
	cr_assert_geq(dup2(fd[1], STDERR_FILENO), 0);
	log_next_host("ID", "h", 2, "4.7.1", "busy");
	n = read(fd[0], got, sizeof(got) - 1);
	cr_assert_gt(n, 0);
	got[n] = '\0';
	cr_expect_not_null(strstr(got, want), "%s", got);
}

/* ---- a connection that was kept ---- */

/* Of a kept connection the server may have had enough. */
Test(session_next, N28_N32_deferred_over_a_kept_connection)
{
	static const struct step first[] = { HELLO, OK, OK, GO,
		{ "\r\n.\r\n", "250 2.0.0 queued\r\n" }, OK,
		SAY("450 4.7.1 enough\r\n"), { "RSET\r\n", "250 ok\r\n" },
		END };

	bench_serve(&b, NULL, first);
	b.server.again = takes_one;
	b.reuse = true;
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(&b);
	cr_assert(b.kept);
	b.connection = b.number++;
	b.context.settings.reuse_count = 2;
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(&b);
	bench_expect(&b, "0S2.0.0:", false);
	cr_expect_eq(b.server.connections, 2);
}

/* ---- pipelining ---- */

/* mutation: deliver-smtp/dialog/ends.c, lose() that asks for lock-step. */
Test(session_next, N29_an_end_does_not_turn_pipelining_off)
{
	static const struct step closed[] = { PIPELINING,
		{ "DATA\r\n", "250 ok\r\n" }, { "", NULL }, END };

	bench_serve(&b, NULL, closed);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(&b);
	bench_expect_end(&b, "0D4.4.2:", AGENT_SITE_DOUBTED);
	cr_expect_eq(b.server.connections, 1);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(&b);
	cr_expect_str_eq(buf_str(&b.server.got),
	    "EHLO me.example\r\nMAIL FROM:<s@y>\r\nRCPT TO:<r0@x>\r\nDATA\r\n"
	    "EHLO me.example\r\nMAIL FROM:<s@y>\r\nRCPT TO:<r0@x>\r\n"
	    "DATA\r\n");
}

Test(session_next, N29_silence_does_not_either)
{
	static const struct step silent[] = { PIPELINING,
		{ "DATA\r\n", "250 ok\r\n" }, END };

	b.context.settings.limits[DIALOG_RCPT] = 50 * USEC_PER_MSEC;
	bench_serve(&b, NULL, silent);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 1);
	bench_run(&b);
	bench_expect_end(
	    &b, "timed out while sending RCPT TO", AGENT_SITE_DOUBTED);
	cr_expect_eq(b.server.connections, 1);
	cr_expect_eq(
	    peers_find(&b.context.lockstep, "127.0.0.1[127.0.0.1]", 0), 0);
}

/* ---- recipients of a transaction ---- */

/* mutation: deliver-smtp/session/next.c, learn() without batches. */
Test(session_next, N32_the_number_is_known_from_now_on)
{
	static const struct step learns[] = { PIPELINING,
		{ "DATA\r\n",
		    "250 m\r\n250 a\r\n452 4.5.3 b\r\n452 4.5.3 c\r\n"
		    "354 go\r\n" },
		{ "\r\n.\r\n", "250 2.0.0 queued\r\n" },
		{ "DATA\r\n", "250 m\r\n250 b\r\n354 go\r\n" },
		{ "\r\n.\r\n", "250 2.0.0 queued\r\n" },
		{ "DATA\r\n", "250 m\r\n250 c\r\n354 go\r\n" },
		{ "\r\n.\r\n", "250 2.0.0 queued\r\n" }, BYE, END };
	static const struct step knows[] = { PIPELINING,
		{ "DATA\r\n", "250 m\r\n250 a\r\n354 go\r\n" },
		{ "\r\n.\r\n", "250 2.0.0 queued\r\n" },
		{ "DATA\r\n", "250 m\r\n250 b\r\n354 go\r\n" },
		{ "\r\n.\r\n", "250 2.0.0 queued\r\n" }, BYE, END };
	uint32_t i;
	char want[16];

	bench_serve(&b, NULL, learns);
	b.server.again = knows;
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 3);
	bench_run(&b);
	for (i = 0; i < 3; i++) {
		snprintf(want, sizeof(want), "%uS2.0.0:", i);
		bench_expect(&b, want, false);
	}
	buf_reset(&b.server.got);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 2);
	bench_run(&b);
	bench_expect(&b, "1S2.0.0:", false);
	cr_expect_not_null(strstr(buf_str(&b.server.got),
	    "MAIL FROM:<s@y>\r\nRCPT TO:<r0@x>\r\nDATA\r\n"));
	cr_expect_eq(b.server.connections, 2);
}

/* A server that takes one transaction of each connection. */
Test(session_next, N32_the_rest_over_another_connection)
{
	static const struct step first[] = { HELLO, OK, OK,
		SAY("452 4.5.3 enough\r\n"), GO,
		{ "\r\n.\r\n", "250 2.0.0 queued\r\n" },
		SAY("554 5.7.0 one message for each connection\r\n"), END };

	bench_serve(&b, NULL, first);
	b.server.again = takes_one;
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 2);
	bench_run(&b);
	bench_expect(&b, "0S2.0.0:", false);
	bench_expect(&b, "1S2.0.0:", false);
	cr_expect_eq(b.server.connections, 2);
	bench_close(&b);
	/* But not more connections than may be. */
	start();
	b.context.settings.session_limit = 1;
	bench_serve(&b, NULL, first);
	bench_deliver(&b, AGENT_SMTP, "127.0.0.1:%u", 2);
	bench_run(&b);
	bench_expect(&b, "0S2.0.0:", false);
	bench_expect(&b, "1D4.7.0:", false);
	cr_expect_eq(b.server.connections, 1);
}

/* Hosts that defer one recipient and do not want to hear of the other: the same
 * host would say so for ever. mutation: deliver-smtp/session/next.c,
 * wants_again() that does not count. */
Test(session_next, N32_another_connection_only_behind_a_result)
{
	static const struct step steps[] = { HELLO, OK,
		SAY("450 4.7.1 grey\r\n"), OK /* RSET, or QUIT */,
		SAY("451 4.7.0 one message\r\n"), END };
	static const char *const hosts[] = { FIRST, SECOND };
	char relay[NEXTHOP_PEER_MAX];
	size_t i;

	b.context.settings.session_limit = 0;
	bench_serve(&b, "*", steps);
	for (i = 0; i < ARRAY_LEN(hosts); i++) {
		snprintf(relay, sizeof(relay), "%s%u", hosts[i], b.server.port);
		peers_add(&b.context.batches, relay, 1, clock_mono());
	}
	bench_deliver(&b, AGENT_SMTP, "[two.test]:%u", 2);
	bench_run(&b);
	bench_expect(&b, "0D4.7.1:" SECOND, false);
	bench_expect(&b, "1D4.7.1:" SECOND, false);
	/* One to the first host; two to the second, where the first one ends
	 * with a result. */
	cr_expect_eq(b.server.connections, 3);
}
