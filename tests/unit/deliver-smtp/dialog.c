#include "tests/unit/deliver-smtp/play.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define HI        "220 mx\n|"
#define EHLO      "250 mx\n|"
#define PIPE      "250-mx\n250-SIZE 1000\n250-8bitmime\n250 PIPELINING\n|"
#define OK        "250 2.1.0 ok\n|"
#define GO        "354 go\n|"
#define BYE       "221 bye\n"

#define SAID_EHLO "EHLO me.example\r\n"
#define SAID_TWO                                                     \
	"MAIL FROM:<s@y> SIZE=100\r\nRCPT TO:<a@x>\r\nRCPT TO:<b@x>" \
	"\r\nDATA\r\n"
#define SAID_ONE "MAIL FROM:<s@y>\r\nRCPT TO:<a@x>\r\nDATA\r\n"

enum kind {
	SMTP,
	LMTP,
	LOCKSTEP,
};

struct row {
	const char *name;
	enum kind kind;
	uint32_t nrcpts;
	const char *script, *said, *results, *end;
};

static void
run(const struct row *row)
{
	struct play p;
	struct dialog_task task = play_task(&p, row->nrcpts);

	task.lmtp = row->kind == LMTP;
	task.lockstep = row->kind == LOCKSTEP;
	play(&p, &task, row->script);
	if (row->said != NULL)
		cr_expect_str_eq(
		    buf_str(&p.said), row->said, "%s: said", row->name);
	cr_expect_str_eq(
	    buf_str(&p.results), row->results, "%s: results", row->name);
	cr_expect_str_eq(p.end, row->end, "%s: end", row->name);
	play_done(&p);
}

#define RUN(rows)                                        \
	do {                                             \
		size_t i_;                               \
		for (i_ = 0; i_ < ARRAY_LEN(rows); i_++) \
			run(&(rows)[i_]);                \
	} while (0)

/* clang-format off */
static const struct row good[] = {
	{ "lock-step", SMTP, 1, HI EHLO OK OK GO "250 2.6.0 queued\n|" BYE,
	    SAID_EHLO SAID_ONE "{content}QUIT\r\n", "S2.6.0", "" },
	{ "pipelined", SMTP, 2, HI PIPE "250 ok\n250 ok\n250 ok\n354 go\n|"
	    OK BYE, SAID_EHLO SAID_TWO "{content}QUIT\r\n", "S2.1.0 S2.1.0", "" },
	{ "pipelined, replies one by one", SMTP, 2, HI PIPE OK OK OK GO OK BYE,
	    SAID_EHLO SAID_TWO "{content}QUIT\r\n", "S2.1.0 S2.1.0", "" },
	{ "pipelining offered, not wanted", LOCKSTEP, 1,
	    HI PIPE OK OK GO OK BYE, SAID_EHLO
	    "MAIL FROM:<s@y> SIZE=100\r\nRCPT TO:<a@x>\r\nDATA\r\n{content}"
	    "QUIT\r\n", "S2.1.0", "" },
	{ "HELO when EHLO is not known", SMTP, 1,
	    HI "502 what\n|" EHLO OK OK GO OK BYE,
	    SAID_EHLO "HELO me.example\r\n" SAID_ONE "{content}QUIT\r\n",
	    "S2.1.0", "" },
	{ "greeting of several lines", SMTP, 1,
	    "220-mx\n220-welcome\n220 here\n|" EHLO OK OK GO OK BYE,
	    SAID_EHLO SAID_ONE "{content}QUIT\r\n", "S2.1.0", "" },
	{ "251 and 252 are yes", SMTP, 2, HI EHLO OK "251 will forward\n|"
	    "252 will try\n|" GO OK BYE, NULL, "S2.1.0 S2.1.0", "" },
	{ "no enhanced code", SMTP, 1, HI EHLO OK OK GO "250 fine\n|" BYE, NULL,
	    "S2.0.0", "" },
};
/* clang-format on */

Test(dialog, conversations)
{
	RUN(good);
}

/* clang-format off */
static const struct row per_recipient[] = {
	{ "lock-step", SMTP, 3, HI EHLO OK OK "450 4.2.1 busy\n|"
	    "550 5.1.1 who\n|" GO OK BYE, SAID_EHLO "MAIL FROM:<s@y>\r\n"
	    "RCPT TO:<a@x>\r\nRCPT TO:<b@x>\r\nRCPT TO:<c@x>\r\nDATA\r\n"
	    "{content}QUIT\r\n", "S2.1.0 D4.2.1 F5.1.1", "" },
	{ "pipelined", SMTP, 3, HI PIPE "250 ok\n450 4.2.1 busy\n"
	    "550 5.1.1 who\n250 ok\n354 go\n|" OK BYE, NULL,
	    "D4.2.1 F5.1.1 S2.1.0", "" },
	{ "354, then refused", SMTP, 2, HI EHLO OK OK "550 5.1.1 who\n|" GO
	    "554 5.7.1 spam\n|" BYE, NULL, "F5.7.1 F5.1.1", "" },
	{ "354, then later", SMTP, 2, HI PIPE OK OK OK GO "451 4.3.0 later\n|"
	    BYE, NULL, "D4.3.0 D4.3.0", "" },
	{ "none taken, lock-step: QUIT", SMTP, 2, HI EHLO OK "550 no\n|"
	    "450 no\n|" BYE, SAID_EHLO "MAIL FROM:<s@y>\r\nRCPT TO:<a@x>\r\n"
	    "RCPT TO:<b@x>\r\nQUIT\r\n", "F5.2.0 D4.2.0", "" },
	{ "none taken, pipelined, 354: a dot alone", SMTP, 2, HI PIPE
	    "250 ok\n550 no\n450 no\n354 go\n|" "554 no recipients\n|" BYE,
	    SAID_EHLO SAID_TWO ".\r\nQUIT\r\n", "F5.2.0 D4.2.0", "" },
	{ "none taken, pipelined, DATA refused: QUIT", SMTP, 2, HI PIPE
	    "250 ok\n550 no\n450 no\n503 none\n|" BYE,
	    SAID_EHLO SAID_TWO "QUIT\r\n", "F5.2.0 D4.2.0", "" },
	{ "DATA refused", SMTP, 2, HI EHLO OK OK "550 5.1.1 who\n|"
	    "451 4.7.1 grey\n|" BYE, NULL, "D4.7.1 F5.1.1", "" },
	{ "552 is what it is for the first", SMTP, 1, HI EHLO OK
	    "552 full\n|" BYE, NULL, "F5.2.2", "" },
	{ "MAIL refused, lock-step", SMTP, 2, HI EHLO "550 5.7.1 you\n|" BYE,
	    SAID_EHLO "MAIL FROM:<s@y>\r\nQUIT\r\n", "F5.7.1 F5.7.1", "" },
	{ "MAIL refused, pipelined", SMTP, 2, HI PIPE "450 4.7.1 you\n"
	    "503 a\n503 b\n503 c\n|" BYE, SAID_EHLO SAID_TWO "QUIT\r\n",
	    "D4.7.1 D4.7.1", "" },
	{ "MAIL refused, RCPT and DATA taken all the same", SMTP, 2, HI PIPE
	    "550 5.7.1 you\n250 a\n250 b\n354 c\n|" OK BYE,
	    SAID_EHLO SAID_TWO ".\r\nQUIT\r\n", "F5.7.1 F5.7.1", "" },
};
/* clang-format on */

Test(dialog, N10_results_per_recipient)
{
	RUN(per_recipient);
}

/* clang-format off */
static const struct row lmtp[] = {
	{ "a reply each", LMTP, 3, HI PIPE "250 ok\n250 ok\n550 5.1.1 who\n"
	    "250 ok\n354 go\n|" "250 2.0.0 a\n452 4.2.2 full\n|" BYE,
	    "LHLO me.example\r\nMAIL FROM:<s@y> SIZE=100\r\nRCPT TO:<a@x>\r\n"
	    "RCPT TO:<b@x>\r\nRCPT TO:<c@x>\r\nDATA\r\n{content}QUIT\r\n",
	    "S2.0.0 F5.1.1 D4.2.2", "" },
	{ "fewer: the rest is unknown", LMTP, 3, HI PIPE OK OK OK OK GO
	    "250 2.0.0 a\n|", NULL, "S2.0.0 D4.4.2 D4.4.2", "doubted" },
	{ "more: what was said stands", LMTP, 1, HI PIPE OK OK GO
	    "250 2.0.0 a\n550 5.0.0 b\n250 c\n", NULL, "S2.0.0", "" },
	{ "no HELO in LMTP", LMTP, 1, HI "500 what\n|", "LHLO me.example\r\n"
	    "QUIT\r\n", "-", "site next" },
	{ "421 between", LMTP, 2, HI PIPE OK OK OK GO
	    "250 2.0.0 a\n421 4.3.2 down\n|", NULL, "S2.0.0 D4.3.2",
	    "doubted" },
};
/* clang-format on */

Test(dialog, N11_lmtp_replies)
{
	RUN(lmtp);
}

/* clang-format off */
static const struct row closed_early[] = {
	{ "no reply to QUIT", SMTP, 1, HI EHLO OK OK GO OK, NULL, "S2.1.0",
	    "" },
	{ "QUIT times out", SMTP, 1, HI EHLO OK OK GO OK "!", NULL, "S2.1.0",
	    "" },
	{ "rubbish for QUIT", SMTP, 1, HI EHLO OK OK GO OK "go away\n", NULL,
	    "S2.1.0", "" },
	{ "421 for QUIT", SMTP, 1, HI EHLO OK OK GO OK "421 x\n", NULL,
	    "S2.1.0", "" },
};
/* clang-format on */

Test(dialog, N12_closed_before_the_reply_to_quit)
{
	RUN(closed_early);
}

/* clang-format off */
static const struct row mismatched[] = {
	{ "a reply too many", SMTP, 2, HI PIPE
	    "250 ok\n250 ok\n550 5.1.1 who\n250 ok\n354 go\n", NULL, "- -",
	    "lockstep" },
	{ "one too many, refusing", SMTP, 2, HI PIPE
	    "250 ok\n550 5.1.1 a\n550 5.1.1 b\n250 ok\n354 go\n", NULL, "- -",
	    "lockstep" },
	{ "one missing", SMTP, 2, HI PIPE "250 ok\n550 5.1.1 who\n354 go\n|!",
	    NULL, "- -", "lockstep" },
	{ "in lock-step it is a failure", LOCKSTEP, 2, HI PIPE OK "354 go\n",
	    NULL, "D4.5.0 D4.5.0", "doubted" },
	{ "extra after DATA", SMTP, 1, HI PIPE "250 a\n250 b\n354 c\n250 d\n|",
	    NULL, "-", "lockstep" },
	{ "a refusal twice, the second in the place of DATA", SMTP, 2, HI PIPE
	    "250 ok\n250 a\n550 5.1.1 b\n550 5.1.1 b\n354 go\n|", NULL,
	    "- -", "lockstep" },
	{ "extra in lock-step", SMTP, 1, HI EHLO OK "250 a\n250 b\n|", NULL,
	    "D4.5.0", "doubted" },
	{ "421 is welcome at any time", SMTP, 2, HI PIPE
	    "250 ok\n550 5.1.1 who\n421 4.7.0 enough\n", NULL,
	    "F5.1.1 D4.7.0", "" },
	{ "421 behind another reply", SMTP, 1, HI EHLO
	    "250 ok\n421 4.3.2 down\n", NULL, "D4.3.2", "doubted" },
};
/* clang-format on */

Test(dialog, N9_replies_missing_or_extra)
{
	RUN(mismatched);
}

/* clang-format off */
static const struct row early[] = {
	{ "a reply behind the greeting", SMTP, 1, "220 mx\n250 mx\n|", NULL,
	    "-", "site next" },
	{ "half a reply behind the greeting", SMTP, 1,
	    "220 mx\n250 m|x\n|", NULL, "-", "site next" },
	{ "no greeting, something else", SMTP, 1, "HTTP/1.1 400 Bad\n|", "",
	    "-", "site next" },
	{ "during the message", SMTP, 1, HI EHLO OK OK "354 go\n250 done\n|",
	    NULL, "D4.5.0", "doubted" },
};
/* clang-format on */

Test(dialog, N7_octets_that_nobody_asked_for)
{
	RUN(early);
}

/* A task that one server cannot do. */
struct need {
	const char *name, *sender, *rcpt0, *offers;
	uint64_t size;
	const char *said, *results;
};

/* clang-format off */
static const struct need needs[] = {
	{ "larger than SIZE", "s@y", "a@x", "250-mx\n250 SIZE 99\n|", 100,
	    "QUIT\r\n", "F5.3.4 F5.3.4" },
	{ "as large as SIZE", "s@y", "a@x", "250-mx\n250 SIZE 100\n|", 100,
	    "{count}MAIL FROM:<s@y> SIZE=100\r\n", "D4.4.2 D4.4.2" },
	{ "SIZE without a number", "s@y", "a@x", "250-mx\n250 SIZE\n|", 100,
	    "MAIL FROM:<s@y> SIZE=100\r\n", "D4.4.2 D4.4.2" },
	{ "SIZE 0 is no limit", "s@y", "a@x", "250-mx\n250 SIZE 0\n|", 100,
	    "MAIL FROM:<s@y> SIZE=100\r\n", "D4.4.2 D4.4.2" },
	{ "8BITMIME offered, not needed", "s@y", "a@x",
	    "250-mx\n250 8BITMIME\n|", 100, "MAIL FROM:<s@y>\r\n",
	    "D4.4.2 D4.4.2" },
	{ "SMTPUTF8 offered", "s@y", "\xc3\xa4@x",
	    "250-mx\n250-8BITMIME\n250 SMTPUTF8\n|", 100,
	    "MAIL FROM:<s@y> BODY=8BITMIME SMTPUTF8\r\n", "D4.4.2 D4.4.2" },
	{ "SMTPUTF8 missing for a recipient", "s@y", "\xc3\xa4@x", "250 mx\n|",
	    100, "MAIL FROM:<s@y>\r\n", "F5.6.7 D4.4.2" },
	{ "SMTPUTF8 missing for the sender", "\xc3\xa4@y", "a@x", "250 mx\n|",
	    100, "QUIT\r\n", "F5.6.7 F5.6.7" },
	{ "SMTPUTF8 missing for domains", "s@\xc3\xbc.y", "a@B\xc3\x9c.x.",
	    "250-mx\n250 8BITMIME\n|250 ok\n|", 100,
	    "MAIL FROM:<s@xn--tda.y>\r\nRCPT TO:<a@xn--b-eha.x>\r\n",
	    "D4.4.2 D4.4.2" },
	{ "SMTPUTF8 offered for domains", "s@\xc3\xbc.y", "a@B\xc3\x9c.x.",
	    "250-mx\n250-8BITMIME\n250 SMTPUTF8\n|250 ok\n|", 100,
	    "MAIL FROM:<s@\xc3\xbc.y> BODY=8BITMIME SMTPUTF8\r\n"
	    "RCPT TO:<a@B\xc3\x9c.x>\r\n",
	    "D4.4.2 D4.4.2" },
	{ "SMTPUTF8 missing for a domain without A-labels", "s@y",
	    "a@b\xfc.x", "250 mx\n|", 100, "MAIL FROM:<s@y>\r\n",
	    "F5.1.3 D4.4.2" },
	{ "a recipient's domain that cannot be said", "s@y", "a@x> SIZE=1",
	    "250 mx\n|", 100, "MAIL FROM:<s@y>\r\n", "F5.1.3 D4.4.2" },
	{ "a sender's domain that cannot be said", "s@y z", "a@x", "250 mx\n|",
	    100, "QUIT\r\n", "F5.1.7 F5.1.7" },
	{ "the null sender", "", "a@x", "250 mx\n|", 100,
	    "MAIL FROM:<>\r\n", "D4.4.2 D4.4.2" },
};
/* clang-format on */

Test(dialog, N13_what_the_server_lacks)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(needs); i++) {
		const struct need *n = &needs[i];
		struct buf script = { 0 };
		struct play p;
		struct dialog_task task = play_task(&p, 2);
		char *first = p.rcpts[0].address, copy[64];

		snprintf(copy, sizeof(copy), "%s", n->rcpt0);
		p.rcpts[0].address = copy;
		task.sender = n->sender;
		task.size = n->size;
		buf_printf(&script, "%s%s", HI, n->offers);
		play(&p, &task, buf_str(&script));
		cr_expect_str_eq(buf_str(&p.said) + strlen(SAID_EHLO), n->said,
		    "%s: said %s", n->name, buf_str(&p.said));
		cr_expect_str_eq(buf_str(&p.results), n->results, "%s: %s",
		    n->name, buf_str(&p.results));
		p.rcpts[0].address = first;
		play_done(&p);
		buf_done(&script);
	}
}

Test(dialog, a_recipient_that_has_a_report_is_left_out)
{
	struct play p;
	struct dialog_task task = play_task(&p, 3);

	p.rcpts[1].reported = true;
	play(&p, &task, HI PIPE "250 a\n250 b\n250 c\n354 d\n|" OK BYE);
	cr_expect_str_eq(buf_str(&p.said),
	    SAID_EHLO "MAIL FROM:<s@y> SIZE=100\r\nRCPT TO:<a@x>\r\n"
		      "RCPT TO:<c@x>\r\nDATA\r\n{content}QUIT\r\n");
	cr_expect_eq(p.got[0].outcome, AGENT_SENT);
	cr_expect_eq(p.got[2].outcome, AGENT_SENT);
	play_done(&p);
}

Test(dialog, texts_name_host_reply_and_command)
{
	struct play p;
	struct dialog_task task = play_task(&p, 3);

	play(&p, &task,
	    HI EHLO OK "550-5.1.1 no\n550 5.1.1 such \x1b[1muser\n|"
		       "450 later\n|" OK GO);
	cr_expect_str_eq(buf_str(&p.texts[0]),
	    "host mx[1.2.3.4] said: 550 5.1.1 no such ?[1muser "
	    "(in reply to RCPT TO)");
	cr_expect_str_eq(buf_str(&p.texts[1]),
	    "host mx[1.2.3.4] said: 450 later (in reply to RCPT TO)");
	cr_expect_str_eq(buf_str(&p.texts[2]),
	    "lost connection with mx[1.2.3.4] while sending end of message "
	    "-- the message may be sent more than once");
	play_done(&p);
}

/* clang-format off */
static const struct row abandoned[] = {
	{ "before a transaction", SMTP, 2, HI "#", SAID_EHLO, "D4.3.2 D4.3.2",
	    "" },
	{ "pipelined", SMTP, 2, HI PIPE "250 ok\n550 5.1.1 who\n|#", NULL,
	    "D4.3.2 D4.3.2", "" },
	{ "in lock-step", SMTP, 2, HI EHLO OK "550 5.1.1 who\n|#", NULL,
	    "F5.1.1 D4.3.2", "" },
	{ "when the message was sent", SMTP, 1, HI EHLO OK OK GO "#", NULL,
	    "D4.3.2", "" },
	{ "when all is said", SMTP, 1, HI EHLO OK OK GO OK "#", NULL, "S2.1.0",
	    "" },
};
/* clang-format on */

Test(dialog, an_abandoned_dialogue_defers_the_rest)
{
	RUN(abandoned);
}

/* The server has the wishes of the sender only where it said that it knows what
 * they are. mutation: deliver-smtp/dialog/transaction.c: always passed on. */
Test(dialog, N20_a_server_with_dsn_has_the_wishes)
{
	static const struct {
		const char *script, *said;
		bool want;
	} rows[] = {
		{ HI "250-mx\n250 DSN\n|" OK OK GO OK BYE,
		    SAID_EHLO "MAIL FROM:<s@y> ENVID=e+2B\r\nRCPT TO:<a@x> "
			      "NOTIFY=success\r\nDATA\r\n{content}QUIT\r\n",
		    true },
		{ HI EHLO OK OK GO OK BYE,
		    SAID_EHLO SAID_ONE "{content}QUIT\r\n", false },
		{ HI "500 no\n|"
		     "250-mx\n250 DSN\n|" OK OK GO OK BYE,
		    SAID_EHLO "HELO me.example\r\n" SAID_ONE
			      "{content}QUIT\r\n",
		    false },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct play p;
		struct dialog_task task = play_task(&p, 1);

		task.dsn = (struct dsn_mail){ 0, "e+2B" };
		p.rcpts[0].notify = DSN_SUCCESS;
		play(&p, &task, rows[i].script);
		cr_expect_str_eq(buf_str(&p.said), rows[i].said);
		cr_expect_str_eq(buf_str(&p.results), "S2.1.0");
		cr_expect_eq(p.got[0].passed_on, rows[i].want);
		play_done(&p);
	}
}

Test(dialog, keywords_that_are_ignored)
{
	struct play p;
	struct dialog_task task = play_task(&p, 1);

	task.ignored = 1u << smtp_keyword_find("pipelining", 10) |
	    1u << smtp_keyword_find("size", 4);
	play(&p, &task, HI PIPE OK OK GO OK BYE);
	cr_expect_str_eq(buf_str(&p.said),
	    SAID_EHLO SAID_ONE "{content}QUIT\r\n", "%s", buf_str(&p.said));
	play_done(&p);
}
