#include "deliver-smtp/dialog/steps.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "smtp/smtp.h"

/* ---- recipients ---- */

void
step_settle(struct dialog *d, uint32_t place, const struct verdict *v)
{
	ASSERT(d->rcpts[place].state != RCPT_OVER);
	d->rcpts[place].state = RCPT_OVER;
	d->report(d->arg, place, v);
}

void
step_settle_some(
    struct dialog *d, bool taken, bool others, const struct verdict *v)
{
	uint32_t i;

	for (i = 0; i < d->task.nrcpts; i++) {
		enum rcpt_state state = d->rcpts[i].state;

		if (state != RCPT_OVER &&
		    (state == RCPT_TAKEN ? taken : others))
			step_settle(d, i, v);
	}
}

void
step_settle_all(struct dialog *d, const struct verdict *v)
{
	step_settle_some(d, true, true, v);
}

/* Replies and commands match: the verdicts held back are true. */
void
step_release_held(struct dialog *d)
{
	uint32_t i;

	if (d->refused)
		step_settle_all(d, &d->refusal);
	for (i = 0; i < d->task.nrcpts; i++)
		if (d->rcpts[i].state == RCPT_HELD)
			step_settle(d, i, &d->rcpts[i].verdict);
}

/* The first recipient at or behind `from` that has no report; nrcpts: none. */
static uint32_t
next_unsettled(const struct dialog *d, uint32_t from)
{
	while (from < d->task.nrcpts && d->rcpts[from].state == RCPT_OVER)
		from++;
	return from;
}

bool
step_is_left(const struct dialog *d)
{
	return next_unsettled(d, 0) < d->task.nrcpts;
}

static uint32_t
next_taken(const struct dialog *d, uint32_t from)
{
	while (from < d->task.nrcpts && d->rcpts[from].state != RCPT_TAKEN)
		from++;
	return from;
}

/* ---- saying ---- */

/* The octets of d->out that were not told yet. */
static size_t
take_untold(struct dialog *d, const char **ret_text)
{
	const size_t from = d->told < d->out.len ? d->told : 0;

	d->told = d->out.len;
	*ret_text = d->out.data + from;
	return d->out.len - from;
}

void
step_said(struct dialog *d, int r)
{
	const char *text;
	size_t len;

	if (r < 0)
		d->no_memory = true;
	if (d->task.said == NULL || r < 0)
		return;
	len = take_untold(d, &text);
	d->task.said(d->arg, 0, text, len);
}

void
step_say(struct dialog *d, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = buf_vprintf(&d->out, fmt, ap);
	va_end(ap);
	step_said(d, r < 0 ? r : buf_add_str(&d->out, "\r\n"));
}

/* The number of octets that a trace may show. A command, "AUTH PLAIN …", shows
 * two words. An answer to a challenge is one word and shows nothing. */
static size_t
open_words(const char *text, size_t len)
{
	const char *blank = memchr(text, ' ', len);
	size_t from;

	if (blank == NULL)
		return 0;
	from = (size_t)(blank + 1 - text);
	blank = memchr(text + from, ' ', len - from);
	return blank == NULL ? len : (size_t)(blank + 1 - text);
}

void
step_said_secret(struct dialog *d, int r)
{
	static const char hidden[] = "(hidden)";
	struct buf shown = { 0 };
	const char *text;
	size_t len, words;

	if (r < 0)
		d->no_memory = true;
	if (d->task.said == NULL || r < 0)
		return;
	len = take_untold(d, &text);
	words = open_words(text, len);
	r = buf_add(&shown, text, words);
	if (r == 0 && words < len)
		r = buf_add_str(&shown, hidden);
	if (r == 0)
		d->task.said(d->arg, 0, shown.data, shown.len);
	buf_done(&shown);
}

static void
say_rcpt(struct dialog *d, uint32_t place)
{
	step_said(d, command_rcpt(&d->out, &d->task.rcpts[place], &d->ehlo));
}

void
step_say_quit(struct dialog *d)
{
	step_say(d, "QUIT");
	d->state = DIALOG_QUIT;
}

void
step_part(struct dialog *d, bool clean)
{
	bool left = step_is_left(d);

	d->unanswered = left;
	if (clean && left) {
		step_begin_transaction(d);
	} else if (!left && !d->task.keep) {
		step_say_quit(d);
	} else if (clean) {
		d->end.open = true;
		d->state = DIALOG_IDLE;
	} else {
		step_say(d, "RSET");
		d->state = DIALOG_RSET;
	}
}

/* ---- the transaction ---- */

static bool
needs_utf8(const struct dialog *d)
{
	uint32_t i;

	if (d->surveyed && d->survey.header && d->survey.header_utf8)
		return true;
	for (i = 0; i < d->task.nrcpts; i++)
		if (d->rcpts[i].state != RCPT_OVER &&
		    smtp_path_is_utf8(d->task.rcpts[i].address))
			return true;
	return smtp_path_is_utf8(d->task.sender);
}

/* Nothing is known of this transaction yet: all recipients that are left, or
 * as many of them as the server takes. */
static void
choose_recipients(struct dialog *d)
{
	uint32_t count = 0, i;

	for (i = 0; i < d->task.nrcpts; i++)
		if (d->rcpts[i].state == RCPT_LATER)
			d->rcpts[i].state = RCPT_OPEN;
	d->batch = d->end.batch;
	d->until = 0;
	for (i = next_unsettled(d, 0);
	     i < d->task.nrcpts && (d->batch == 0 || count < d->batch);
	     i = next_unsettled(d, i + 1)) {
		d->until = i + 1;
		count++;
	}
	d->answered = d->accepted = d->put_off = 0;
	d->refused = false;
	d->transactions++;
}

void
step_begin_transaction(struct dialog *d)
{
	struct command_mail mail = {
		.sender = d->task.sender,
		.eight_bit = d->task.eight_bit && !d->convert,
		.utf8 = d->ehlo.utf8 && needs_utf8(d),
		.size = d->size,
		.unsized = d->convert,
		.dsn = &d->task.dsn,
	};
	uint32_t i;

	choose_recipients(d);
	step_said(d, command_mail(&d->out, &mail, &d->ehlo));
	d->state = DIALOG_MAIL;
	d->chunked = d->ehlo.chunking && d->task.chunking;
	d->pipelined = d->ehlo.pipelining && !d->task.lockstep && !d->chunked;
	if (!d->pipelined)
		return;
	for (i = next_unsettled(d, 0); i < d->until;
	     i = next_unsettled(d, i + 1))
		say_rcpt(d, i);
	step_say(d, "DATA");
}

/* To the next recipient, or past the last. */
static void
advance(struct dialog *d, uint32_t from)
{
	d->state = DIALOG_RCPT;
	d->next = next_unsettled(d, from);
	if (d->next < d->until) {
		if (!d->pipelined)
			say_rcpt(d, d->next);
		return;
	}
	d->state = d->chunked ? DIALOG_MEASURE : DIALOG_DATA;
	if (d->pipelined)
		return;
	if (d->accepted == 0)
		step_part(d, false);
	else if (!d->chunked)
		step_say(d, "DATA");
}

void
step_begin_chunk(struct dialog *d, uint64_t size)
{
	step_say(d, "BDAT %" PRIu64 " LAST", size);
	d->next = next_taken(d, 0);
	d->state = DIALOG_CONTENT;
}

void
step_mail_ok(struct dialog *d, const struct smtp_reply *reply UNUSED)
{
	advance(d, 0);
}

void
step_mail_refused(struct dialog *d, const struct smtp_reply *reply)
{
	verdict_refuse(&d->refusal, reply, d->task.peer, step_command(d));
	d->refused = true;
	if (d->pipelined) {
		advance(d, 0);
		return;
	}
	step_release_held(d);
	step_part(d, false);
}

void
step_rcpt_ok(struct dialog *d, const struct smtp_reply *reply UNUSED)
{
	d->answered++;
	if (!d->refused) {
		d->rcpts[d->next].state = RCPT_TAKEN;
		d->accepted++;
	}
	/* The recipients before were refused for another reason. */
	if (d->put_off > 0)
		d->end.batch = d->batch;
	d->put_off = 0;
	advance(d, d->next + 1);
}

/* RFC 5321 section 4.5.3.1.10, RFC 3463 X.5.3. Without an enhanced code the
 * mailbox may be full as well. */
enum too_many {
	TOO_MANY_NOT,
	TOO_MANY_PERHAPS,
	TOO_MANY,
};

static enum too_many
judge_too_many(const struct dialog *d, const struct smtp_reply *reply)
{
	const char *text = buf_str(&reply->text);
	size_t len = smtp_dsn_len(text, reply->text.len);
	bool code = reply->code == 452 || reply->code == 552;

	if (d->accepted == 0 || (!code && reply->code >= 500))
		return TOO_MANY_NOT;
	if (len == 0)
		return code ? TOO_MANY_PERHAPS : TOO_MANY_NOT;
	return len == 5 && strncmp(text + 1, ".5.3", 4) == 0 ? TOO_MANY
							     : TOO_MANY_NOT;
}

/* The recipient is for the next transaction, and begins it: then no other is
 * accepted before it, and the reply to it is about itself. */
static void
put_off(struct dialog *d, enum too_many judged)
{
	d->rcpts[d->next].state = RCPT_LATER;
	if (d->put_off++ == 0)
		d->room = d->answered;
	if (judged == TOO_MANY || d->put_off > 1)
		d->end.batch = d->room;
	d->answered++;
	/* Servers end a session after some refusals. */
	advance(
	    d, judged == TOO_MANY && !d->pipelined ? d->until : d->next + 1);
}

void
step_rcpt_refused(struct dialog *d, const struct smtp_reply *reply)
{
	struct verdict *v = &d->rcpts[d->next].verdict;
	enum too_many judged = judge_too_many(d, reply);

	if (judged != TOO_MANY_NOT) {
		put_off(d, judged);
		return;
	}
	d->answered++;
	verdict_refuse(v, reply, d->task.peer, step_command(d));
	if (!d->pipelined)
		step_settle(d, d->next, v);
	else if (!d->refused)
		d->rcpts[d->next].state = RCPT_HELD;
	advance(d, d->next + 1);
}

void
step_data_ok(struct dialog *d, const struct smtp_reply *reply UNUSED)
{
	step_release_held(d);
	d->next = next_taken(d, 0);
	d->state = DIALOG_CONTENT;
	if (d->next < d->task.nrcpts)
		return;
	/* Pipelined, and no recipient was accepted: RFC 2920 section 3.1. */
	step_say(d, ".");
	d->state = DIALOG_ABORT;
}

/* The verdict on the message. A server that does not want it now is not asked
 * for the recipients that are left. */
static void
settle_message(struct dialog *d, const struct verdict *v)
{
	step_settle_some(d, true, false, v);
	if (v->outcome == AGENT_DEFERRED)
		step_settle_all(d, v);
}

void
step_data_refused(struct dialog *d, const struct smtp_reply *reply)
{
	struct verdict v = { 0 };

	step_release_held(d);
	verdict_refuse(&v, reply, d->task.peer, step_command(d));
	if (d->accepted > 0)
		settle_message(d, &v);
	verdict_done(&v);
	step_part(d, false);
}

/* A reply came before the end of the message: nothing was accepted, and the
 * connection is dropped. Behind 354 a refusal is the verdict on the message. Of
 * a chunk the reply may be one too many to RCPT, so the recipients are deferred
 * there. */
void
step_content_refused(struct dialog *d, const struct smtp_reply *reply)
{
	struct verdict v = { 0 };

	verdict_refuse(&v, reply, d->task.peer, step_command(d));
	if (!d->chunked)
		step_settle_some(d, true, false, &v);
	verdict_soften(&v);
	step_settle_all(d, &v);
	verdict_done(&v);
	d->state = DIALOG_CLOSED;
}

void
step_content_ok(struct dialog *d, const struct smtp_reply *reply UNUSED)
{
	step_protocol_error(d, "a reply without a command");
}

/* RFC 2033 section 4.2: LMTP has a reply for each recipient, in turn. */
static void
finish(struct dialog *d, const struct verdict *v)
{
	if (d->task.lmtp) {
		step_settle(d, d->next, v);
		d->next = next_taken(d, d->next);
		if (d->next < d->task.nrcpts)
			return;
	} else {
		settle_message(d, v);
	}
	step_part(d, true);
}

void
step_dot_ok(struct dialog *d, const struct smtp_reply *reply)
{
	struct verdict v = { 0 };

	verdict_accept(&v, reply);
	v.passed_on = d->ehlo.dsn;
	finish(d, &v);
	verdict_done(&v);
}

void
step_dot_refused(struct dialog *d, const struct smtp_reply *reply)
{
	struct verdict v = { 0 };

	verdict_refuse(&v, reply, d->task.peer, step_command(d));
	finish(d, &v);
	verdict_done(&v);
}

/* Before a kept connection the results stand; before the next transaction the
 * recipients that are left need another connection. */
void
step_rset_refused(struct dialog *d, const struct smtp_reply *reply)
{
	if (reply->code < 400)
		step_set_protocol_error(d, "a reply without a command");
	else
		verdict_refuse(
		    &d->end.why, reply, d->task.peer, step_command(d));
	verdict_soften(&d->end.why);
	d->end.stale = step_is_left(d);
	d->state = DIALOG_CLOSED;
}
