/* A whole dialogue against a server that says anything: each recipient is
 * reported at most once, nothing that we say can hold more than one command a
 * line, nobody is "sent" before the message was, and the end leaves nobody
 * without a verdict unless another attempt is asked for. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "deliver-smtp/dialog/dialog.h"
#include "smtp/smtp.h"

#define RCPTS_MAX 8
#define TURNS_MAX 64

struct play {
	struct dialog dialog;
	struct agent_rcpt rcpts[RCPTS_MAX];
	struct dialog_survey survey;
	bool content_sent;
	struct buf line; /* that we are saying */
};

static void
on_report(void *arg, uint32_t place, const struct verdict *v)
{
	struct play *p = arg;
	const char *text = buf_str(&v->text);

	MUST(place < p->dialog.task.nrcpts);
	MUST(!p->rcpts[place].reported);
	p->rcpts[place].reported = true;
	MUST(v->outcome != AGENT_SENT || p->content_sent);
	/* Nobody may have a message that was not sent to its end, but for our
	 * end of it. */
	MUST(!v->final || (v->outcome == AGENT_DEFERRED && p->content_sent));
	MUST(v->dsn[0] ==
	    (v->outcome == AGENT_SENT            ? '2'
		    : v->outcome == AGENT_FAILED ? '5'
						 : '4'));
	/* Addresses stand in it as they are: octets above 127 may be any. */
	MUST(address_check(text, strlen(text)) != -EILSEQ);
	MUST(strlen(text) == v->text.len && v->text.len < 2000);
}

/* Each line that we say is one of the commands, as a whole. */
static void
check_line(struct play *p, const char *line)
{
	static const char *const verbs[] = { "EHLO ", "HELO ", "LHLO ",
		"MAIL FROM:<", "RCPT TO:<", "DATA", "BDAT 7 LAST", "RSET",
		"QUIT", "." };
	size_t i;

	if (strncmp(line, "MAIL", 4) == 0)
		p->content_sent = false;
	for (i = 0; i < ARRAY_LEN(verbs); i++)
		if (strncmp(line, verbs[i], strlen(verbs[i])) == 0)
			return;
	fuzz_fail("a command", __FILE__, __LINE__);
}

static void
our_turn(struct play *p)
{
	struct dialog *d = &p->dialog;
	size_t i;

	for (i = 0; i < d->out.len; i++) {
		char c = d->out.data[i];

		MUST(buf_add_char(&p->line, c) == 0);
		if (c != '\n')
			continue;
		MUST(p->line.len >= 2 && p->line.data[p->line.len - 2] == '\r');
		p->line.data[p->line.len - 2] = '\0';
		MUST(strlen(p->line.data) == p->line.len - 2);
		MUST(strpbrk(p->line.data, "\r\n") == NULL);
		check_line(p, p->line.data);
		buf_reset(&p->line);
	}
	MUST(p->line.len == 0);
	buf_reset(&d->out);
	if (d->state == DIALOG_SURVEY) {
		dialog_surveyed(d, &p->survey);
		our_turn(p);
		return;
	}
	if (d->state == DIALOG_COUNT) {
		MUST(d->ehlo.size && !d->counted && !d->convert);
		dialog_measured(d, d->task.size + d->task.size / 2);
		our_turn(p);
		return;
	}
	if (d->state == DIALOG_MEASURE) {
		MUST(d->chunked && !d->pipelined && d->accepted > 0);
		dialog_measured(d, 7);
		our_turn(p);
		return;
	}
	if (d->state == DIALOG_CONTENT) {
		p->content_sent = true;
		dialog_content_sent(d);
	}
}

/* The connection was kept: the same recipients once more. */
static void
begin_again(struct play *p)
{
	struct dialog *d = &p->dialog;
	const struct dialog_task task = d->task;
	uint32_t i;

	MUST(d->end.open && task.keep);
	for (i = 0; i < task.nrcpts; i++) {
		MUST(p->rcpts[i].reported);
		p->rcpts[i].reported = false;
	}
	p->content_sent = false;
	MUST(dialog_again(d, &task, on_report, p) == 0);
	our_turn(p);
}

static void
speak(struct play *p, struct fuzz_in *in)
{
	unsigned turns = 0;

	while (in->left > 0 && p->dialog.state != DIALOG_CLOSED &&
	    turns++ < TURNS_MAX) {
		char *said = fuzz_string(in);
		size_t len = strlen(said);

		/* 1 stands for a NUL, which ends a turn in the input. */
		for (size_t i = 0; i < len; i++)
			said[i] = said[i] == 1 ? '\0' : said[i];
		dialog_feed(&p->dialog, said, len);
		free(said);
		our_turn(p);
		if (p->dialog.state == DIALOG_IDLE)
			begin_again(p);
	}
}

static void
finish(struct play *p, uint8_t how)
{
	struct dialog *d = &p->dialog;
	uint32_t i, left = 0;

	if (how & 1)
		dialog_abandon(d, "4.3.2", "stopping");
	dialog_lost(d, how & 2 ? DIALOG_LOST_TIMEOUT : DIALOG_LOST_CLOSED);
	MUST(d->state == DIALOG_CLOSED);
	for (i = 0; i < d->task.nrcpts; i++)
		left += !p->rcpts[i].reported;
	/* Each transaction but the last one has given a result. */
	MUST(d->transactions <= d->task.nrcpts);
	MUST(d->end.try_next + d->end.lockstep + d->end.stale <= 1);
	MUST(d->end.site_failed + d->end.site_doubted + d->end.lockstep +
		d->end.stale <=
	    1);
	MUST(left == 0 || d->end.try_next || d->end.lockstep || d->end.stale);
	MUST(!d->end.stale || (left > 0 && !d->end.site_failed));
	MUST(!d->end.open);
	MUST(!(d->end.site_failed || d->end.site_doubted) ||
	    d->end.why.text.len > 0);
}

/* Queue files have no others. */
static char *
address_of(char *s)
{
	static char other[] = "a@x";

	return address_check(s, strlen(s)) == 0 ? s : other;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	struct play p = { 0 };
	uint8_t how = (uint8_t)fuzz_number(&in, 1);
	uint8_t what = (uint8_t)fuzz_number(&in, 1);
	uint8_t found = what >> 3;
	uint16_t size_told = (uint16_t)fuzz_number(&in, 2);
	char *strings[3];
	struct dialog_task task = {
		.lmtp = how & 4,
		.lockstep = how & 8,
		.keep = how & 32,
		.eight_bit = how & 16,
		.eight = (enum conf_eight)(how >> 6) % CONF_NEIGHTS,
		.helo = "me.example",
		.peer = "mx[192.0.2.1]",
		.size = size_told & 0xfff,
		.batch = size_told >> 12 & 7,
		.chunking = size_told >> 15,
		.rcpts = p.rcpts,
		.nrcpts = 1u + what % RCPTS_MAX,
	};
	uint32_t i;

	p.survey = (struct dialog_survey){
		.fault = (enum mime_fault)(found & 3),
		.eight = found & 4,
		.header = found & 8,
		.header_utf8 = found & 16,
	};
	for (i = 0; i < ARRAY_LEN(strings); i++)
		strings[i] = fuzz_string(&in);
	task.sender = address_of(strings[0]);
	for (i = 0; i < task.nrcpts; i++)
		p.rcpts[i].address = address_of(strings[1 + i % 2]);
	MUST(dialog_init(&p.dialog, &task, on_report, &p) == 0);
	speak(&p, &in);
	finish(&p, how);
	dialog_done(&p.dialog);
	buf_done(&p.line);
	for (i = 0; i < ARRAY_LEN(strings); i++)
		free(strings[i]);
	return 0;
}
