/* Everything that can happen in every state: refusals, ends, rubbish. */
#include "tests/unit/deliver-smtp/play.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A whole conversation with two recipients, reply by reply. */
enum turn {
	GREETING,
	EHLO,
	MAIL,
	RCPT,
	RCPT2,
	DATA,
	DOT,
	DOT2, /* LMTP only */
	QUIT,
	NTURNS,
};
static const char *const replies[NTURNS] = { "220 mx", "250 mx", "250 ok",
	"250 ok", "250 ok", "354 go", "250 2.0.0 a", "250 2.0.0 b", "221 bye" };

enum kind {
	SMTP,
	PIPELINED,
	LMTP,
	CHUNKED,
	NKINDS,
};
static const char *const kinds[NKINDS] = { "SMTP", "pipelined", "LMTP",
	"chunked" };

static const char *
reply_of(enum kind kind, enum turn turn)
{
	static const char *const offers[NKINDS] = { "250 mx",
		"250-mx\n250 PIPELINING", "250-mx\n250 PIPELINING",
		"250-mx\n250-PIPELINING\n250 CHUNKING" };

	return turn == EHLO ? offers[kind] : replies[turn];
}

/* BDAT has one reply, and no 354. */
static bool
has_turn(enum kind kind, enum turn turn)
{
	return turn == DOT2 ? kind == LMTP : turn != DATA || kind != CHUNKED;
}

/* The conversation with another reply at one place, to its end. */
static void
build(enum kind kind, enum turn at, const char *instead, struct buf *script)
{
	enum turn turn;

	buf_reset(script);
	for (turn = 0; turn < NTURNS; turn++) {
		if (!has_turn(kind, turn))
			continue;
		buf_printf(script, "%s\n|",
		    turn == at ? instead : reply_of(kind, turn));
	}
}

static void
converse(struct play *p, enum kind kind, const char *script, size_t cut)
{
	struct dialog_task task = play_task(p, 2);

	task.lmtp = kind == LMTP;
	task.chunking = kind == CHUNKED;
	play_cut(p, &task, script, cut);
}

/* ---- N5: a refusal at each place ---- */

struct outcome {
	const char *results, *end;
};

/* By class of the reply: 4xx, 5xx. Afterwards the script goes on as if nothing
 * had been, which a server that was told QUIT does not; the results stand. */
static const struct outcome refused[NTURNS][2] = {
	[GREETING] = { { "- -", "site next" }, { "- -", "site next" } },
	[EHLO] = { { "- -", "site next" }, { "S2.0.0 S2.0.0", "" } },
	[MAIL] = { { "D4.9.9 D4.9.9", "" }, { "F5.9.9 F5.9.9", "" } },
	[RCPT] = { { "D4.9.9 S2.0.0", "" }, { "F5.9.9 S2.0.0", "" } },
	[RCPT2] = { { "S2.0.0 D4.9.9", "" }, { "S2.0.0 F5.9.9", "" } },
	[DATA] = { { "D4.9.9 D4.9.9", "" }, { "F5.9.9 F5.9.9", "" } },
	[DOT] = { { "D4.9.9 D4.9.9", "" }, { "F5.9.9 F5.9.9", "" } },
	[DOT2] = { { "S2.0.0 D4.9.9", "" }, { "S2.0.0 F5.9.9", "" } },
	[QUIT] = { { "S2.0.0 S2.0.0", "" }, { "S2.0.0 S2.0.0", "" } },
};
/* LMTP answers for one recipient at a time, and has no HELO. */
static const struct outcome lmtp_dot[2] = { { "D4.9.9 S2.0.0", "" },
	{ "F5.9.9 S2.0.0", "" } };
static const struct outcome lmtp_lhlo = { "- -", "site next" };

static const struct outcome *
expected(enum kind kind, enum turn turn, int class)
{
	if (kind == LMTP && turn == DOT)
		return &lmtp_dot[class - 4];
	if (kind == LMTP && turn == EHLO)
		return &lmtp_lhlo;
	return &refused[turn][class - 4];
}

static void
check_refusal(enum kind kind, enum turn turn, int code)
{
	const struct outcome *want = expected(kind, turn, code / 100);
	struct buf script = { 0 };
	struct play p;
	char instead[64];

	snprintf(instead, sizeof(instead), "%d %d.9.9 no", code, code / 100);
	build(kind, turn, instead, &script);
	/* HELO is one more. */
	if (turn == EHLO && kind != LMTP) {
		buf_reset(&script);
		buf_printf(&script,
		    "220 mx\n|%s\n|250 mx\n|250 a\n|250 b\n|250 c\n|"
		    "354 d\n|250 2.0.0 e\n|221 f\n",
		    instead);
	}
	converse(&p, kind, buf_str(&script), SIZE_MAX);
	cr_expect_str_eq(buf_str(&p.results), want->results,
	    "%s, turn %d, %d: %s", kinds[kind], turn, code,
	    buf_str(&p.results));
	cr_expect_str_eq(p.end, want->end, "%s, turn %d, %d: %s", kinds[kind],
	    turn, code, p.end);
	play_done(&p);
	buf_done(&script);
}

Test(dialog_states, N5_4xx_and_5xx_at_every_state)
{
	static const int codes[] = { 400, 450, 451, 452, 454, 471, 499, 500,
		501, 502, 503, 504, 521, 530, 550, 551, 553, 554, 571, 599 };
	enum kind kind;
	enum turn turn;
	size_t i;

	for (kind = 0; kind < NKINDS; kind++)
		for (turn = 0; turn < NTURNS; turn++)
			for (i = 0; i < ARRAY_LEN(codes); i++)
				if (has_turn(kind, turn))
					check_refusal(kind, turn, codes[i]);
}

Test(dialog_states, N5_421_at_every_state)
{
	static const struct outcome want[NTURNS] = {
		[GREETING] = { "- -", "site next" },
		[EHLO] = { "- -", "site next" },
		[MAIL] = { "D4.3.2 D4.3.2", "site" },
		[RCPT] = { "D4.3.2 D4.3.2", "doubted" },
		[RCPT2] = { "D4.3.2 D4.3.2", "doubted" },
		[DATA] = { "D4.3.2 D4.3.2", "doubted" },
		[DOT] = { "D4.3.2 D4.3.2", "doubted" },
		[DOT2] = { "S2.0.0 D4.3.2", "doubted" },
		[QUIT] = { "S2.0.0 S2.0.0", "" },
	};
	struct buf script = { 0 };
	enum kind kind;
	enum turn turn;

	for (kind = 0; kind < NKINDS; kind++)
		for (turn = 0; turn < NTURNS; turn++) {
			struct play p;

			if (!has_turn(kind, turn))
				continue;
			build(kind, turn, "421 down", &script);
			converse(&p, kind, buf_str(&script), SIZE_MAX);
			cr_expect_str_eq(buf_str(&p.results),
			    want[turn].results, "%s, turn %d", kinds[kind],
			    turn);
			cr_expect_str_eq(p.end, want[turn].end, "%s, turn %d",
			    kinds[kind], turn);
			play_done(&p);
		}
	buf_done(&script);
}

/* ---- N3, N6: cut off, or rubbish, after each octet ---- */

/* What must hold however a conversation ended: all have a report, or none has
 * and there is somewhere to go on; a yes only when there was one. */
static void
check_end(const struct play *p, const char *what, size_t at)
{
	const char *r = buf_str(&p->results);
	bool open = strchr(r, '-') != NULL;
	const struct dialog_end *e = &p->dialog.end;

	cr_expect_eq(open, e->try_next || e->lockstep, "%s at %zu: %s %s", what,
	    at, r, p->end);
	if (open) {
		cr_expect(e->site_failed || e->lockstep, "%s at %zu", what, at);
		cr_expect_str_eq(r, "- -", "%s at %zu", what, at);
	}
}

/* The length of what the server says up to and with a turn. */
static size_t
length_to(enum kind kind, enum turn last)
{
	size_t len = 0;
	enum turn turn;

	for (turn = 0; turn <= last; turn++)
		if (has_turn(kind, turn))
			len += strlen(reply_of(kind, turn)) + 2;
	return len;
}

static void
check_cut(enum kind kind, const char *script, size_t at, const char *tail)
{
	struct buf cut = { 0 };
	struct play p;
	const char *first;
	size_t whole = length_to(kind, DOT);

	buf_add(&cut, script, at);
	buf_add_str(&cut, tail);
	converse(&p, kind, buf_str(&cut), SIZE_MAX);
	first = buf_str(&p.results);
	check_end(&p, kinds[kind], at);
	/* Two octets of the script, LF and |, are two on the wire, CR and LF:
	 * only with its whole line is a reply a reply. */
	if (at + 1 < whole) {
		cr_expect_null(strchr(first, 'S'), "%s at %zu: %s", kinds[kind],
		    at, first);
		cr_expect(p.dialog.end.site_failed || p.dialog.end.site_doubted,
		    "%s at %zu", kinds[kind], at);
	} else {
		cr_expect_eq(
		    *first, 'S', "%s at %zu: %s", kinds[kind], at, first);
	}
	play_done(&p);
	buf_done(&cut);
}

static void
cut_everywhere(const char *tail)
{
	struct buf script = { 0 };
	enum kind kind;
	size_t at;

	for (kind = 0; kind < NKINDS; kind++) {
		build(kind, NTURNS, "", &script);
		for (at = 0; at < script.len; at++)
			check_cut(kind, buf_str(&script), at, tail);
	}
	buf_done(&script);
}

Test(dialog_states, N3_end_of_file_at_every_octet)
{
	cut_everywhere("");
}

Test(dialog_states, N4_silence_at_every_octet)
{
	cut_everywhere("!");
}

Test(dialog_states, N4_each_reply_begins_the_time_limit_anew)
{
	struct buf script = { 0 };
	struct play p;

	build(SMTP, NTURNS, "", &script);
	converse(&p, SMTP, buf_str(&script), SIZE_MAX);
	/* Nine replies, and the message. */
	cr_expect_eq(p.dialog.turn, 9);
	play_done(&p);
	/* Part of a reply does not: one octet a minute ends it. */
	converse(&p, SMTP, "220-mx\n220-still\n220-here\n220 m", 1);
	cr_expect_eq(p.dialog.turn, 0);
	play_done(&p);
	buf_done(&script);
}

Test(dialog_states, N3_what_was_sent_whole_may_have_arrived)
{
	struct dialog_task task;
	struct play p;

	task = play_task(&p, 1);
	play(&p, &task, "220 a\n|250 b\n|250 c\n|250 d\n|354 e\n|250");
	cr_expect_str_eq(buf_str(&p.results), "D4.4.2");
	cr_expect_not_null(strstr(buf_str(&p.texts[0]), "more than once"));
	play_done(&p);
	task = play_task(&p, 1);
	play(&p, &task, "220 a\n|250 b\n|250 c\n|250 d\n|354");
	cr_expect_null(strstr(buf_str(&p.texts[0]), "more than once"));
	play_done(&p);
}

/* ---- slices ---- */

Test(dialog_states, slices_change_nothing)
{
	struct buf script = { 0 };
	struct play whole, cut;
	enum kind kind;
	enum turn turn;
	size_t n;

	for (kind = 0; kind < NKINDS; kind++)
		for (turn = 0; turn < NTURNS; turn++)
			for (n = 1; n < 9; n++) {
				build(kind, turn, "550-5.1.1 a\n550 5.1.1 b",
				    &script);
				converse(
				    &whole, kind, buf_str(&script), SIZE_MAX);
				converse(&cut, kind, buf_str(&script), n);
				cr_expect_str_eq(
				    buf_str(&cut.said), buf_str(&whole.said));
				cr_expect_str_eq(buf_str(&cut.results),
				    buf_str(&whole.results));
				cr_expect_str_eq(cut.end, whole.end);
				play_done(&whole);
				play_done(&cut);
			}
	buf_done(&script);
}

/* ---- N6: a server out of its mind ---- */

Test(dialog_states, N6_any_octets)
{
	static const char *const words[] = { "250 ", "250-", "354 ", "550 ",
		"421 ", "220 ", "450 ", "\n", "\n|", "|", "999", "ok", "5.1.1",
		"\xff", "-", "PIPELINING", "SIZE 1", "CHUNKING" };
	struct buf script = { 0 };
	int round, n;

	for (round = 0; round < 20000; round++) {
		struct play p;

		srand(31337 + (unsigned)round);
		buf_reset(&script);
		buf_add_str(&script, round % 2 ? "220 mx\n|250-mx\n" : "");
		for (n = rand() % 40; n > 0; n--)
			buf_add_str(
			    &script, words[(size_t)rand() % ARRAY_LEN(words)]);
		converse(&p, (enum kind)((unsigned)rand() % NKINDS),
		    buf_str(&script), 1 + (size_t)rand() % 9);
		check_end(&p, buf_str(&script), (size_t)round);
		play_done(&p);
	}
	buf_done(&script);
}
