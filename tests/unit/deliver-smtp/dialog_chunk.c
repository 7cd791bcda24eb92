/* Content by BDAT, where the transport wants it and the server offers it. */
#include "tests/unit/deliver-smtp/play.h"

#include <criterion/criterion.h>
#include <string.h>

#define HI    "220 mx\n|"
#define EHLO  "250-mx\n250-PIPELINING\n250 CHUNKING\n|"
#define OK    "250 2.1.0 ok\n|"
#define BYE   "221 bye\n"

#define HELLO "EHLO me.example\r\n"
#define ONE   "MAIL FROM:<s@y>\r\nRCPT TO:<a@x>\r\n"
#define TWO   ONE "RCPT TO:<b@x>\r\n"
#define CHUNK "{measure}BDAT 42 LAST\r\n{content}"

struct row {
	const char *name;
	bool lmtp;
	uint32_t nrcpts;
	const char *script, *said, *results, *end;
};

/* clang-format off */
static const struct row rows[] = {
	{ "one chunk, each command after its reply", false, 1,
	    HI EHLO OK OK "250 2.6.0 queued\n|" BYE,
	    HELLO ONE CHUNK "QUIT\r\n", "S2.6.0", "" },
	{ "not offered", false, 1,
	    HI "250 mx\n|" OK OK "354 go\n|" OK BYE,
	    HELLO ONE "DATA\r\n{content}QUIT\r\n", "S2.1.0", "" },
	{ "nothing is measured for nobody", false, 2,
	    HI EHLO OK "550 5.1.1 a\n|" "450 4.2.1 b\n|" BYE,
	    HELLO TWO "QUIT\r\n", "F5.1.1 D4.2.1", "" },
	{ "one of two", false, 2,
	    HI EHLO OK "550 5.1.1 a\n|" OK "250 2.6.0 queued\n|" BYE,
	    HELLO TWO CHUNK "QUIT\r\n", "F5.1.1 S2.6.0", "" },
	{ "the chunk refused", false, 2,
	    HI EHLO OK OK "450 4.2.1 b\n|" "552 5.3.4 too much\n|" BYE,
	    HELLO TWO CHUNK "QUIT\r\n", "F5.3.4 D4.2.1", "" },
	{ "the chunk deferred", false, 1,
	    HI EHLO OK OK "452 4.3.1 full\n|" BYE,
	    HELLO ONE CHUNK "QUIT\r\n", "D4.3.1", "" },
	{ "503, for a BDAT that is not known after all", false, 1,
	    HI EHLO OK OK "503 5.5.1 what\n|" BYE, NULL, "F5.5.1", "" },
	{ "354 is no answer to it", false, 1, HI EHLO OK OK "354 go\n|", NULL,
	    "D4.5.0", "doubted" },
	{ "421 for it", false, 1, HI EHLO OK OK "421 4.3.2 down\n|", NULL,
	    "D4.3.2", "doubted" },
	{ "no answer", false, 1, HI EHLO OK OK "!", NULL, "D4.4.2", "doubted" },
	{ "half an answer", false, 1, HI EHLO OK OK "250", NULL, "D4.4.2",
	    "doubted" },
	{ "a reply too many, behind RCPT", false, 1,
	    HI EHLO OK "250 a\n250 b\n|", NULL, "D4.5.0", "doubted" },
	{ "a reply too many, behind MAIL", false, 1,
	    HI EHLO "250 a\n250 b\n|", NULL, "D4.5.0", "doubted" },
	{ "a reply too many, behind the last", false, 1,
	    HI EHLO OK OK "250 2.0.0 a\n550 5.0.0 b\n|", NULL, "S2.0.0", "" },
	{ "LMTP: a reply each", true, 3,
	    HI EHLO OK OK "550 5.1.1 b\n|" OK "250 2.0.0 a\n452 4.2.2 c\n|"
	    BYE, "LHLO me.example\r\n" TWO "RCPT TO:<c@x>\r\n" CHUNK
	    "QUIT\r\n", "S2.0.0 F5.1.1 D4.2.2", "" },
	{ "LMTP: fewer", true, 2, HI EHLO OK OK OK "250 2.0.0 a\n|", NULL,
	    "S2.0.0 D4.4.2", "doubted" },
};
/* clang-format on */

static struct dialog_task
task_of(struct play *p, uint32_t nrcpts)
{
	struct dialog_task task = play_task(p, nrcpts);

	task.chunking = true;
	return task;
}

Test(dialog_chunk, N26_conversations)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct play p;
		struct dialog_task task = task_of(&p, rows[i].nrcpts);

		task.lmtp = rows[i].lmtp;
		play(&p, &task, rows[i].script);
		if (rows[i].said != NULL)
			cr_expect_str_eq(buf_str(&p.said), rows[i].said,
			    "%s: %s", rows[i].name, buf_str(&p.said));
		cr_expect_str_eq(buf_str(&p.results), rows[i].results, "%s: %s",
		    rows[i].name, buf_str(&p.results));
		cr_expect_str_eq(
		    p.end, rows[i].end, "%s: %s", rows[i].name, p.end);
		play_done(&p);
	}
}

Test(dialog_chunk, off_unless_the_transport_wants_it)
{
	struct play p;
	struct dialog_task task = play_task(&p, 1);

	play(&p, &task, HI EHLO OK OK "354 go\n|" OK BYE);
	cr_expect_str_eq(buf_str(&p.said),
	    HELLO ONE "DATA\r\n{content}QUIT\r\n", "%s", buf_str(&p.said));
	play_done(&p);
	task = task_of(&p, 1);
	task.ignored = 1u << smtp_keyword_find("chunking", 8);
	play(&p, &task, HI EHLO OK OK "354 go\n|" OK BYE);
	cr_expect_not_null(strstr(buf_str(&p.said), "DATA\r\n"));
	play_done(&p);
}

/* What the server says while it gets the chunk was said before its turn. */
Test(dialog_chunk, N26_an_answer_before_the_end)
{
	static const struct {
		const char *says, *dsn;
	} early[] = {
		{ "250 2.0.0 queued\r\n", "4.5.0" },
		{ "554 5.7.1 enough\r\n", "4.7.1" },
		{ "421 4.3.2 down\r\n", "4.3.2" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(early); i++) {
		struct play p;
		struct dialog_task task = task_of(&p, 1);
		struct dialog *d = &p.dialog;

		play_begin(&p, &task, HI EHLO OK "250 ok\n");
		cr_assert_eq(d->state, DIALOG_MEASURE);
		dialog_measured(d, 42);
		cr_assert_eq(d->state, DIALOG_CONTENT);
		dialog_feed(d, early[i].says, strlen(early[i].says));
		cr_expect_eq(d->state, DIALOG_CLOSED);
		cr_expect_eq(p.got[0].outcome, AGENT_DEFERRED);
		cr_expect_str_eq(p.got[0].dsn, early[i].dsn);
		play_done(&p);
		/* While it is measured nothing is due, either. */
		task = task_of(&p, 1);
		play_begin(&p, &task, HI EHLO OK "250 ok\n");
		dialog_feed(d, early[i].says, strlen(early[i].says));
		cr_expect_eq(d->state, DIALOG_CLOSED);
		cr_expect_eq(p.got[0].outcome, AGENT_DEFERRED);
		play_done(&p);
	}
}

Test(dialog_chunk, N14_over_a_kept_connection)
{
	struct play p;
	struct dialog_task task = task_of(&p, 1);

	task.keep = true;
	play(&p, &task, HI EHLO OK OK "250 2.6.0 queued\n|");
	cr_expect_str_eq(p.end, "open");
	play_again(&p, OK OK "250 2.6.0 queued\n|");
	cr_expect_str_eq(buf_str(&p.said), ONE CHUNK);
	cr_expect_str_eq(buf_str(&p.results), "S2.6.0");
	play_again(&p, "421 too long\n");
	cr_expect_str_eq(p.end, "stale");
	play_done(&p);
}

/* 8 bit for a server of 7 bit: what is measured is what is sent. */
Test(dialog_chunk, N25_converted)
{
	struct play p;
	struct dialog_task task = task_of(&p, 1);

	task.eight_bit = true;
	p.survey = (struct dialog_survey){ .eight = true };
	play(&p, &task, HI EHLO OK OK "250 2.6.0 queued\n|" BYE);
	cr_expect_str_eq(buf_str(&p.said),
	    HELLO "{survey}" ONE
		  "{measure converted}BDAT 42 LAST\r\n{converted}QUIT\r\n",
	    "%s", buf_str(&p.said));
	play_done(&p);
}

/* ---- the size on the wire, told with MAIL ---- */

Test(dialog_chunk, N43_sizes)
{
	static const struct {
		const char *name, *offer;
		bool at_hand;
		uint64_t wire;
		const char *said, *results;
	} sizes[] = {
		{ "no SIZE", "250 mx\n|", true, 110, "MAIL FROM:<s@y>\r\n",
		    "D4.4.2" },
		{ "cheap to count", "250-mx\n250 SIZE\n|", true, 110,
		    "{count}MAIL FROM:<s@y> SIZE=110\r\n", "D4.4.2" },
		{ "far below the limit", "250-mx\n250 SIZE 202\n|", false, 110,
		    "MAIL FROM:<s@y> SIZE=100\r\n", "D4.4.2" },
		{ "within reach", "250-mx\n250 SIZE 201\n|", false, 201,
		    "{count}MAIL FROM:<s@y> SIZE=201\r\n", "D4.4.2" },
		{ "just fits", "250-mx\n250 SIZE 110\n|", false, 110,
		    "{count}MAIL FROM:<s@y> SIZE=110\r\n", "D4.4.2" },
		{ "one too many", "250-mx\n250 SIZE 109\n|", false, 110,
		    "{count}QUIT\r\n", "F5.3.4" },
		{ "too large without its line ends", "250-mx\n250 SIZE 99\n|",
		    false, 110, "QUIT\r\n", "F5.3.4" },
	};
	static const char hello[] = "EHLO me.example\r\n";
	size_t i;

	for (i = 0; i < ARRAY_LEN(sizes); i++) {
		struct buf script = { 0 };
		struct play p;
		struct dialog_task task = play_task(&p, 1);

		task.at_hand = sizes[i].at_hand;
		p.wire = sizes[i].wire;
		buf_printf(&script, "220 mx\n|%s", sizes[i].offer);
		play(&p, &task, buf_str(&script));
		cr_expect_str_eq(buf_str(&p.said) + strlen(hello),
		    sizes[i].said, "%s: %s", sizes[i].name, buf_str(&p.said));
		cr_expect_str_eq(buf_str(&p.results), sizes[i].results,
		    "%s: %s", sizes[i].name, buf_str(&p.results));
		play_done(&p);
		buf_done(&script);
	}
}
