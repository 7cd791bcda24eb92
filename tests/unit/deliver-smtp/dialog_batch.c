/* Transactions of some of the recipients, and ends within a transaction. */
#include "tests/unit/deliver-smtp/play.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define HI      "220 mx\n|"
#define EHLO    "250 mx\n|"
#define PIPE    "250-mx\n250 PIPELINING\n|"
#define CHUNK   "250-mx\n250 CHUNKING\n|"
#define OK      "250 2.1.0 ok\n|"
#define GO      "354 go\n|"
#define TAKEN   "250 2.6.0 queued\n|"
#define RESET   "250 2.0.0 reset\n|"
#define BYE     "221 bye\n"
#define ENOUGH  "452 4.5.3 enough\n|"

#define HELLO   "EHLO me.example\r\n"
#define MAIL    "MAIL FROM:<s@y>\r\n"
#define RCPT(n) "RCPT TO:<" n "@x>\r\n"
#define BODY    "DATA\r\n{content}"
#define QUIT    "QUIT\r\n"

enum kind {
	SMTP,
	LMTP,
	LOCKSTEP, /* pipelining is offered, and not wanted */
	CHUNKED,
	KEPT, /* the connection is to stay open */
};

struct row {
	const char *name;
	enum kind kind;
	uint32_t nrcpts, batch;
	const char *script, *said, *results, *end;
	uint32_t learned; /* end.batch */
};

static void
run(const struct row *row)
{
	struct play p;
	struct dialog_task task = play_task(&p, row->nrcpts);

	task.lmtp = row->kind == LMTP;
	task.lockstep = row->kind == LOCKSTEP;
	task.chunking = row->kind == CHUNKED;
	task.keep = row->kind == KEPT;
	task.batch = row->batch;
	play(&p, &task, row->script);
	if (row->said != NULL)
		cr_expect_str_eq(buf_str(&p.said), row->said, "%s: %s",
		    row->name, buf_str(&p.said));
	cr_expect_str_eq(buf_str(&p.results), row->results, "%s: %s", row->name,
	    buf_str(&p.results));
	cr_expect_str_eq(p.end, row->end, "%s: %s", row->name, p.end);
	cr_expect_eq(p.dialog.end.batch, row->learned, "%s: %u", row->name,
	    p.dialog.end.batch);
	play_done(&p);
}

#define RUN(rows)                                        \
	do {                                             \
		size_t i_;                               \
		for (i_ = 0; i_ < ARRAY_LEN(rows); i_++) \
			run(&(rows)[i_]);                \
	} while (0)

/* ---- N32: only so many recipients in a transaction ---- */

/* clang-format off */
static const struct row batches[] = {
	{ "pipelined", SMTP, 5, 0, HI PIPE "250 m\n250 a\n250 b\n452 4.5.3 c\n"
	    "452 4.5.3 d\n452 4.5.3 e\n354 go\n|" TAKEN
	    "250 m\n250 c\n250 d\n354 go\n|" TAKEN
	    "250 m\n250 e\n354 go\n|" TAKEN BYE,
	    HELLO MAIL RCPT("a") RCPT("b") RCPT("c") RCPT("d") RCPT("e") BODY
	    MAIL RCPT("c") RCPT("d") BODY MAIL RCPT("e") BODY QUIT,
	    "S2.6.0 S2.6.0 S2.6.0 S2.6.0 S2.6.0", "", 2 },
	{ "in lock-step nothing is said behind it", SMTP, 4, 0,
	    HI EHLO OK OK OK ENOUGH GO TAKEN OK OK OK GO TAKEN BYE,
	    HELLO MAIL RCPT("a") RCPT("b") RCPT("c") BODY
	    MAIL RCPT("c") RCPT("d") BODY QUIT,
	    "S2.6.0 S2.6.0 S2.6.0 S2.6.0", "", 2 },
	{ "LMTP", LMTP, 3, 0, HI PIPE "250 m\n250 a\n250 b\n452 4.5.3 c\n"
	    "354 go\n|" "250 2.0.0 a\n550 5.1.1 b\n|"
	    "250 m\n250 c\n354 go\n|" "250 2.0.0 c\n|" BYE, NULL,
	    "S2.0.0 F5.1.1 S2.0.0", "", 2 },
	{ "chunks", CHUNKED, 2, 0, HI CHUNK OK OK ENOUGH TAKEN OK OK TAKEN BYE,
	    HELLO MAIL RCPT("a") RCPT("b") "{measure}BDAT 42 LAST\r\n{content}"
	    MAIL RCPT("b") "{measure}BDAT 42 LAST\r\n{content}" QUIT,
	    "S2.6.0 S2.6.0", "", 1 },
	{ "known before", SMTP, 3, 2, HI PIPE "250 m\n250 a\n250 b\n354 go\n|"
	    TAKEN "250 m\n250 c\n354 go\n|" TAKEN BYE,
	    HELLO MAIL RCPT("a") RCPT("b") BODY MAIL RCPT("c") BODY QUIT,
	    "S2.6.0 S2.6.0 S2.6.0", "", 2 },
	{ "552 5.5.3", SMTP, 2, 0, HI EHLO OK OK "552 5.5.3 too many\n|" GO
	    TAKEN OK OK GO TAKEN BYE, NULL, "S2.6.0 S2.6.0", "", 1 },
	{ "452 without a code is asked again", SMTP, 2, 0, HI EHLO OK OK
	    "452 full\n|" GO TAKEN OK "452 full\n|" BYE, NULL,
	    "S2.6.0 D4.3.1", "", 0 },
	{ "several of them are a number", SMTP, 3, 0, HI PIPE "250 m\n250 a\n"
	    "452 b\n452 c\n354 go\n|" TAKEN "250 m\n250 b\n354 go\n|" TAKEN
	    "250 m\n250 c\n354 go\n|" TAKEN BYE, NULL,
	    "S2.6.0 S2.6.0 S2.6.0", "", 1 },
	{ "one that is taken behind them says that they are none", SMTP, 4, 0,
	    HI PIPE "250 m\n250 a\n452 b\n452 c\n250 d\n354 go\n|" TAKEN
	    "250 m\n452 b\n452 c\n554 nobody\n|" RESET BYE, NULL,
	    "S2.6.0 D4.3.1 D4.3.1 S2.6.0", "", 0 },
	{ "the first one is no number", SMTP, 2, 0, HI PIPE "250 m\n"
	    "452 4.5.3 a\n452 4.5.3 b\n554 nobody\n|" BYE, NULL,
	    "D4.5.3 D4.5.3", "", 0 },
	{ "a mailbox that is full", SMTP, 2, 0, HI EHLO OK OK
	    "452 4.2.2 full\n|" GO TAKEN BYE, NULL, "S2.6.0 D4.2.2", "", 0 },
	{ "no progress: the message is not wanted now", SMTP, 2, 0, HI EHLO OK
	    OK ENOUGH GO "451 4.3.0 later\n|" BYE, NULL, "D4.3.0 D4.3.0", "",
	    1 },
	{ "no progress at DATA", SMTP, 2, 0, HI EHLO OK OK ENOUGH
	    "451 4.3.0 later\n|" BYE, NULL, "D4.3.0 D4.3.0", "", 1 },
	{ "the message is refused, for those who were asked for", SMTP, 2, 0,
	    HI EHLO OK OK ENOUGH GO "554 5.7.1 a\n|" OK OK GO TAKEN BYE, NULL,
	    "F5.7.1 S2.6.0", "", 1 },
	{ "all of a batch are refused", SMTP, 3, 2, HI EHLO OK "550 5.1.1 a\n|"
	    "550 5.1.1 b\n|" RESET OK OK GO TAKEN BYE,
	    HELLO MAIL RCPT("a") RCPT("b") "RSET\r\n" MAIL RCPT("c") BODY QUIT,
	    "F5.1.1 F5.1.1 S2.6.0", "", 2 },
	{ "the same, pipelined, 354", SMTP, 2, 1, HI PIPE "250 m\n550 5.1.1 a\n"
	    "354 go\n|" "554 nobody\n|" "250 m\n250 b\n354 go\n|" TAKEN BYE,
	    NULL, "F5.1.1 S2.6.0", "", 1 },
	{ "the same, DATA is deferred for want of recipients", SMTP, 2, 1,
	    HI PIPE "250 m\n550 5.1.1 a\n451 4.5.1 nobody\n|" RESET
	    "250 m\n250 b\n354 go\n|" TAKEN BYE, NULL, "F5.1.1 S2.6.0", "",
	    1 },
	{ "MAIL is refused: another connection", SMTP, 2, 1, HI EHLO OK OK GO
	    TAKEN "550 5.7.0 one message only\n|", NULL, "S2.6.0 -", "stale",
	    1 },
	{ "closed behind the first", SMTP, 2, 1, HI EHLO OK OK GO TAKEN, NULL,
	    "S2.6.0 -", "stale", 1 },
	{ "RSET is refused: another connection", SMTP, 2, 1, HI EHLO OK
	    "550 5.1.1 a\n|" "502 5.5.1 what\n|", NULL, "F5.1.1 -", "stale",
	    1 },
	{ "lost in the second", SMTP, 2, 1, HI EHLO OK OK GO TAKEN OK OK GO,
	    NULL, "S2.6.0 D4.4.2", "doubted", 1 },
	{ "a kept connection stays", KEPT, 2, 1, HI EHLO OK OK GO TAKEN OK OK
	    GO TAKEN, NULL, "S2.6.0 S2.6.0", "open", 1 },
};
/* clang-format on */

Test(dialog_batch, N32_further_transactions)
{
	RUN(batches);
}

/* Whoever was not asked for has not got the message. */
Test(dialog_batch, N28_N32_only_those_of_the_transaction_may_have_it)
{
	struct play p;
	struct dialog_task task = play_task(&p, 3);

	task.batch = 2;
	play(&p, &task, HI EHLO OK OK OK GO);
	cr_expect_str_eq(buf_str(&p.results), "D4.4.2 D4.4.2 D4.4.2");
	cr_expect(p.got[0].final && p.got[1].final);
	cr_expect_not_null(strstr(buf_str(&p.texts[1]), "more than once"));
	cr_expect_not(p.got[2].final);
	cr_expect_null(strstr(buf_str(&p.texts[2]), "more than once"));
	play_done(&p);
}

/* Each number of recipients that a server takes, of each number of recipients:
 * all are delivered, in as few transactions as can be. */
Test(dialog_batch, N32_every_number)
{
	struct buf script = { 0 };
	uint32_t nrcpts, most, left, i, n;

	for (nrcpts = 1; nrcpts <= 8; nrcpts++)
		for (most = 1; most <= 8; most++) {
			struct play p;
			struct dialog_task task = play_task(&p, nrcpts);

			buf_reset(&script);
			buf_add_str(&script, HI PIPE);
			for (left = nrcpts; left > 0; left -= n) {
				/* The first is of all of them. */
				uint32_t asked =
				    left == nrcpts || left < most ? left : most;

				n = asked < most ? asked : most;
				buf_add_str(&script, "250 m\n");
				for (i = 0; i < asked; i++)
					buf_add_str(&script,
					    i < n ? "250 r\n"
						  : "452 4.5.3 r\n");
				buf_add_str(&script, "354 go\n|" TAKEN);
			}
			play(&p, &task, buf_str(&script));
			for (i = 0; i < nrcpts; i++)
				cr_expect_eq(p.got[i].outcome, AGENT_SENT,
				    "%u of %u: %s", most, nrcpts,
				    buf_str(&p.results));
			cr_expect_eq(p.dialog.transactions,
			    (nrcpts + most - 1) / most, "%u of %u", most,
			    nrcpts);
			play_done(&p);
		}
	buf_done(&script);
}

/* ---- N29: the end of a connection is no mismatch ---- */

/* clang-format off */
static const struct row ends[] = {
	{ "before the reply to MAIL", SMTP, 2, 0, HI PIPE "25", NULL,
	    "D4.4.2 D4.4.2", "site", 0 },
	{ "silence before it", SMTP, 2, 0, HI PIPE "!", NULL, "D4.4.2 D4.4.2",
	    "site", 0 },
	{ "behind it", SMTP, 2, 0, HI PIPE "250 m\n250", NULL, "D4.4.2 D4.4.2",
	    "doubted", 0 },
	{ "silence behind it", SMTP, 2, 0, HI PIPE "250 m\n|!", NULL,
	    "D4.4.2 D4.4.2", "doubted", 0 },
	{ "rubbish", SMTP, 2, 0, HI PIPE "250 m\nwhat\n", NULL,
	    "D4.5.0 D4.5.0", "doubted", 0 },
	{ "closed: a refusal stands", SMTP, 2, 0, HI PIPE
	    "250 m\n550 5.1.1 a\n", NULL, "F5.1.1 D4.4.2", "", 0 },
	{ "silence: it may be another recipient's", SMTP, 2, 0, HI PIPE
	    "250 m\n550 5.1.1 a\n|!", NULL, "D4.4.2 D4.4.2", "", 0 },
	{ "silence: the reply to MAIL is the first", SMTP, 2, 0, HI PIPE
	    "550 5.7.1 m\n|!", NULL, "F5.7.1 F5.7.1", "", 0 },
	{ "a yes to DATA that is a no", SMTP, 1, 0, HI PIPE
	    "250 m\n250 a\n250 d\n", NULL, "-", "lockstep", 0 },
};
/* clang-format on */

Test(dialog_batch, N29_ends_of_pipelined_commands)
{
	RUN(ends);
}

/* ---- N30: the site, the message ---- */

/* clang-format off */
static const struct row blame[] = {
	{ "421 to the first MAIL", SMTP, 1, 0, HI EHLO "421 4.3.2 no\n|", NULL,
	    "D4.3.2", "site", 0 },
	{ "421 behind a refused recipient", SMTP, 2, 0, HI EHLO OK
	    "550 5.1.1 a\n|" "421 4.7.0 enough\n|", NULL, "F5.1.1 D4.7.0", "",
	    0 },
	{ "behind a deferred one", SMTP, 2, 0, HI EHLO OK "450 4.2.1 a\n|"
	    "421 4.7.0 enough\n|", NULL, "D4.2.1 D4.7.0", "", 0 },
	{ "pipelined", SMTP, 3, 0, HI PIPE "250 m\n550 5.1.1 a\n550 5.1.1 b\n"
	    "421 4.7.0 enough\n|", NULL, "F5.1.1 F5.1.1 D4.7.0", "", 0 },
	{ "closed without a word", SMTP, 2, 0, HI EHLO OK "550 5.1.1 a\n|",
	    NULL, "F5.1.1 D4.4.2", "", 0 },
	{ "behind none", SMTP, 2, 0, HI EHLO OK OK "421 4.3.2 down\n|", NULL,
	    "D4.3.2 D4.3.2", "doubted", 0 },
	{ "421 to the message", SMTP, 1, 0, HI EHLO OK OK GO
	    "421 4.3.2 down\n|", NULL, "D4.3.2", "doubted", 0 },
	{ "no reply to it", SMTP, 1, 0, HI EHLO OK OK GO "!", NULL, "D4.4.2",
	    "doubted", 0 },
	{ "LMTP: it was refused for one of them", LMTP, 2, 0, HI EHLO OK OK OK
	    GO "554 5.6.0 a\n421 4.7.0 b\n|", NULL, "F5.6.0 D4.7.0", "", 0 },
};
/* clang-format on */

Test(dialog_batch, N30_whose_fault_an_end_is)
{
	RUN(blame);
}

/* What one message has caused is not remembered against the next one. */
Test(dialog_batch, N30_each_message_for_itself)
{
	struct play p;
	struct dialog_task task = play_task(&p, 2);

	task.keep = true;
	play(&p, &task, HI EHLO OK "550 5.1.1 a\n|" OK GO TAKEN);
	cr_assert_str_eq(p.end, "open");
	play_again(&p, OK OK "421 4.3.2 down\n|");
	cr_expect_str_eq(p.end, "doubted");
	play_done(&p);
}

/* ---- N31: replies with 552, and before the end of the message ---- */

/* clang-format off */
static const struct row verdicts[] = {
	{ "552 5.2.2 behind one that is taken", SMTP, 2, 0, HI EHLO OK OK
	    "552 5.2.2 full\n|" GO TAKEN BYE, NULL, "S2.6.0 F5.2.2", "", 0 },
	{ "552 5.2.2, pipelined", SMTP, 2, 0, HI PIPE "250 m\n250 a\n"
	    "552 5.2.2 full\n354 go\n|" TAKEN BYE, NULL, "S2.6.0 F5.2.2", "",
	    0 },
	{ "552 without a code, for good when it is said again", SMTP, 2, 0,
	    HI EHLO OK OK "552 full\n|" GO TAKEN OK "552 full\n|" BYE, NULL,
	    "S2.6.0 F5.2.2", "", 0 },
	{ "552 is what it is for the first", SMTP, 1, 0, HI EHLO OK
	    "552 full\n|" BYE, NULL, "F5.2.2", "", 0 },
	{ "552 5.3.4 to the message", SMTP, 1, 0, HI EHLO OK OK GO
	    "552 5.3.4 big\n|" BYE, NULL, "F5.3.4", "", 0 },
};
/* clang-format on */

Test(dialog_batch, N31_552)
{
	RUN(verdicts);
}

/* mutation: deliver-smtp/dialog/transaction.c, step_content_refused() that
 * defers. */
Test(dialog_batch, N31_a_reply_before_the_end_of_the_message)
{
	static const struct {
		const char *script, *says, *results;
		bool chunking;
	} rows[] = {
		{ HI EHLO OK OK OK "354 go\n", "552 5.3.4 enough\r\n",
		    "F5.3.4 F5.3.4", false },
		{ HI EHLO OK OK OK "354 go\n", "554 5.7.1 spam\r\n",
		    "F5.7.1 F5.7.1", false },
		{ HI EHLO OK OK ENOUGH "354 go\n", "554 5.7.1 spam\r\n",
		    "F5.7.1 D4.7.1", false },
		{ HI EHLO OK OK OK "354 go\n", "451 4.3.0 later\r\n",
		    "D4.3.0 D4.3.0", false },
		{ HI EHLO OK OK OK "354 go\n", "250 2.0.0 what\r\n",
		    "D4.5.0 D4.5.0", false },
		/* It may be one too many to RCPT. */
		{ HI CHUNK OK OK "250 ok\n", "550 5.1.1 who\r\n",
		    "D4.1.1 D4.1.1", true },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct play p;
		struct dialog_task task = play_task(&p, 2);

		task.chunking = rows[i].chunking;
		play_begin(&p, &task, rows[i].script);
		if (rows[i].chunking)
			dialog_measured(&p.dialog, 42);
		cr_assert_eq(p.dialog.state, DIALOG_CONTENT, "%zu", i);
		dialog_feed(&p.dialog, rows[i].says, strlen(rows[i].says));
		cr_expect_eq(p.dialog.state, DIALOG_CLOSED);
		play_end(&p);
		cr_expect_str_eq(buf_str(&p.results), rows[i].results,
		    "%zu: %s", i, buf_str(&p.results));
		cr_expect_not(p.dialog.end.site_failed);
		play_done(&p);
	}
}

/* ---- N33: TLS that ends behind the handshake ---- */

Test(dialog_batch, N33_the_end_behind_the_handshake)
{
	static const struct {
		const char *name;
		enum tls_level tls;
		bool fall_back;
		const char *script, *end;
	} rows[] = {
		{ "may", TLS_LEVEL_MAY, true, "", "clear" },
		{ "may, in half a reply", TLS_LEVEL_MAY, true, "250-m",
		    "clear" },
		{ "may, once more", TLS_LEVEL_MAY, false, "", "site next" },
		{ "may, with a reply", TLS_LEVEL_MAY, true, "451 4.3.0 no\n",
		    "site next" },
		{ "may, silence", TLS_LEVEL_MAY, true, "!", "site next" },
		{ "may, behind EHLO", TLS_LEVEL_MAY, true, "250 mx\n|",
		    "site" },
		{ "encrypt", TLS_LEVEL_ENCRYPT, false, "", "site next" },
		{ "verify", TLS_LEVEL_VERIFY, false, "", "site next" },
	};
	struct buf script = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct play p;
		struct dialog_task task = play_task(&p, 1);

		task.tls = rows[i].tls;
		task.fall_back = rows[i].fall_back;
		buf_reset(&script);
		buf_printf(&script, "%s%s",
		    HI "250-mx\n250 STARTTLS\n|220 go\n|", rows[i].script);
		play(&p, &task, buf_str(&script));
		cr_expect_str_eq(
		    p.end, rows[i].end, "%s: %s", rows[i].name, p.end);
		play_done(&p);
	}
	buf_done(&script);
}

Test(dialog_batch, N33_the_alert_is_in_the_reason)
{
	struct play p;
	struct dialog_task task = play_task(&p, 1);

	task.tls = TLS_LEVEL_ENCRYPT;
	play_begin(&p, &task, HI "250-mx\n250 STARTTLS\n|220 go\n||");
	cr_assert_eq(p.dialog.state, DIALOG_EHLO);
	dialog_broken(&p.dialog, "tlsv13 alert certificate required");
	cr_expect_str_eq(buf_str(&p.dialog.end.why.text),
	    "lost connection with mx[1.2.3.4] while performing the handshake: "
	    "TLS: tlsv13 alert certificate required");
	play_done(&p);
}
