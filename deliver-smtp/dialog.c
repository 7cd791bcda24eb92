#include "deliver-smtp/dialog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "deliver-smtp/steps.h"

/* The fate of recipients when the connection ends in a state. */
enum fate {
	FATE_NEXT,    /* unreported: another address may do better */
	FATE_COMMAND, /* deferred; unreported when pipelined */
	FATE_BODY,    /* deferred */
	FATE_UNKNOWN, /* deferred, and perhaps delivered */
	FATE_NOTHING, /* none is left, and nothing has failed */
};

struct row {
	const char *command; /* "in reply to …" */
	const char *doing;   /* "lost connection while …" */
	enum fate fate;
	unsigned ok; /* the class of reply that goes on */
	step_fn *on_ok, *on_refused;
};
static const struct row rows[DIALOG_NSTATES];

const char *
step_command(const struct dialog *d)
{
	if (d->state == DIALOG_EHLO && d->task.lmtp)
		return "LHLO";
	return rows[d->state].command;
}

/* ---- ends ---- */

/* The connection is of no use any more; d->end.why was set. */
static void
give_up(struct dialog *d)
{
	enum fate fate = rows[d->state].fate;

	if (fate == FATE_UNKNOWN)
		(void)buf_add_str(&d->end.why.text,
		    " -- the message may be sent more than once");
	d->state = DIALOG_CLOSED;
	d->end.open = false;
	if (d->unanswered) {
		d->end.stale = true;
		return;
	}
	d->end.site_failed = fate != FATE_NOTHING;
	d->end.try_next = fate == FATE_NEXT;
	d->end.lockstep = fate == FATE_COMMAND && d->pipelined;
	if (!d->end.try_next && !d->end.lockstep)
		step_settle_all(d, &d->end.why);
}

void
step_protocol_error(struct dialog *d, const char *what)
{
	verdict_set(&d->end.why, AGENT_DEFERRED, "4.5.0",
	    "protocol error of %s while %s: %s", d->task.peer,
	    rows[d->state].doing, what);
	give_up(d);
}

/* A refusing greeting, EHLO, or 421 before a transaction. Other addresses may
 * be willing, and the site's trouble is not the message's: deferred. */
static void
refuse_site(struct dialog *d, const struct smtp_reply *reply)
{
	struct verdict *why = &d->end.why;

	verdict_refuse(why, reply, d->task.peer, step_command(d));
	verdict_soften(why);
	if (reply->code != 421)
		step_say_quit(d);
	d->end.site_failed = true;
	d->end.try_next = true;
	d->state = DIALOG_CLOSED;
}

/* Does the reply speak of the connection? What refuses MAIL over one that was
 * kept may: "too many messages", or what the server said when its patience
 * ended. Nobody's mail is returned for that. */
static bool
ends_connection(const struct dialog *d, const struct smtp_reply *reply)
{
	return reply->code == 421 || (d->unanswered && reply->code >= 400);
}

static void
on_end_of_connection(struct dialog *d, const struct smtp_reply *reply)
{
	if (rows[d->state].fate == FATE_NEXT) {
		refuse_site(d, reply);
		return;
	}
	verdict_refuse(&d->end.why, reply, d->task.peer, step_command(d));
	if (d->unanswered) {
		give_up(d);
		return;
	}
	step_release_held(d);
	step_settle_all(d, &d->end.why);
	d->end.site_failed = true;
	d->state = DIALOG_CLOSED;
}

/* ---- the handshake ---- */

static void
say_hello(struct dialog *d, const char *verb, enum dialog_state state)
{
	step_said(d, command_hello(&d->out, verb, d->task.helo));
	d->state = state;
}

static void
greeting_ok(struct dialog *d, const struct smtp_reply *reply UNUSED)
{
	say_hello(d, d->task.lmtp ? "LHLO" : "EHLO", DIALOG_EHLO);
}

static void
ehlo_refused(struct dialog *d, const struct smtp_reply *reply)
{
	if (reply->code >= 500 && !d->task.lmtp)
		say_hello(d, "HELO", DIALOG_HELO);
	else
		refuse_site(d, reply);
}

static void
screen(struct dialog *d)
{
	const struct dialog_task *t = &d->task;
	struct verdict v = { 0 };
	uint32_t i;

	if (screen_message(t->sender, t->size, t->peer, &d->ehlo, &v))
		step_settle_all(d, &v);
	for (i = 0; i < t->nrcpts; i++)
		if (d->rcpts[i].state != RCPT_OVER &&
		    screen_recipient(
			t->rcpts[i].address, t->peer, &d->ehlo, &v))
			step_settle(d, i, &v);
	verdict_done(&v);
}

static void
begin(struct dialog *d)
{
	screen(d);
	if (step_next_unsettled(d, 0) == d->task.nrcpts)
		step_part(d, true);
	else
		step_begin_transaction(d);
}

static void
ehlo_ok(struct dialog *d, const struct smtp_reply *reply)
{
	d->handshaken = true;
	if (d->state == DIALOG_EHLO)
		smtp_ehlo_parse(reply, &d->ehlo);
	begin(d);
}

static void
abort_over(struct dialog *d, const struct smtp_reply *reply UNUSED)
{
	step_part(d, true);
}

static void
rset_ok(struct dialog *d, const struct smtp_reply *reply UNUSED)
{
	step_part(d, true);
}

static void
quit_over(struct dialog *d, const struct smtp_reply *reply UNUSED)
{
	d->state = DIALOG_CLOSED;
}

/* ---- the table ---- */

/* clang-format off */
static const struct row rows[DIALOG_NSTATES] = {
	[DIALOG_GREETING] = { "the greeting", "receiving the greeting",
	    FATE_NEXT, 2, greeting_ok, refuse_site },
	[DIALOG_EHLO] = { "EHLO", "performing the handshake",
	    FATE_NEXT, 2, ehlo_ok, ehlo_refused },
	[DIALOG_HELO] = { "HELO", "performing the handshake",
	    FATE_NEXT, 2, ehlo_ok, refuse_site },
	[DIALOG_MAIL] = { "MAIL FROM", "sending MAIL FROM",
	    FATE_COMMAND, 2, step_mail_ok, step_mail_refused },
	[DIALOG_RCPT] = { "RCPT TO", "sending RCPT TO",
	    FATE_COMMAND, 2, step_rcpt_ok, step_rcpt_refused },
	[DIALOG_DATA] = { "DATA", "sending DATA",
	    FATE_COMMAND, 3, step_data_ok, step_data_refused },
	[DIALOG_CONTENT] = { "an unfinished message", "sending the message",
	    FATE_BODY, 2, step_content_ok, step_content_refused },
	[DIALOG_DOT] = { "end of message", "sending end of message",
	    FATE_UNKNOWN, 2, step_dot_ok, step_dot_refused },
	[DIALOG_ABORT] = { "end of an empty message", "sending an empty message",
	    FATE_BODY, 2, abort_over, abort_over },
	[DIALOG_RSET] = { "RSET", "sending RSET",
	    FATE_NOTHING, 2, rset_ok, quit_over },
	[DIALOG_IDLE] = { "nothing", "waiting for more mail",
	    FATE_NOTHING, 2, quit_over, quit_over },
	[DIALOG_QUIT] = { "QUIT", "sending QUIT",
	    FATE_NOTHING, 2, quit_over, quit_over },
	[DIALOG_CLOSED] = { "nothing", "closing",
	    FATE_NOTHING, 2, quit_over, quit_over },
};
/* clang-format on */

/* ---- events ---- */

static void
check_memory(struct dialog *d)
{
	if (!d->no_memory)
		return;
	d->no_memory = false;
	buf_reset(&d->out);
	dialog_abandon(d, "4.3.0", "out of memory");
}

static int
take_task(struct dialog *d, const struct dialog_task *task,
    dialog_report_fn *report, void *arg)
{
	uint32_t i;

	d->rcpts = calloc(task->nrcpts, sizeof(*d->rcpts));
	if (d->rcpts == NULL)
		return -ENOMEM;
	d->task = *task;
	d->report = report;
	d->arg = arg;
	for (i = 0; i < task->nrcpts; i++)
		if (task->rcpts[i].reported)
			d->rcpts[i].state = RCPT_OVER;
	return 0;
}

static void
drop_task(struct dialog *d)
{
	uint32_t i;

	for (i = 0; d->rcpts != NULL && i < d->task.nrcpts; i++)
		verdict_done(&d->rcpts[i].verdict);
	free(d->rcpts);
	d->rcpts = NULL;
	verdict_done(&d->refusal);
	verdict_done(&d->end.why);
}

int
dialog_init(struct dialog *d, const struct dialog_task *task,
    dialog_report_fn *report, void *arg)
{
	memset(d, 0, sizeof(*d));
	smtp_reply_init(&d->parser);
	return take_task(d, task, report, arg);
}

int
dialog_again(struct dialog *d, const struct dialog_task *task,
    dialog_report_fn *report, void *arg)
{
	int r;

	ASSERT(d->state == DIALOG_IDLE);
	drop_task(d);
	d->end = (struct dialog_end){ 0 };
	d->next = d->accepted = 0;
	d->pipelined = d->refused = d->early = false;
	r = take_task(d, task, report, arg);
	if (r < 0)
		return r;
	d->unanswered = true;
	begin(d);
	check_memory(d);
	return 0;
}

void
dialog_part(struct dialog *d)
{
	ASSERT(d->state == DIALOG_IDLE);
	step_say_quit(d);
}

void
dialog_done(struct dialog *d)
{
	drop_task(d);
	buf_done(&d->out);
	smtp_reply_done(&d->parser);
}

static void
go_on(struct dialog *d, const struct smtp_reply *reply)
{
	const struct row *row = &rows[d->state];

	d->unanswered = false;
	if (reply->code / 100 == row->ok)
		row->on_ok(d, reply);
	else
		row->on_refused(d, reply);
}

static void
take_reply(struct dialog *d, const struct smtp_reply *reply)
{
	const struct row *row = &rows[d->state];
	unsigned class = reply->code / 100;
	bool early = d->early;

	d->early = false;
	d->turn++;
	if (row->fate == FATE_NOTHING)
		(class == row->ok && !early ? row->on_ok : quit_over)(d, reply);
	else if (ends_connection(d, reply))
		on_end_of_connection(d, reply);
	else if (early)
		step_protocol_error(d, "a reply without a command");
	else if (class != row->ok && class != 4 && class != 5)
		step_protocol_error(d, "a reply of the wrong kind");
	else
		go_on(d, reply);
}

/* Are replies to come whose commands were sent before the last reply? */
static bool
replies_due(const struct dialog *d)
{
	if (d->state == DIALOG_DOT)
		return true;
	return d->pipelined &&
	    (d->state == DIALOG_RCPT || d->state == DIALOG_DATA);
}

void
dialog_feed(struct dialog *d, const char *data, size_t len)
{
	size_t used;
	int r;

	while (len > 0 && d->state != DIALOG_CLOSED) {
		if (d->state == DIALOG_IDLE) { /* nothing was asked */
			d->end.open = false;
			d->state = DIALOG_CLOSED;
			return;
		}
		r = smtp_reply_feed(&d->parser, data, len, &used);
		if (r == -EPROTO)
			step_protocol_error(d, d->parser.error);
		else if (r < 0)
			d->no_memory = true;
		else if (r == 1)
			take_reply(d, &d->parser.reply);
		check_memory(d);
		if (r != 1)
			return;
		data += used;
		len -= used;
		d->early = len > 0 && !replies_due(d);
	}
}

void
dialog_content_sent(struct dialog *d)
{
	ASSERT(d->state == DIALOG_CONTENT);
	d->state = DIALOG_DOT;
	d->turn++;
}

void
dialog_lost(struct dialog *d, enum dialog_lost why)
{
	if (d->state == DIALOG_CLOSED)
		return;
	if (why == DIALOG_LOST_TIMEOUT)
		verdict_set(&d->end.why, AGENT_DEFERRED, "4.4.2",
		    "conversation with %s timed out while %s", d->task.peer,
		    rows[d->state].doing);
	else
		verdict_set(&d->end.why, AGENT_DEFERRED, "4.4.2",
		    "lost connection with %s while %s", d->task.peer,
		    rows[d->state].doing);
	give_up(d);
}

void
dialog_abandon(struct dialog *d, const char *dsn, const char *text)
{
	if (d->state == DIALOG_CLOSED)
		return;
	verdict_set(&d->end.why, AGENT_DEFERRED, dsn, "%s", text);
	give_up(d);
	d->end.site_failed = d->end.try_next = d->end.lockstep = false;
	d->end.stale = d->end.open = false;
	step_settle_all(d, &d->end.why);
}
