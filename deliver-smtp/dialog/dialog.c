#include "deliver-smtp/dialog/dialog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "deliver-smtp/dialog/steps.h"

struct row {
	unsigned ok; /* the class of reply that goes on; 0: none */
	step_fn *on_ok, *on_refused;
	step_fn *on_more; /* 3xx where ok is 2, or NULL */
};

/* ---- other replies ---- */

static void
nothing_open(struct dialog *d, const struct smtp_reply *reply UNUSED)
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
	[DIALOG_GREETING] = { 2, step_greeting_ok, step_refuse_site, NULL },
	[DIALOG_EHLO] = { 2, step_ehlo_ok, step_ehlo_refused, NULL },
	[DIALOG_HELO] = { 2, step_ehlo_ok, step_refuse_site, NULL },
	[DIALOG_STARTTLS] = { 2, step_starttls_ok, step_refuse_site, NULL },
	[DIALOG_TLS] = { 2, step_refuse_site, step_refuse_site, NULL },
	[DIALOG_AUTH] = { 2, step_auth_ok, step_auth_refused, step_auth_more },
	[DIALOG_SURVEY] = { 0, step_content_ok, step_refuse_site, NULL },
	[DIALOG_COUNT] = { 0, step_content_ok, step_refuse_site, NULL },
	[DIALOG_MAIL] = { 2, step_mail_ok, step_mail_refused, NULL },
	[DIALOG_RCPT] = { 2, step_rcpt_ok, step_rcpt_refused, NULL },
	[DIALOG_DATA] = { 3, step_data_ok, step_data_refused, NULL },
	[DIALOG_MEASURE] = { 0, step_content_ok, step_content_refused, NULL },
	[DIALOG_CONTENT] = { 2, step_content_ok, step_content_refused, NULL },
	[DIALOG_DOT] = { 2, step_dot_ok, step_dot_refused, NULL },
	[DIALOG_ABORT] = { 2, nothing_open, nothing_open, NULL },
	[DIALOG_RSET] = { 2, nothing_open, step_rset_refused, NULL },
	[DIALOG_IDLE] = { 2, quit_over, quit_over, NULL },
	[DIALOG_QUIT] = { 2, quit_over, quit_over, NULL },
	[DIALOG_CLOSED] = { 2, quit_over, quit_over, NULL },
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
	d->size = task->size;
	d->report = report;
	d->arg = arg;
	d->end.batch = task->batch;
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
	if (task->implicit)
		d->state = DIALOG_TLS;
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
	d->next = d->accepted = d->transactions = 0;
	d->pipelined = d->refused = d->early = d->blamed = false;
	d->surveyed = d->whole = d->convert = d->chunked = d->counted = false;
	r = take_task(d, task, report, arg);
	if (r < 0)
		return r;
	d->unanswered = true;
	step_begin(d);
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
	buf_wipe(&d->out);
	auth_done(&d->auth);
	smtp_reply_done(&d->parser);
}

static bool
asks_for_more(const struct row *row, const struct smtp_reply *reply)
{
	return row->on_more != NULL && reply->code / 100 == 3;
}

static void
go_on(struct dialog *d, const struct smtp_reply *reply)
{
	const struct row *row = &rows[d->state];

	d->unanswered = false;
	if (d->state >= DIALOG_MAIL) {
		d->mail_answered = true;
		d->blamed = d->blamed || reply->code >= 400;
	}
	if (reply->code / 100 == row->ok)
		row->on_ok(d, reply);
	else if (asks_for_more(row, reply))
		row->on_more(d, reply);
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
	if (step_fate(d) == FATE_NOTHING)
		(class == row->ok && !early ? row->on_ok : row->on_refused)(
		    d, reply);
	else if (step_is_end(d, reply))
		step_end_connection(d, reply);
	else if (early)
		step_refuse_early(d, "a reply without a command");
	else if (class != row->ok && class != 4 && class != 5 &&
	    !asks_for_more(row, reply))
		step_refuse_mismatch(d, "a reply of the wrong kind");
	else
		go_on(d, reply);
}

/* The words of a mechanism, in a reply 334, may hold half of a secret. */
static void
tell_reply(struct dialog *d, const struct smtp_reply *reply)
{
	static const char hidden[] = "(hidden)";

	if (d->task.said == NULL)
		return;
	if (d->state == DIALOG_AUTH && reply->code / 100 == 3)
		d->task.said(d->arg, reply->code, hidden, strlen(hidden));
	else
		d->task.said(d->arg, reply->code, buf_str(&reply->text),
		    reply->text.len);
}

static void
take_whole(struct dialog *d)
{
	struct smtp_reply *reply = &d->parser.reply;
	/* An offer and a challenge are shown to nobody, and a short secret may
	 * be a part of them. */
	const bool shown =
	    !(d->state == DIALOG_EHLO && reply->code / 100 == 2) &&
	    !(d->state == DIALOG_AUTH && reply->code / 100 == 3);

	if (d->task.credential != NULL && shown)
		auth_hide(&d->auth, d->task.credential, &reply->text);
	tell_reply(d, reply);
	take_reply(d, reply);
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

/* Is another reply there behind the last one of a transaction in one piece? So
 * one of them is a reply too many, and this one may be any command's. */
static bool
is_too_many(const struct dialog *d, size_t left)
{
	return left > 0 && d->pipelined && d->state == DIALOG_DATA;
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
		if (d->state == DIALOG_TLS) {
			step_refuse_early(d, "octets in the clear before TLS");
			return;
		}
		r = smtp_reply_feed(&d->parser, data, len, &used);
		if (r == -EPROTO)
			step_protocol_error(d, d->parser.error);
		else if (r < 0)
			d->no_memory = true;
		else if (r == 1 && is_too_many(d, len - used))
			step_refuse_mismatch(d, "a reply too many");
		else if (r == 1)
			take_whole(d);
		check_memory(d);
		if (r != 1)
			return;
		data += used;
		len -= used;
		d->early = len > 0 && !replies_due(d);
	}
}

void
dialog_surveyed(struct dialog *d, const struct dialog_survey *survey)
{
	ASSERT(d->state == DIALOG_SURVEY);
	d->survey = *survey;
	d->surveyed = true;
	d->turn++;
	step_begin(d);
	check_memory(d);
}

void
dialog_measured(struct dialog *d, uint64_t size)
{
	d->turn++;
	if (d->state == DIALOG_COUNT) {
		d->size = size;
		d->counted = true;
		step_begin(d);
	} else {
		ASSERT(d->state == DIALOG_MEASURE);
		step_begin_chunk(d, size);
	}
	check_memory(d);
}

void
dialog_secured(struct dialog *d)
{
	ASSERT(d->state == DIALOG_TLS);
	smtp_reply_done(&d->parser);
	smtp_reply_init(&d->parser);
	d->ehlo = (struct smtp_ehlo){ 0 };
	d->secure = true;
	d->early = false;
	d->turn++;
	if (d->task.implicit)
		d->state = DIALOG_GREETING;
	else
		step_greeting_ok(d, NULL);
	check_memory(d);
}

void
dialog_insecure(struct dialog *d, const char *why)
{
	ASSERT(d->state == DIALOG_TLS);
	verdict_set(&d->end.why, AGENT_DEFERRED, "4.7.5",
	    "TLS with host %s failed: %s", d->task.peer, why);
	step_give_up(d);
}

void
dialog_content_sent(struct dialog *d)
{
	static const char content[] = "(the message)";

	ASSERT(d->state == DIALOG_CONTENT);
	if (d->task.said != NULL)
		d->task.said(d->arg, 0, content, strlen(content));
	d->state = DIALOG_DOT;
	d->turn++;
}
