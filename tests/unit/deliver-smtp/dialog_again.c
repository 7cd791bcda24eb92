/* Transactions over a connection that was kept: all that can go wrong. */
#include "tests/unit/deliver-smtp/play.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum kind {
	SMTP,
	PIPELINED,
	LMTP,
	NKINDS,
};
static const char *const kinds[NKINDS] = { "SMTP", "pipelined", "LMTP" };
static const char *const hellos[NKINDS] = { "220 mx\n|250 mx\n|",
	"220 mx\n|250-mx\n250 PIPELINING\n|",
	"220 mx\n|250-mx\n250 PIPELINING\n|" };
static const char *const messages[NKINDS] = {
	"250 ok\n|250 ok\n|250 ok\n|354 go\n|250 2.0.0 a\n",
	"250 ok\n250 ok\n250 ok\n354 go\n|250 2.0.0 a\n",
	"250 ok\n250 ok\n250 ok\n354 go\n|250 2.0.0 a\n250 2.0.0 b\n",
};

/* One message has gone over it. */
static void
first(struct play *p, enum kind kind)
{
	struct dialog_task task = play_task(p, 2);
	struct buf script = { 0 };

	task.lmtp = kind == LMTP;
	task.keep = true;
	buf_add_str(&script, hellos[kind]);
	buf_add_str(&script, messages[kind]);
	play(p, &task, buf_str(&script));
	buf_done(&script);
	cr_assert_str_eq(p->end, "open", "%s", kinds[kind]);
	cr_assert_str_eq(buf_str(&p->results), "S2.0.0 S2.0.0");
}

Test(dialog_again, the_next_message_begins_with_MAIL)
{
	static const char *const want[NKINDS] = {
		"MAIL FROM:<s@y>\r\nRCPT TO:<a@x>\r\nRCPT TO:<b@x>\r\nDATA\r\n"
		"{content}",
		"MAIL FROM:<s@y>\r\nRCPT TO:<a@x>\r\nRCPT TO:<b@x>\r\nDATA\r\n"
		"{content}",
		"MAIL FROM:<s@y>\r\nRCPT TO:<a@x>\r\nRCPT TO:<b@x>\r\nDATA\r\n"
		"{content}",
	};
	enum kind kind;
	struct play p;
	int i;

	for (kind = 0; kind < NKINDS; kind++) {
		first(&p, kind);
		for (i = 0; i < 3; i++) {
			play_again(&p, messages[kind]);
			cr_expect_str_eq(p.end, "open", "%s", kinds[kind]);
			cr_expect_str_eq(buf_str(&p.results), "S2.0.0 S2.0.0");
			cr_expect_str_eq(buf_str(&p.said), want[kind]);
		}
		play_done(&p);
	}
}

/* ---- the end at every octet ---- */

/* The octets of its first reply, with the line end. */
static size_t
first_reply(const char *script)
{
	return strcspn(script, "\n") + 1;
}

static void
check_cut(enum kind kind, size_t at, const char *tail)
{
	const char *script = messages[kind];
	struct buf cut = { 0 };
	struct play p;

	buf_add(&cut, script, at);
	buf_add_str(&cut, tail);
	first(&p, kind);
	play_again(&p, buf_str(&cut));
	if (at < first_reply(script)) {
		cr_expect_str_eq(
		    p.end, "stale", "%s at %zu: %s", kinds[kind], at, p.end);
		cr_expect_str_eq(buf_str(&p.results), "- -");
	} else {
		cr_expect(
		    p.dialog.end.site_doubted, "%s at %zu", kinds[kind], at);
	}
	play_done(&p);
	buf_done(&cut);
}

static void
cut_everywhere(const char *tail)
{
	enum kind kind;
	size_t at;

	for (kind = 0; kind < NKINDS; kind++)
		for (at = 0; messages[kind][at] != '\0'; at++)
			check_cut(kind, at, tail);
}

Test(dialog_again, N3_N14_end_of_file_at_every_octet)
{
	cut_everywhere("");
}

Test(dialog_again, N4_N14_silence_at_every_octet)
{
	cut_everywhere("!");
}

/* ---- other octets at every place ---- */

static size_t
results_missing(const struct play *p)
{
	size_t i, missing = 0;

	for (i = 0; i < p->dialog.task.nrcpts; i++)
		missing += !p->rcpts[i].reported;
	return missing;
}

/* Another octet than is right: whatever it makes of the dialogue, each
 * recipient has a result, or the session has to try again. */
static void
check_octet(enum kind kind, size_t at, char octet)
{
	struct buf script = { 0 };
	struct play p;

	buf_add_str(&script, messages[kind]);
	script.data[at] = octet;
	first(&p, kind);
	play_again(&p, buf_str(&script));
	if (results_missing(&p) > 0)
		cr_expect(p.dialog.end.stale || p.dialog.end.lockstep,
		    "%s at %zu: %d: %s", kinds[kind], at, octet, p.end);
	play_done(&p);
	buf_done(&script);
}

Test(dialog_again, N6_any_octet_at_every_place)
{
	static const char octets[] = { '\n', '\r', '-', '0', '4', '5', '9', '|',
		' ', 1, (char)0x80, (char)0xff };
	enum kind kind;
	size_t at, i;

	for (kind = 0; kind < NKINDS; kind++)
		for (at = 0; messages[kind][at] != '\0'; at++)
			for (i = 0; i < ARRAY_LEN(octets); i++)
				check_octet(kind, at, octets[i]);
}

/* ---- rows ---- */

#define NO_RCPT "250 ok\n|450 4.2.0 no\n|450 4.2.0 no\n|"

static const struct {
	const char *name;
	enum kind kind;
	const char *script, *results, *end;
} rows[] = {
	{ "421 to MAIL", SMTP, "421 4.4.2 idle\n", "- -", "stale" },
	{ "421, pipelined", PIPELINED, "421 4.4.2 idle\n", "- -", "stale" },
	{ "421 to RCPT", SMTP, "250 ok\n|421 4.4.2 no\n", "D4.4.2 D4.4.2",
	    "doubted" },
	{ "221 to MAIL, then the end", PIPELINED, "221 bye\n", "D4.4.2 D4.4.2",
	    "doubted" },
	{ "two replies, in lock-step", SMTP, "250 ok\n250 ok\n",
	    "D4.5.0 D4.5.0", "doubted" },
	{ "a reply missing, pipelined", PIPELINED, "250 ok\n250 ok\n354 go\n",
	    "- -", "lockstep" },
	{ "a reply too many, pipelined", PIPELINED,
	    "250 ok\n250 ok\n250 ok\n250 ok\n354 go\n", "- -", "lockstep" },
	{ "a reply behind the last", PIPELINED,
	    "250 ok\n250 ok\n250 ok\n354 go\n|250 2.0.0 a\n250 2.0.0 b\n",
	    "S2.0.0 S2.0.0", "" },
	{ "half a reply behind the last", SMTP,
	    "250 ok\n|250 ok\n|250 ok\n|354 go\n|250 2.0.0 a\n25",
	    "S2.0.0 S2.0.0", "" },
	{ "LMTP: one reply too many", LMTP,
	    "250 ok\n250 ok\n250 ok\n354 go\n|250 2.0.0 a\n250 2.0.0 b\n250 "
	    "c\n",
	    "S2.0.0 S2.0.0", "" },
	{ "MAIL refused", SMTP, "450 4.7.1 no\n", "- -", "stale" },
	{ "MAIL refused, pipelined", PIPELINED,
	    "550 5.7.1 no\n503 x\n503 x\n503 x\n", "- -", "stale" },
	{ "MAIL refused, LMTP", LMTP, "503 nested\n", "- -", "stale" },
	{ "RCPT refused, all", PIPELINED,
	    "250 ok\n550 5.1.1 no\n550 5.1.1 no\n554 x\n|250 reset\n",
	    "F5.1.1 F5.1.1", "open" },
	{ "RCPT refused, all; 354", PIPELINED,
	    "250 ok\n550 5.1.1 no\n550 5.1.1 no\n354 x\n|554 no\n",
	    "F5.1.1 F5.1.1", "open" },
	{ "DATA refused", SMTP,
	    "250 ok\n|250 ok\n|250 ok\n|451 4.3.0 no\n|250 x\n",
	    "D4.3.0 D4.3.0", "open" },
	{ "the message refused", SMTP,
	    "250 ok\n|250 ok\n|250 ok\n|354 go\n|554 5.6.0 no\n",
	    "F5.6.0 F5.6.0", "open" },
	{ "RSET refused", SMTP, NO_RCPT "500 what\n", "D4.2.0 D4.2.0", "" },
	{ "RSET, and a reply too many", SMTP, NO_RCPT "250 reset\n250 more\n",
	    "D4.2.0 D4.2.0", "" },
	{ "the end instead of RSET", SMTP, NO_RCPT, "D4.2.0 D4.2.0", "" },
	{ "421 to RSET", SMTP, NO_RCPT "421 bye\n", "D4.2.0 D4.2.0", "" },
	{ "abandoned", SMTP, "#", "D4.3.2 D4.3.2", "" },
};

Test(dialog_again, conversations)
{
	struct play p;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		first(&p, rows[i].kind);
		play_again(&p, rows[i].script);
		cr_expect_str_eq(buf_str(&p.results), rows[i].results, "%s: %s",
		    rows[i].name, buf_str(&p.results));
		cr_expect_str_eq(
		    p.end, rows[i].end, "%s: %s", rows[i].name, p.end);
		play_done(&p);
	}
}

/* mutation: deliver-smtp/dialog/transaction.c, step_part() that leaves
 * unanswered. */
Test(dialog_again, a_message_that_the_server_cannot_take_is_not_spoken_of)
{
	struct play p;

	first(&p, SMTP);
	p.dialog.ehlo.size_max = 10;
	play_again(&p, "");
	cr_expect_str_eq(buf_str(&p.results), "F5.3.4 F5.3.4");
	cr_expect_str_eq(buf_str(&p.said), "");
	cr_expect_str_eq(p.end, "open");
	dialog_lost(&p.dialog, DIALOG_LOST_CLOSED);
	cr_expect_not(p.dialog.end.stale);
	play_done(&p);
}

/* What one transaction has learned does not leak into the next one. */
Test(dialog_again, nothing_is_left_of_the_last_transaction)
{
	struct play p;
	struct dialog_task task = play_task(&p, 2);

	task.keep = true;
	play(&p, &task,
	    "220 mx\n|250-mx\n250 PIPELINING\n|"
	    "550 5.7.1 no\n503 x\n503 x\n503 x\n|250 reset\n");
	cr_assert_str_eq(buf_str(&p.results), "F5.7.1 F5.7.1");
	cr_assert_str_eq(p.end, "open");
	play_again(&p, messages[PIPELINED]);
	cr_expect_str_eq(buf_str(&p.results), "S2.0.0 S2.0.0");
	play_again(&p, "250 ok\n550 5.1.1 a\n250 ok\n354 go\n|250 2.0.0 a\n");
	cr_expect_str_eq(buf_str(&p.results), "F5.1.1 S2.0.0");
	play_again(&p, "250 ok\n250 ok\n452 4.2.2 b\n354 go\n|250 2.0.0 a\n");
	cr_expect_str_eq(buf_str(&p.results), "S2.0.0 D4.2.2");
	cr_expect_str_eq(p.end, "open");
	play_done(&p);
}
