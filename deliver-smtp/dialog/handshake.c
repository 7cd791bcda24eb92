#include "deliver-smtp/dialog/steps.h"

#include <errno.h>
#include <stdio.h>

static void
say_hello(struct dialog *d, const char *verb, enum dialog_state state)
{
	step_say(d, "%s %s", verb, d->task.helo);
	d->state = state;
}

void
step_greeting_ok(struct dialog *d, const struct smtp_reply *reply UNUSED)
{
	say_hello(d, d->task.lmtp ? "LHLO" : "EHLO", DIALOG_EHLO);
}

void
step_ehlo_refused(struct dialog *d, const struct smtp_reply *reply)
{
	if (reply->code >= 500 && !d->task.lmtp)
		say_hello(d, "HELO", DIALOG_HELO);
	else
		step_refuse_site(d, reply);
}

static void
screen(struct dialog *d)
{
	const struct dialog_task *t = &d->task;
	struct verdict v = { 0 };
	uint32_t i;

	if (screen_message(t->sender, d->size, t->peer, &d->ehlo, &v) ||
	    screen_content(t, &d->survey, &d->ehlo, &v))
		step_settle_all(d, &v);
	for (i = 0; i < t->nrcpts; i++)
		if (d->rcpts[i].state != RCPT_OVER &&
		    screen_recipient(
			t->rcpts[i].address, t->peer, &d->ehlo, &v))
			step_settle(d, i, &v);
	verdict_done(&v);
}

/* Does it matter what is in the content? */
static bool
is_to_survey(struct dialog *d)
{
	if (d->surveyed || !d->task.eight_bit)
		return false;
	d->whole = !screen_takes_eight(&d->ehlo) &&
	    d->task.eight == CONF_EIGHT_CONVERT;
	return d->whole || d->ehlo.utf8;
}

/* Does it matter how many octets the line ends have? No octet becomes more than
 * two: LF is CRLF, a long line is folded by three octets after 998, and one
 * line end may be missing at the end. */
static bool
is_to_count(const struct dialog *d)
{
	const uint64_t max = d->ehlo.size_max, size = d->task.size;

	if (!d->ehlo.size || d->counted || d->convert)
		return false;
	return d->task.at_hand || d->task.rewritten ||
	    (max > 0 && size <= max && max - size < size + 2);
}

void
step_begin(struct dialog *d)
{
	if (is_to_survey(d)) {
		d->state = DIALOG_SURVEY;
		return;
	}
	d->convert = d->surveyed && d->whole && d->survey.eight;
	if (is_to_count(d)) {
		d->state = DIALOG_COUNT;
		return;
	}
	screen(d);
	if (step_is_left(d))
		step_begin_transaction(d);
	else
		step_part(d, true);
}

/* Leave a server that lacks what the delivery needs; the next address may have
 * it. The reason is "BEFOREhost PEERBEHIND": both texts bring their blanks. */
static void
decline(
    struct dialog *d, const char *dsn, const char *before, const char *behind)
{
	verdict_set(&d->end.why, AGENT_DEFERRED, dsn, "%shost %s%s", before,
	    d->task.peer, behind);
	step_say(d, "QUIT");
	step_leave_site(d);
}

/* ---- AUTH ---- */

/* Say AUTH with the next mechanism that both sides know. False: no mechanism is
 * left. A mechanism that has no form of the user name, as SCRAM of a name that
 * is not UTF-8, is passed over. */
static bool
say_next_auth(struct dialog *d)
{
	const struct credential *c = d->task.credential;
	unsigned mechanism;
	int r = -EPROTO;

	while (r == -EPROTO) {
		mechanism = auth_choose(d->ehlo.auth & d->task.mechanisms, c);
		if (mechanism == 0)
			return false;
		d->ehlo.auth &= ~mechanism;
		r = auth_begin(&d->auth, &d->out, mechanism, c);
	}
	step_said_secret(d, r);
	d->state = DIALOG_AUTH;
	return true;
}

static void
authenticate(struct dialog *d)
{
	if (!d->secure && !d->task.auth_in_clear)
		decline(
		    d, "4.7.11", "no password is sent in the clear to ", "");
	else if (!say_next_auth(d))
		decline(d, "4.7.9", "",
		    " offers no mechanism of AUTH for these credentials");
}

/* The host may be somebody else's: nothing is said to it any more. */
static void
distrust(struct dialog *d)
{
	verdict_set(&d->end.why, AGENT_DEFERRED, "4.7.5",
	    "host %s has not proved that it knows the password (AUTH %s)",
	    d->task.peer, auth_name(&d->auth));
	step_leave_site(d);
}

void
step_auth_ok(struct dialog *d, const struct smtp_reply *reply UNUSED)
{
	if (!auth_is_proven(&d->auth)) {
		distrust(d);
		return;
	}
	d->handshaken = true;
	step_begin(d);
}

void
step_auth_more(struct dialog *d, const struct smtp_reply *reply)
{
	int r = auth_answer(&d->auth, &d->out, reply);

	if (r == -EKEYREJECTED)
		distrust(d);
	else if (r == -E2BIG)
		step_protocol_error(d, "AUTH asks for too many rounds");
	else if (r == -EPROTO)
		step_protocol_error(d,
		    "more challenges than the mechanism has, or a malformed "
		    "one");
	else
		step_said_secret(d, r);
}

/* Another address has the same users, and would count one more failure of this
 * one. */
void
step_auth_end(struct dialog *d)
{
	const struct verdict other = d->end.why;

	d->end.why = d->refusal;
	d->refusal = other;
	if (d->task.auth_soft)
		verdict_soften(&d->end.why);
	d->end.why.final = true;
	step_settle_all(d, &d->end.why);
	d->end.site_failed = d->end.why.outcome == AGENT_DEFERRED;
	d->state = DIALOG_CLOSED;
}

/* A server may offer a mechanism that it does not have for this user, or does
 * not have at all. */
void
step_auth_refused(struct dialog *d, const struct smtp_reply *reply)
{
	char command[32];

	snprintf(command, sizeof(command), "AUTH %s", auth_name(&d->auth));
	verdict_refuse(&d->refusal, reply, d->task.peer, command);
	d->auth_refused = true;
	if (d->refusal.outcome == AGENT_FAILED && say_next_auth(d))
		return;
	step_say(d, "QUIT");
	step_auth_end(d);
}

static void
ready(struct dialog *d)
{
	if (d->task.credential != NULL)
		authenticate(d);
	else
		step_auth_ok(d, NULL);
}

static void
want_tls(struct dialog *d)
{
	if (d->ehlo.starttls) {
		step_say(d, "STARTTLS");
		d->state = DIALOG_STARTTLS;
	} else if (d->task.tls == TLS_LEVEL_MAY) {
		ready(d);
	} else {
		d->end.insecure = true;
		decline(
		    d, "4.7.4", "TLS is required, but was not offered by ", "");
	}
}

void
step_ehlo_ok(struct dialog *d, const struct smtp_reply *reply)
{
	if (d->state == DIALOG_EHLO)
		smtp_ehlo_parse(reply, d->task.ignored, &d->ehlo);
	if (d->secure || d->task.tls == TLS_LEVEL_NONE)
		ready(d);
	else
		want_tls(d);
}

void
step_starttls_ok(struct dialog *d, const struct smtp_reply *reply UNUSED)
{
	d->state = DIALOG_TLS;
}
