#include "deliver-smtp/dialog/steps.h"

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
step_settle_all(struct dialog *d, const struct verdict *v)
{
	uint32_t i;

	for (i = 0; i < d->task.nrcpts; i++)
		if (d->rcpts[i].state != RCPT_OVER)
			step_settle(d, i, v);
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

uint32_t
step_next_unsettled(const struct dialog *d, uint32_t from)
{
	while (from < d->task.nrcpts && d->rcpts[from].state == RCPT_OVER)
		from++;
	return from;
}

static uint32_t
next_taken(const struct dialog *d, uint32_t from)
{
	while (from < d->task.nrcpts && d->rcpts[from].state != RCPT_TAKEN)
		from++;
	return from;
}

/* ---- saying ---- */

void
step_said(struct dialog *d, int r)
{
	if (r < 0)
		d->no_memory = true;
}

static void
say_rcpt(struct dialog *d, uint32_t place)
{
	step_said(d, command_rcpt(&d->out, &d->task.rcpts[place], &d->ehlo));
}

void
step_say_quit(struct dialog *d)
{
	step_said(d, command_plain(&d->out, "QUIT"));
	d->state = DIALOG_QUIT;
}

void
step_part(struct dialog *d, bool clean)
{
	d->unanswered = false;
	if (!d->task.keep) {
		step_say_quit(d);
	} else if (clean) {
		d->end.open = true;
		d->state = DIALOG_IDLE;
	} else {
		step_said(d, command_plain(&d->out, "RSET"));
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

void
step_begin_transaction(struct dialog *d)
{
	struct command_mail mail = {
		.sender = d->task.sender,
		.eight_bit = d->task.eight_bit && !d->convert,
		.utf8 = needs_utf8(d),
		.size = d->size,
		.unsized = d->convert,
		.dsn = &d->task.dsn,
	};
	uint32_t i;

	step_said(d, command_mail(&d->out, &mail, &d->ehlo));
	d->state = DIALOG_MAIL;
	d->chunked = d->ehlo.chunking && d->task.chunking;
	d->pipelined = d->ehlo.pipelining && !d->task.lockstep && !d->chunked;
	if (!d->pipelined)
		return;
	for (i = step_next_unsettled(d, 0); i < d->task.nrcpts;
	     i = step_next_unsettled(d, i + 1))
		say_rcpt(d, i);
	step_said(d, command_plain(&d->out, "DATA"));
}

/* To the next recipient, or past the last. */
static void
advance(struct dialog *d, uint32_t from)
{
	d->state = DIALOG_RCPT;
	d->next = step_next_unsettled(d, from);
	if (d->next < d->task.nrcpts) {
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
		step_said(d, command_plain(&d->out, "DATA"));
}

void
step_begin_chunk(struct dialog *d, uint64_t size)
{
	step_said(d, command_chunk(&d->out, size));
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
	if (!d->refused) {
		d->rcpts[d->next].state = RCPT_TAKEN;
		d->accepted++;
	}
	advance(d, d->next + 1);
}

void
step_rcpt_refused(struct dialog *d, const struct smtp_reply *reply)
{
	struct verdict *v = &d->rcpts[d->next].verdict;

	verdict_refuse(v, reply, d->task.peer, step_command(d));
	/* RFC 5321 section 4.5.3.1.10: "too many recipients", if any was
	 * taken. */
	if (reply->code == 552 && d->accepted > 0)
		verdict_soften(v);
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
	step_said(d, command_plain(&d->out, "."));
	d->state = DIALOG_ABORT;
}

void
step_data_refused(struct dialog *d, const struct smtp_reply *reply)
{
	struct verdict v = { 0 };

	step_release_held(d);
	verdict_refuse(&v, reply, d->task.peer, step_command(d));
	step_settle_all(d, &v);
	verdict_done(&v);
	step_part(d, false);
}

/* A reply came before the end of the message. Nothing was accepted, and the
 * reply may be to something else: the recipients are deferred, the connection
 * is dropped. */
void
step_content_refused(struct dialog *d, const struct smtp_reply *reply)
{
	struct verdict v = { 0 };

	verdict_refuse(&v, reply, d->task.peer, step_command(d));
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
	if (d->task.lmtp)
		step_settle(d, d->next, v);
	else
		step_settle_all(d, v);
	d->next = next_taken(d, d->next);
	if (d->next == d->task.nrcpts)
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
