#include "deliver-smtp/dialog/steps.h"

/* ---- ends ---- */

static bool
is_before_mail(const struct dialog *d)
{
	enum step_fate fate = step_fate(d);

	return !d->unanswered && (fate == FATE_NEXT || fate == FATE_TLS);
}

/* No transaction has begun here, and none will. */
void
step_leave_site(struct dialog *d)
{
	if (d->state == DIALOG_AUTH && d->auth_refused) {
		step_auth_end(d);
		return;
	}
	if (step_fate(d) == FATE_TLS && d->task.fall_back)
		d->end.in_clear = true;
	else
		d->end.site_failed = d->end.try_next = true;
	d->end.insecure |=
	    step_fate(d) == FATE_TLS && d->task.tls >= TLS_LEVEL_ENCRYPT;
	d->state = DIALOG_CLOSED;
}

/* The connection ended in a transaction (docs/DELIVERY.md, "The
 * conversation"). A server that has refused enough of one message may hang up:
 * that is the message's fault. */
static void
judge_site(struct dialog *d)
{
	d->end.site_failed = !d->mail_answered;
	d->end.site_doubted = d->mail_answered && !d->blamed;
}

/* The message was sent, and has no reply: the server may have taken it. The
 * recipients of further transactions were not spoken of. */
static void
settle_unknown(struct dialog *d)
{
	step_settle_some(d, false, true, &d->end.why);
	(void)buf_add_str(
	    &d->end.why.text, " -- the message may be sent more than once");
	d->end.why.final = true;
	step_settle_some(d, true, false, &d->end.why);
}

/* The connection is of no use any more; d->end.why was set. */
void
step_give_up(struct dialog *d)
{
	enum step_fate fate = step_fate(d);

	d->end.open = false;
	if (is_before_mail(d)) {
		step_leave_site(d);
		return;
	}
	d->state = DIALOG_CLOSED;
	if (d->unanswered) {
		d->end.stale = true;
		return;
	}
	if (fate != FATE_NOTHING)
		judge_site(d);
	if (fate == FATE_UNKNOWN)
		settle_unknown(d);
	step_settle_all(d, &d->end.why);
}

/* One mechanism was refused for good, and the dialogue ends before the answer
 * to the next mechanism. The server may accept that mechanism, so the refusal
 * is temporary. */
static void
soften_auth(struct dialog *d)
{
	if (d->state == DIALOG_AUTH)
		verdict_soften(&d->refusal);
}

void
step_set_protocol_error(struct dialog *d, const char *what)
{
	soften_auth(d);
	verdict_set(&d->end.why, AGENT_DEFERRED, "4.5.0",
	    "protocol error of %s while %s: %s", d->task.peer, step_doing(d),
	    what);
}

void
step_protocol_error(struct dialog *d, const char *what)
{
	step_set_protocol_error(d, what);
	step_give_up(d);
}

/* A reply cannot belong to its command. Of commands that were sent in one piece
 * each reply before may be another's. */
void
step_refuse_mismatch(struct dialog *d, const char *what)
{
	step_set_protocol_error(d, what);
	if (step_fate(d) == FATE_COMMAND && d->pipelined && !d->unanswered) {
		d->end.lockstep = true;
		d->state = DIALOG_CLOSED;
	} else {
		step_give_up(d);
	}
}

/* ---- replies ---- */

/* A refusing greeting, EHLO, or 421 before a transaction. Other addresses may
 * be willing, and the site's trouble is not the message's: deferred. */
void
step_refuse_site(struct dialog *d, const struct smtp_reply *reply)
{
	struct verdict *why = &d->end.why;

	verdict_refuse(why, reply, d->task.peer, step_command(d));
	verdict_soften(why);
	if (reply->code != 421)
		step_say(d, "QUIT");
	step_leave_site(d);
}

/* Does the reply speak of the connection? What refuses MAIL over one that was
 * kept may: "too many messages", or what the server said when its patience
 * ended. Nobody's mail is returned for that. */
bool
step_is_end(const struct dialog *d, const struct smtp_reply *reply)
{
	return reply->code == 421 || (d->unanswered && reply->code >= 400);
}

void
step_end_connection(struct dialog *d, const struct smtp_reply *reply)
{
	if (is_before_mail(d)) {
		step_refuse_site(d, reply);
		return;
	}
	verdict_refuse(&d->end.why, reply, d->task.peer, step_command(d));
	if (d->unanswered) {
		verdict_soften(&d->end.why);
		step_give_up(d);
		return;
	}
	step_release_held(d);
	step_settle_all(d, &d->end.why);
	judge_site(d);
	d->state = DIALOG_CLOSED;
}

/* Octets that came before their turn may be somebody else's, so a connection in
 * the clear would be what somebody else wants. */
void
step_refuse_early(struct dialog *d, const char *what)
{
	d->task.fall_back = false;
	step_refuse_mismatch(d, what);
}

/* ---- events ---- */

/* The verdicts held back: the first one, on MAIL, can be no other command's.
 * Behind silence the others may be, as a reply may be missing. */
static void
lose(struct dialog *d, bool silent)
{
	/* With TLS 1.3 a server refuses our part of the handshake when it is
	 * over for us. */
	if (!silent && d->secure && d->state == DIALOG_EHLO &&
	    d->task.fall_back) {
		d->end.in_clear = true;
		d->state = DIALOG_CLOSED;
		return;
	}
	if (silent)
		soften_auth(d);
	if (step_fate(d) == FATE_COMMAND && (d->refused || !silent))
		step_release_held(d);
	step_give_up(d);
}

void
dialog_lost(struct dialog *d, enum dialog_lost why)
{
	bool silent = why == DIALOG_LOST_TIMEOUT;

	if (d->state == DIALOG_CLOSED)
		return;
	if (silent)
		verdict_set(&d->end.why, AGENT_DEFERRED, "4.4.2",
		    "conversation with %s timed out while %s", d->task.peer,
		    step_doing(d));
	else
		verdict_set(&d->end.why, AGENT_DEFERRED, "4.4.2",
		    "lost connection with %s while %s", d->task.peer,
		    step_doing(d));
	lose(d, silent);
	/* A silent server counts as one that cannot be reached. */
	if (silent)
		d->end.insecure = false;
}

void
dialog_broken(struct dialog *d, const char *error)
{
	if (d->state == DIALOG_CLOSED)
		return;
	verdict_set(&d->end.why, AGENT_DEFERRED, "4.4.2",
	    "lost connection with %s while %s: TLS: %s", d->task.peer,
	    step_doing(d), error);
	lose(d, false);
}

void
dialog_abandon(struct dialog *d, const char *dsn, const char *text)
{
	if (d->state == DIALOG_CLOSED)
		return;
	verdict_set(&d->end.why, AGENT_DEFERRED, dsn, "%s", text);
	d->auth_refused = false; /* the refusal is not why the dialogue ends */
	step_give_up(d);
	d->end.site_failed = d->end.site_doubted = false;
	d->end.try_next = d->end.insecure = d->end.lockstep = false;
	d->end.stale = d->end.open = d->end.in_clear = false;
	step_settle_all(d, &d->end.why);
}
