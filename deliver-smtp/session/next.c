#include "deliver-smtp/session/session_inside.h"

#include "base/clock.h"
#include "deliver-smtp/session/log.h"

/* ---- for operators who follow the dialogue ---- */

void
session_trace(struct session *s, const char *relay, const char *text)
{
	traces_tell(&s->context->traces, s->delivery, relay, TRACE_EVENT, text);
}

void
session_on_said(void *arg, unsigned code, const char *text, size_t len)
{
	struct session *s = arg;

	traces_tell_words(
	    &s->context->traces, s->delivery, s->c.relay, code, text, len);
}

/* ---- may another connection be made for this delivery? ---- */

/* used: connections of this delivery that got past the handshake. */
static bool
is_within(const struct session *s, uint32_t used)
{
	const uint32_t limit = s->settings.session_limit;

	return limit == 0 || used < limit;
}

/* After the connection that is open now. Behind a kept one a new one may be
 * made to the same host. */
static bool
may_go_on(const struct session *s)
{
	if (s->reused)
		return is_within(s, s->sessions);
	return is_within(s, s->sessions + 1) && reach_has_next(&s->reach);
}

void
session_forget_tls(struct session *s)
{
	s->in_clear = s->fell_back = false;
}

bool
session_may_fall_back(const struct session *s)
{
	return s->sessions == 0 && !s->talked && !s->doubted && !s->insecure &&
	    reach_has_fallback(&s->reach);
}

bool
session_fall_back(struct session *s, const char *relay)
{
	if (!session_may_fall_back(s))
		return false;
	log_next_host(s->delivery->id, relay, session_left(s), s->why.dsn,
	    buf_str(&s->why.text));
	talk_free(&s->c.talk);
	s->reached = false;
	session_forget_tls(s);
	return reach_fall_back(&s->reach);
}

uint32_t
session_left(const struct session *s)
{
	const struct agent_delivery *d = s->delivery;
	uint32_t left = 0, i;

	for (i = 0; i < d->nrcpts; i++)
		left += !d->rcpts[i].reported;
	return left;
}

/* ---- results ---- */

void
session_on_report(void *arg, uint32_t place, const struct verdict *v)
{
	struct session *s = arg;
	usec_t now = clock_mono(), handshaken = talk_handshaken_at(s->c.talk);
	struct agent_report report = {
		.outcome = v->outcome,
		.dsn = v->dsn,
		.relay = s->c.relay,
		.text = buf_str(&v->text),
		.passed_on = v->passed_on,
	};

	if (handshaken == 0)
		handshaken = now;
	report.conn = handshaken - s->delivery->received_at;
	report.xfer = now - handshaken;
	if (v->outcome == AGENT_DEFERRED && !v->final && may_go_on(s) &&
	    held_put(&s->held, s->delivery, place, &report) == 0)
		return;
	agent_result(s->delivery, place, &report);
}

/* ---- the end of a dialogue ---- */

/* The delivery is over, its connection stays. */
static bool
keep(struct session *s)
{
	struct session_context *context = s->context;

	if (context->stopping || s->delivery->agent == NULL ||
	    !kept_add(context, &s->settings, s->delivery, &s->c))
		return false;
	agent_kept(s->delivery);
	session_leave(s);
	return true;
}

static void
learn(struct session *s, const struct dialog_end *end)
{
	struct session_context *context = s->context;
	usec_t now = clock_mono();

	if (end->lockstep)
		peers_add(&context->lockstep, s->c.relay, 1, now);
	s->lockstep = s->lockstep || end->lockstep;
	if (end->batch != 0 &&
	    end->batch != peers_find(&context->batches, s->c.relay, now))
		peers_add(&context->batches, s->c.relay, end->batch, now);
	if (!s->reused && talk_handshaken_at(s->c.talk) != 0)
		s->sessions++;
	s->insecure = s->insecure || end->insecure;
	if (end->site_doubted)
		s->doubted = true;
	else if (end->stale) /* a new one has carried a message before */
		s->talked = s->talked || !s->reused;
	else if (!end->site_failed && !end->lockstep && !end->in_clear)
		s->talked = true;
}

static enum session_result
result_of(const struct dialog_end *end)
{
	if (end->site_failed)
		return SESSION_FAILED;
	return end->site_doubted ? SESSION_DOUBTED : SESSION_TALKED;
}

/* Recipients are left. True: the same address once more, for them. */
static bool
wants_again(struct session *s, const struct dialog_end *end)
{
	if (end->lockstep)
		return true;
	if (end->in_clear) {
		log_fall_back(s->delivery->id, &s->why);
		s->in_clear = s->fell_back = true;
		return true;
	}
	if (!is_within(s, s->sessions))
		return false;
	/* The host has deferred recipients over a connection that has served
	 * before: it may have been enough for that one. A new connection that
	 * has given no result would give none again. */
	return s->reused || (end->stale && session_left(s) < s->left);
}

static void
log_leaving(const struct session *s, const struct dialog_end *end)
{
	const struct agent_delivery *d = s->delivery;
	const char *dsn = s->why.dsn, *reason = NULL;

	if (!end->try_next)
		reason = held_reason(&s->held, d, &dsn);
	log_next_host(d->id, s->c.relay, session_left(s), dsn,
	    reason == NULL ? buf_str(&s->why.text) : reason);
}

/* Without a connection any more; an open one is closed. */
static void
go_on(struct session *s, const struct dialog_end *end)
{
	s->reached = false;
	if (wants_again(s, end)) {
		reach_again(&s->reach);
		return;
	}
	if (is_within(s, s->sessions) && reach_has_next(&s->reach)) {
		log_leaving(s, end);
		session_forget_tls(s);
		(void)reach_next(&s->reach);
		return;
	}
	if (end->try_next && session_fall_back(s, s->c.relay))
		return;
	s->reached = true;
	session_finish(s, result_of(end));
}

void
session_on_ended(void *arg, struct dialog_end *ended)
{
	struct session *s = arg;
	const struct dialog_end end = *ended;

	verdict_done(&s->why);
	s->why = end.why;
	ended->why = (struct verdict){ 0 };
	if (s->why.text.len > 0)
		session_trace(s, s->c.relay, buf_str(&s->why.text));
	learn(s, &end);
	if (session_left(s) > 0) {
		talk_free(&s->c.talk);
		go_on(s, &end);
		return;
	}
	if (end.open && keep(s))
		return;
	talk_free(&s->c.talk);
	session_finish(s, result_of(&end));
}
