/* One fault at every place of every conversation, from the greeting with
 * STARTTLS and AUTH to QUIT: the end, silence, a reply that is missing, or said
 * twice at once, and every class of codes. Of two recipients the server takes
 * the first and refuses the second: whatever goes wrong, neither has the
 * other's result. */
#include "tests/unit/deliver-smtp/play.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define TURNS_MAX 16

static char user[] = "user", secret[] = "Gr4ss-green", key[] = "mx";
static const struct credential password = { key, user, secret, false, 1 };

enum how {
	LMTP = 1,
	PIPELINED = 2, /* what belongs together comes in one piece */
	CHUNKS = 4,
	SECURE = 8, /* STARTTLS and AUTH */
	EIGHT = 16,
};

/* Replies in order; the one of RCPT of b, and the last one of the message. */
static const struct conversation {
	const char *name;
	int how;
	size_t refused, last;
	const char *replies[TURNS_MAX];
} conversations[] = {
	{ "SMTP", 0, 4, 6,
	    { "220 mx", "250 mx", "250 ok", "250 ok", "550 5.1.1 b", "354 go",
		"250 2.0.0 queued", "221 bye" } },
	{ "HELO", 0, 5, 7,
	    { "220 mx", "502 what", "250 mx", "250 ok", "250 ok", "550 5.1.1 b",
		"354 go", "250 2.0.0 queued", "221 bye" } },
	{ "pipelined", PIPELINED, 4, 6,
	    { "220 mx", "250-mx\n250 PIPELINING", "250 ok", "250 ok",
		"550 5.1.1 b", "354 go", "250 2.0.0 queued", "221 bye" } },
	{ "LMTP", LMTP | PIPELINED, 4, 6,
	    { "220 mx", "250-mx\n250 PIPELINING", "250 ok", "250 ok",
		"550 5.1.1 b", "354 go", "250 2.0.0 queued", "221 bye" } },
	{ "chunked", CHUNKS, 4, 5,
	    { "220 mx", "250-mx\n250-PIPELINING\n250 CHUNKING", "250 ok",
		"250 ok", "550 5.1.1 b", "250 2.0.0 queued", "221 bye" } },
	{ "STARTTLS and AUTH", SECURE, 9, 11,
	    { "220 mx", "250-mx\n250 STARTTLS", "220 go",
		"250-mx\n250 AUTH LOGIN", "334 VXNlcm5hbWU6",
		"334 UGFzc3dvcmQ6", "235 ok", "250 ok", "250 ok", "550 5.1.1 b",
		"354 go", "250 2.0.0 queued", "221 bye" } },
	{ "8 bit for a server of 7 bit", EIGHT, 4, 6,
	    { "220 mx", "250-mx\n250 SIZE", "250 ok", "250 ok", "550 5.1.1 b",
		"354 go", "250 2.0.0 queued", "221 bye" } },
};

static size_t
count(const struct conversation *c)
{
	size_t n = 0;

	while (n < TURNS_MAX && c->replies[n] != NULL)
		n++;
	return n;
}

/* Is this reply followed by another, whose command was sent with its own? */
static bool
goes_on(const struct conversation *c, size_t turn)
{
	return (c->how & PIPELINED) != 0 && turn >= 2 && turn < 5;
}

struct fault {
	size_t at;        /* a turn; TURNS_MAX: none */
	const char *text; /* instead of its reply; NULL: no reply, "": twice */
};

static void
add_turn(const struct conversation *c, size_t turn, const struct fault *f,
    struct buf *out)
{
	const char *reply = c->replies[turn];
	bool here = turn == f->at;

	if (!here || (f->text != NULL && *f->text == '\0'))
		buf_printf(out, "%s\n", reply);
	if (here && f->text != NULL)
		buf_printf(out, "%s\n", *f->text == '\0' ? reply : f->text);
	if (!goes_on(c, turn))
		buf_add_char(out, '|');
}

static void
build(const struct conversation *c, const struct fault *f, struct buf *out)
{
	size_t turn;

	buf_reset(out);
	for (turn = 0; turn < count(c); turn++)
		add_turn(c, turn, f, out);
}

static struct dialog_task
task_of(struct play *p, const struct conversation *c)
{
	struct dialog_task task = play_task(p, 2);

	task.lmtp = (c->how & LMTP) != 0;
	task.chunking = (c->how & CHUNKS) != 0;
	task.eight_bit = (c->how & EIGHT) != 0;
	p->survey.eight = true;
	task.auth_soft = true;
	if ((c->how & SECURE) != 0) {
		task.tls = TLS_LEVEL_VERIFY;
		task.credential = &password;
	}
	return task;
}

static void
converse(struct play *p, const struct conversation *c, const char *script)
{
	const struct dialog_task task = task_of(p, c);

	play(p, &task, script);
}

/* Nothing of the message, and no password, is said in the clear. */
static void
check_said(const struct play *p, const struct conversation *c)
{
	const char *said = buf_str(&p->said), *tls = strstr(said, "{tls}");
	const char *at;
	size_t i;
	static const char *const words[] = { "AUTH", "MAIL", "RCPT", "DATA" };

	if ((c->how & SECURE) == 0)
		return;
	for (i = 0; i < ARRAY_LEN(words); i++) {
		at = strstr(said, words[i]);
		cr_expect(at == NULL || (tls != NULL && tls < at), "%s: %s",
		    c->name, said);
	}
}

/* All have a report, or none has and there is somewhere to go on; what was not
 * sent is not accepted; and neither has what was said of the other. */
static void
check(const struct play *p, const struct conversation *c, const char *script)
{
	const char *results = buf_str(&p->results);
	const struct dialog_end *e = &p->dialog.end;
	bool left = strchr(results, '-') != NULL;
	const char *a = results, *b = strchr(results, ' ') + 1;

	cr_expect_eq(left, e->try_next || e->lockstep, "%s: %s: %s", c->name,
	    script, results);
	cr_expect(*b != 'S', "%s: %s: %s", c->name, script, results);
	cr_expect(*a != 'S' || strstr(buf_str(&p->said), "{con") != NULL,
	    "%s: %s: %s", c->name, script, results);
	cr_expect_null(strstr(buf_str(&p->texts[0]), secret));
	check_said(p, c);
}

static void
run(const struct conversation *c, const struct buf *script)
{
	struct play p;

	converse(&p, c, buf_str(script));
	check(&p, c, buf_str(script));
	play_done(&p);
}

#define EACH(c)                   \
	for ((c) = conversations; \
	     (c) < conversations + ARRAY_LEN(conversations); (c)++)

Test(dialog_every, conversations_go_well)
{
	const struct fault none = { TURNS_MAX, NULL };
	const struct conversation *c;
	struct buf script = { 0 };
	struct play p;

	EACH(c)
	{
		build(c, &none, &script);
		converse(&p, c, buf_str(&script));
		cr_expect_str_eq(buf_str(&p.results), "S2.0.0 F5.1.1", "%s: %s",
		    c->name, buf_str(&p.results));
		cr_expect_str_eq(p.end, "", "%s", c->name);
		play_done(&p);
	}
	buf_done(&script);
}

static void
cut_everywhere(const struct conversation *c, const char *tail)
{
	const struct fault none = { TURNS_MAX, NULL };
	struct buf whole = { 0 }, script = { 0 };
	size_t at;

	build(c, &none, &whole);
	for (at = 0; at < whole.len; at++) {
		buf_reset(&script);
		buf_add(&script, whole.data, at);
		buf_add_str(&script, tail);
		run(c, &script);
	}
	buf_done(&whole);
	buf_done(&script);
}

Test(dialog_every, N3_N4_the_end_and_silence_at_every_octet)
{
	const struct conversation *c;

	EACH(c)
	{
		cut_everywhere(c, "");
		cut_everywhere(c, "!");
		cut_everywhere(c, "#");
	}
}

/* a was not refused, whatever came twice or not at all. */
static void
run_for_a(const struct conversation *c, const struct buf *script)
{
	struct play p;

	converse(&p, c, buf_str(script));
	check(&p, c, buf_str(script));
	cr_expect_neq(strncmp(buf_str(&p.results), "F5.1.1", 6), 0,
	    "%s: %s: %s", c->name, buf_str(script), buf_str(&p.results));
	play_done(&p);
}

static void
fault_everywhere(const struct conversation *c, const char *text)
{
	struct buf script = { 0 };
	struct fault f = { 0, text };

	for (f.at = 0; f.at < count(c); f.at++) {
		build(c, &f, &script);
		run_for_a(c, &script);
	}
	buf_done(&script);
}

Test(dialog_every, N7_N9_a_reply_twice_at_once_at_every_place)
{
	const struct conversation *c;

	EACH(c)
	{
		fault_everywhere(c, "");
	}
}

/* In lock-step a reply that is missing is silence: nothing follows it. */
Test(dialog_every, N9_a_reply_missing_at_every_place)
{
	const struct conversation *c;

	EACH(c)
	{
		if ((c->how & PIPELINED) != 0)
			fault_everywhere(c, NULL);
	}
}

/* Another class than the state has ends the dialogue: a yes that is none
 * accepts nothing. Where b is answered, the answer is b's. */
Test(dialog_every, N5_N6_every_class_of_codes_at_every_place)
{
	static const char *const said[] = { "000 a", "100 a", "199 a", "200 a",
		"220 a", "235 a", "250 a", "252 a", "299 a", "300 a", "334 a",
		"354 a", "399 a", "421 a", "450 a", "499 a", "500 a", "550 a",
		"599 a", "600 a", "999 a", "2500 a", "25 a", "-50 a", "250a",
		"250-a\n550 a", "250-a\n250", "250", "\x01", "250 \xff\xc3\x28",
		"ok" };
	const struct conversation *c;
	struct buf script = { 0 };
	struct fault f;
	size_t i;

	EACH(c)
	{
		for (i = 0; i < ARRAY_LEN(said); i++)
			for (f.at = 0; f.at < count(c); f.at++) {
				f.text = said[i];
				if (f.at == c->refused)
					continue;
				build(c, &f, &script);
				run(c, &script);
			}
	}
	buf_done(&script);
}

/* Up to this turn, and ours behind the one before it. */
static void
come_to(struct play *p, const struct conversation *c, size_t turn)
{
	const struct fault none = { TURNS_MAX, NULL };
	const struct dialog_task task = task_of(p, c);
	struct buf script = { 0 };
	size_t i;

	for (i = 0; i < turn; i++)
		add_turn(c, i, &none, &script);
	buf_add_str(&script, "||");
	play_begin(p, &task, buf_str(&script));
	buf_done(&script);
}

/* The time limit begins anew with a whole reply, not with an octet of one. */
Test(dialog_every, N4_an_octet_now_and_then_at_every_place)
{
	const struct conversation *c;
	size_t turn, i, len;

	EACH(c)
	{
		for (turn = 0; turn < count(c); turn++) {
			const char *reply = c->replies[turn];
			struct play p;
			uint32_t before;

			come_to(&p, c, turn);
			before = p.dialog.turn;
			len = strlen(reply);
			for (i = 0; i < len; i++) {
				if (reply[i] == '\n')
					dialog_feed(&p.dialog, "\r", 1);
				dialog_feed(&p.dialog, reply + i, 1);
				cr_expect_eq(p.dialog.turn, before,
				    "%s, %s at %zu", c->name, reply, i);
			}
			dialog_feed(&p.dialog, "\r\n", 2);
			cr_expect_neq(
			    p.dialog.turn, before, "%s, %s", c->name, reply);
			play_done(&p);
		}
	}
}

/* A line, or a reply, without end: the dialogue is over long before 64 KiB, and
 * nothing of it was taken for an answer. */
Test(dialog_every, N6_a_reply_without_end_at_every_place)
{
	static const char *const words[] = { "x", "250-x\r\n", "250-x\n",
		"334-", "\r", "\xff" };
	const struct conversation *c;
	size_t turn, i, fed;

	EACH(c)
	{
		for (turn = 0; turn < count(c); turn++)
			for (i = 0; i < ARRAY_LEN(words); i++) {
				struct play p;

				come_to(&p, c, turn);
				for (fed = 0; fed < 65536 &&
				     p.dialog.state != DIALOG_CLOSED;
				     fed += strlen(words[i]))
					dialog_feed(&p.dialog, words[i],
					    strlen(words[i]));
				cr_expect_eq(p.dialog.state, DIALOG_CLOSED,
				    "%s, %zu: %s", c->name, turn, words[i]);
				cr_expect(turn > c->last ||
					!p.rcpts[0].reported ||
					p.got[0].outcome == AGENT_DEFERRED,
				    "%s, %zu: %s", c->name, turn, words[i]);
				play_done(&p);
			}
	}
}

/* Octets that came with the reply to STARTTLS, any number of them, and those
 * that came before it. */
Test(dialog_every, N7_N8_octets_around_STARTTLS)
{
	static const char words[] =
	    "250-mx\n250 AUTH LOGIN\n334 a\n334 b\n"
	    "235 c\n250 d\n250 e\n250 f\n354 g\n250 h\n";
	struct buf script = { 0 };
	struct play p;
	size_t n;

	for (n = 1; n < sizeof(words); n++) {
		buf_reset(&script);
		buf_add_str(
		    &script, "220 mx\n|250-mx\n250 STARTTLS\n|220 go\n");
		buf_add(&script, words, n);
		converse(&p, &conversations[5], buf_str(&script));
		cr_expect_str_eq(buf_str(&p.results), "- -", "%zu", n);
		cr_expect_str_eq(p.end, "site next", "%zu", n);
		cr_expect_null(strstr(buf_str(&p.said), "{tls}"), "%zu", n);
		play_done(&p);
	}
	buf_done(&script);
}
