/* Connections that are used for more than one delivery (N14). */
#include "tests/unit/deliver-smtp/bench.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "config/conf.h"

/* clang-format off */
#define HELLO \
	{ "", "220 mx\r\n" }, { "EHLO me.example\r\n", "250 mx\r\n" }
#define PIPELINING \
	{ "", "220 mx\r\n" }, \
	{ "EHLO me.example\r\n", "250-mx\r\n250 PIPELINING\r\n" }
#define MESSAGE \
	{ "MAIL FROM:<s@y>\r\n", "250 ok\r\n" }, \
	{ "RCPT TO:<r0@x>\r\n", "250 ok\r\n" }, \
	{ "DATA\r\n", "354 go\r\n" }, \
	{ "\r\n.\r\n", "250 2.0.0 queued\r\n" }
#define END { NULL, NULL }

static const struct step three[] = { HELLO, MESSAGE, MESSAGE, MESSAGE, END };
static const struct step one[] = { HELLO, MESSAGE, END };
static const struct step one_and_quit[] = {
	HELLO, MESSAGE, { "QUIT\r\n", "221 bye\r\n" }, END };
/* clang-format on */

#define DIALOGUE                                        \
	"MAIL FROM:<s@y>\r\nRCPT TO:<r0@x>\r\nDATA\r\n" \
	"Subject: x\r\n\r\n..dot\r\nend\r\n.\r\n"

static struct bench b;

static void
start(void)
{
	bench_open(&b, BENCH_CONTENT, strlen(BENCH_CONTENT));
	b.reuse = true;
}

static void
end(void)
{
	bench_close(&b);
}

TestSuite(reuse, .init = start, .fini = end, .timeout = 120);

/* One more delivery, over the connection that the last one has kept. */
static void
deliver(const char *hop, uint32_t nrcpts)
{
	b.connection = b.kept ? b.number : 0;
	b.number++;
	bench_deliver(&b, AGENT_SMTP, hop, nrcpts);
	bench_run(&b);
}

static void
wait_until_closed(uint64_t connection)
{
	while (b.closed != connection)
		bench_turn(&b);
	cr_expect(TAILQ_EMPTY(&b.context.kept));
}

Test(reuse, three_messages_over_one_connection)
{
	int i;

	bench_serve(&b, NULL, three);
	for (i = 0; i < 3; i++) {
		deliver("127.0.0.1:%u", 1);
		bench_expect(&b, "0S2.0.0:127.0.0.1[127.0.0.1]:", false);
		cr_expect(b.kept);
	}
	cr_expect_eq(b.server.connections, 1);
	cr_expect_str_eq(buf_str(&b.server.got),
	    "EHLO me.example\r\n" DIALOGUE DIALOGUE DIALOGUE);
	cr_expect_eq(b.closed, 0, "no CLOSED for one that was used again");
}

Test(reuse, not_unless_queue_send_says_so)
{
	bench_serve(&b, NULL, one_and_quit);
	b.reuse = false;
	deliver("127.0.0.1:%u", 1);
	cr_expect_not(b.kept);
	cr_expect(TAILQ_EMPTY(&b.context.kept));
}

/* ---- limits ---- */

static void
no_idle(struct settings *s)
{
	s->idle_limit = 0;
}

static void
too_old(struct settings *s)
{
	s->reuse_limit = 0;
}

static void
one_only(struct settings *s)
{
	s->reuse_count = 1;
}

Test(reuse, limits_end_it)
{
	static void (*const sets[])(
	    struct settings *) = { no_idle, too_old, one_only };
	size_t i;

	for (i = 0; i < ARRAY_LEN(sets); i++) {
		if (i > 0)
			start();
		sets[i](&b.context.settings);
		bench_serve(&b, NULL, one_and_quit);
		deliver("127.0.0.1:%u", 1);
		bench_expect(&b, "0S2.0.0:", false);
		cr_expect_not(b.kept, "%zu", i);
		if (i + 1 < ARRAY_LEN(sets))
			end();
	}
}

Test(reuse, the_second_of_two_is_the_last)
{
	static const struct step steps[] = { HELLO, MESSAGE, MESSAGE,
		{ "QUIT\r\n", "221 bye\r\n" }, END };

	b.context.settings.reuse_count = 2;
	bench_serve(&b, NULL, steps);
	deliver("127.0.0.1:%u", 1);
	cr_expect(b.kept);
	deliver("127.0.0.1:%u", 1);
	cr_expect_not(b.kept);
	cr_expect_eq(b.server.connections, 1);
}

Test(reuse, a_connection_without_mail_is_closed_after_its_time)
{
	b.context.settings.idle_limit = 50 * USEC_PER_MSEC;
	bench_serve(&b, NULL, one);
	deliver("127.0.0.1:%u", 1);
	cr_expect(b.kept);
	wait_until_closed(b.number);
}

Test(reuse, queue_send_closes_it)
{
	struct msg msg = { .type = MSG_CLOSE };

	bench_serve(&b, NULL, one);
	deliver("127.0.0.1:%u", 1);
	msg.u.CLOSE.connection = b.number + 1; /* unknown: no matter */
	cr_assert_eq(chan_send(b.link, &msg, -1), 0);
	msg.u.CLOSE.connection = b.number;
	cr_assert_eq(chan_send(b.link, &msg, -1), 0);
	wait_until_closed(b.number);
	while (strstr(buf_str(&b.server.got), "QUIT\r\n") == NULL)
		bench_turn(&b);
}

Test(reuse, a_stop_keeps_nothing)
{
	bench_serve(&b, NULL, one_and_quit);
	b.context.stopping = true;
	deliver("127.0.0.1:%u", 1);
	cr_expect_not(b.kept);
}

/* ---- the far end ---- */

Test(reuse, N14_closed_while_nothing_was_sent)
{
	static const struct step steps[] = { HELLO, MESSAGE, { "", NULL },
		END };

	bench_serve(&b, NULL, steps);
	b.server.again = one;
	deliver("127.0.0.1:%u", 1);
	cr_expect(b.kept);
	wait_until_closed(b.number);
	deliver("127.0.0.1:%u", 1); /* names the connection that is gone */
	bench_expect(&b, "0S2.0.0:", false);
	cr_expect_eq(b.server.connections, 2);
}

/* mutation: deliver-smtp/dialog/dialog.c, give_up() without `unanswered`. */
Test(reuse, N14_of_no_use_any_more_is_no_failure)
{
	static const struct {
		const char *name, *says;
	} rows[] = {
		{ "closed", NULL },
		{ "421", "421 4.4.2 idle for too long\r\n" },
		{ "the end of its patience",
		    "451 timeout\r\n503 x\r\n503 x\r\n" },
		{ "too many", "550 5.7.0 no more\r\n503 x\r\n503 x\r\n" },
		{ "no reply", "hello?\r\n" },
		{ "the wrong kind", "354 go\r\n" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct step steps[] = { PIPELINING,
			{ "DATA\r\n", "250 ok\r\n250 ok\r\n354 go\r\n" },
			{ "\r\n.\r\n", "250 2.0.0 queued\r\n" },
			{ "DATA\r\n", rows[i].says }, END };

		if (i > 0)
			start();
		bench_serve(&b, NULL, steps);
		b.server.again = one;
		deliver("127.0.0.1:%u", 1);
		cr_assert(b.kept);
		deliver("127.0.0.1:%u", 1);
		bench_expect(&b, "0S2.0.0:", false);
		cr_expect(b.kept, "%s", rows[i].name);
		cr_expect_eq(b.server.connections, 2, "%s", rows[i].name);
		cr_expect_not(peers_find(&b.context.lockstep, "", 0));
		if (i + 1 < ARRAY_LEN(rows))
			end();
	}
}

Test(reuse, N14_the_second_connection_that_fails_is_a_failure)
{
	static const struct step steps[] = { HELLO, MESSAGE,
		{ "MAIL FROM:<s@y>\r\n", NULL }, END };
	static const struct step refuses[] = { { "", "421 no\r\n" }, END };

	bench_serve(&b, NULL, steps);
	b.server.again = refuses;
	deliver("127.0.0.1:%u", 1);
	deliver("127.0.0.1:%u", 1);
	bench_expect(&b, "421 no", true);
	cr_expect_eq(b.server.connections, 2);
}

Test(reuse, N7_octets_that_were_not_asked_for_end_it)
{
	static const struct step steps[] = { HELLO,
		{ "MAIL FROM:<s@y>\r\n", "250 ok\r\n" },
		{ "RCPT TO:<r0@x>\r\n", "250 ok\r\n" },
		{ "DATA\r\n", "354 go\r\n" },
		{ "\r\n.\r\n", "250 2.0.0 queued\r\n250 2.0.0 and more\r\n" },
		END };

	bench_serve(&b, NULL, steps);
	b.server.again = one;
	deliver("127.0.0.1:%u", 1);
	bench_expect(&b, "0S2.0.0:", false);
	if (b.kept) /* the rest came later */
		wait_until_closed(b.number);
	deliver("127.0.0.1:%u", 1);
	bench_expect(&b, "0S2.0.0:", false);
	cr_expect_eq(b.server.connections, 2);
}

/* ---- what ends a transaction without a message ---- */

Test(reuse, RSET_before_the_next_message)
{
	static const struct {
		const char *name;
		struct step steps[12];
		const char *want;
	} rows[] = {
		{ "MAIL",
		    { HELLO, { "MAIL FROM:<s@y>\r\n", "450 no\r\n" },
			{ "RSET\r\n", "250 ok\r\n" }, MESSAGE, END },
		    "0D" },
		{ "RCPT",
		    { HELLO, { "MAIL FROM:<s@y>\r\n", "250 ok\r\n" },
			{ "RCPT TO:<r0@x>\r\n", "550 no\r\n" },
			{ "RSET\r\n", "250 ok\r\n" }, MESSAGE, END },
		    "0F" },
		{ "DATA",
		    { HELLO, { "MAIL FROM:<s@y>\r\n", "250 ok\r\n" },
			{ "RCPT TO:<r0@x>\r\n", "250 ok\r\n" },
			{ "DATA\r\n", "451 no\r\n" },
			{ "RSET\r\n", "250 ok\r\n" }, MESSAGE, END },
		    "0D" },
		{ "the message",
		    { HELLO, { "MAIL FROM:<s@y>\r\n", "250 ok\r\n" },
			{ "RCPT TO:<r0@x>\r\n", "250 ok\r\n" },
			{ "DATA\r\n", "354 go\r\n" },
			{ "\r\n.\r\n", "554 no\r\n" }, MESSAGE, END },
		    "0F" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		if (i > 0)
			start();
		bench_serve(&b, NULL, rows[i].steps);
		deliver("127.0.0.1:%u", 1);
		bench_expect(&b, rows[i].want, false);
		cr_expect(b.kept, "%s", rows[i].name);
		deliver("127.0.0.1:%u", 1);
		bench_expect(&b, "0S2.0.0:", false);
		cr_expect_eq(b.server.connections, 1, "%s", rows[i].name);
		if (i + 1 < ARRAY_LEN(rows))
			end();
	}
}

Test(reuse, RSET_that_is_refused_ends_it)
{
	static const char *const says[] = { "500 what\r\n", "421 bye\r\n",
		NULL };
	size_t i;

	for (i = 0; i < ARRAY_LEN(says); i++) {
		const struct step steps[] = { HELLO,
			{ "MAIL FROM:<s@y>\r\n", "550 no\r\n" },
			{ "RSET\r\n", says[i] }, END };

		if (i > 0)
			start();
		bench_serve(&b, NULL, steps);
		deliver("127.0.0.1:%u", 1);
		bench_expect(&b, "0F", false);
		cr_expect_not(b.kept);
		if (i + 1 < ARRAY_LEN(says))
			end();
	}
}

/* ---- queue-send that is wrong ---- */

/* mutation: deliver-smtp/session/kept.c, kept_take() without strcmp(). */
Test(reuse, a_connection_elsewhere_is_not_used)
{
	bench_serve(&b, NULL, one);
	deliver("127.0.0.1:%u", 1);
	cr_assert(b.kept);
	deliver("[localhost]:%u", 1);
	cr_expect_eq(b.server.connections, 2);
	cr_expect_eq(b.closed, 0, "its place is that of the delivery");
}
