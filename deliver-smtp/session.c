#include "deliver-smtp/session.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "deliver-smtp/net.h"
#include "spool/queue_file.h"

#define SMTP_PORT 25
#define LMTP_PORT 24 /* RFC 2033 section 5: never 25 */

struct session {
	TAILQ_ENTRY(session) entry;
	struct session_context *context;
	struct agent_delivery *delivery;
	struct settings settings;
	struct nexthop hop;
	/* At most one of the three is under way. */
	struct resolve_request *request;
	struct connect_attempt *attempt;
	struct connection c; /* talk, peer and relay of the address */
	struct sockaddr_storage addresses[RESOLVE_MAX];
	size_t naddresses, address; /* how many, the current one */
	bool reached;               /* the current address was connected to */
	bool lockstep;              /* pipelining went wrong in this session */
	struct verdict why;         /* the last failure */
};

static void try_address(struct session *s);
static void look_up(struct session *s);

/* ---- the end ---- */

static void
disconnect(struct session *s)
{
	resolve_cancel(&s->request);
	connect_cancel(&s->attempt);
	talk_free(&s->c.talk);
}

static void
session_free(struct session *s)
{
	disconnect(s);
	verdict_done(&s->why);
	free(s);
}

/* The delivery is over. */
static void
leave(struct session *s)
{
	struct session_context *context = s->context;

	TAILQ_REMOVE(&context->running, s, entry);
	session_free(s);
	context->ended(context);
}

enum result {
	RESULT_TALKED, /* the site talked to us, whatever it said */
	RESULT_SITE_FAILED,
	RESULT_OURS, /* our own trouble: says nothing of the site */
};

/* Recipients without a report are deferred; s->why says why. DONE gives back
 * the place at the destination, so it comes when nothing is connected any more.
 */
static void
finish(struct session *s, enum result result)
{
	bool why = result != RESULT_TALKED;
	struct agent_report report = {
		.outcome = AGENT_DEFERRED,
		.dsn = s->why.dsn,
		.relay = s->reached ? s->c.relay : "none",
		.text = buf_str(&s->why.text),
		.conn = clock_mono() - s->delivery->received_at,
	};

	disconnect(s);
	agent_result_rest(s->delivery, &report);
	agent_done(s->delivery, result == RESULT_SITE_FAILED,
	    why ? s->why.dsn : "", why ? buf_str(&s->why.text) : "");
	leave(s);
}

static void
fail_here(struct session *s, int error)
{
	verdict_set(&s->why, AGENT_DEFERRED, "4.3.0", "%s", strerror(-error));
	finish(s, RESULT_OURS);
}

void
session_abandon_all(
    struct session_context *context, const char *dsn, const char *text)
{
	struct session *s;

	while ((s = TAILQ_FIRST(&context->running)) != NULL) {
		if (s->c.talk != NULL)
			talk_abandon(s->c.talk, dsn, text);
		verdict_set(&s->why, AGENT_DEFERRED, dsn, "%s", text);
		finish(s, RESULT_OURS);
	}
}

/* ---- the dialogue ---- */

static void
on_report(void *arg, uint32_t place, const struct verdict *v)
{
	struct session *s = arg;
	usec_t now = clock_mono(), handshaken = talk_handshaken_at(s->c.talk);
	struct agent_report report = {
		.outcome = v->outcome,
		.dsn = v->dsn,
		.relay = s->c.relay,
		.text = buf_str(&v->text),
	};

	if (handshaken == 0)
		handshaken = now;
	report.conn = handshaken - s->delivery->received_at;
	report.xfer = now - handshaken;
	agent_result(s->delivery, place, &report);
}

/* The delivery is over, its connection stays. */
static bool
keep(struct session *s)
{
	struct session_context *context = s->context;

	if (context->stopping || s->delivery->agent == NULL ||
	    !kept_add(context, &s->settings, s->delivery, &s->c))
		return false;
	agent_kept(s->delivery);
	leave(s);
	return true;
}

/* Without a connection any more; an open one is closed. */
static void
go_on(struct session *s, const struct dialog_end *end)
{
	if (end->stale) {
		look_up(s);
	} else if (end->lockstep) {
		peers_add(&s->context->peers, s->c.relay, clock_mono());
		s->lockstep = true;
		look_up(s);
	} else if (end->try_next) {
		s->address++;
		try_address(s);
	} else {
		finish(
		    s, end->site_failed ? RESULT_SITE_FAILED : RESULT_TALKED);
	}
}

static void
on_ended(void *arg, struct dialog_end *ended)
{
	struct session *s = arg;
	const struct dialog_end end = *ended;

	verdict_done(&s->why);
	s->why = end.why;
	ended->why = (struct verdict){ 0 };
	if (end.open && keep(s))
		return;
	talk_free(&s->c.talk);
	go_on(s, &end);
}

static const struct talk_ops talk_ops = {
	.report = on_report,
	.ended = on_ended,
};

static struct talk_task
task_of(const struct session *s)
{
	const struct agent_delivery *delivery = s->delivery;

	return (struct talk_task){
		.dialog = {
			.lmtp = delivery->kind == AGENT_LMTP,
			.lockstep = s->lockstep ||
			    peers_has(&s->context->peers, s->c.relay,
				clock_mono()),
			.keep = kept_may(
			    s->context, &s->settings, delivery, &s->c),
			.helo = s->settings.helo,
			.sender = delivery->sender,
			.peer = s->c.peer,
			.size = delivery->content_len,
			.eight_bit = (delivery->flags & QUEUE_FILE_8BIT) != 0,
			.rcpts = delivery->rcpts,
			.nrcpts = delivery->nrcpts,
		},
		.limits = s->settings.limits,
		.content = delivery->content,
		.fd = delivery->fd,
		.content_off = delivery->content_off,
	};
}

/* Takes the socket. */
static void
talk(struct session *s, int sock)
{
	struct talk_task task;
	int r;

	s->reached = true;
	s->c.opened_at = clock_mono();
	s->c.messages = 1;
	task = task_of(s);
	r = talk_start(s->context->base, sock, &task, &talk_ops, s, &s->c.talk);
	if (r < 0)
		fail_here(s, r);
}

/* Over a connection that was kept. */
static void
talk_on(struct session *s)
{
	struct talk_task task;
	int r;

	s->reached = true;
	s->c.messages++;
	task = task_of(s);
	r = talk_again(s->c.talk, &task, &talk_ops, s);
	if (r < 0)
		fail_here(s, r);
}

/* ---- connecting ---- */

static void
note_connect_failure(struct session *s, int error)
{
	verdict_set(&s->why, AGENT_DEFERRED,
	    connect_error_is_local(error) ? "4.3.0" : "4.4.1",
	    "connect to %s: %s", s->c.relay, strerror(-error));
}

static void
on_connected(void *arg, int result)
{
	struct session *s = arg;

	s->attempt = NULL;
	if (result >= 0) {
		talk(s, result);
		return;
	}
	note_connect_failure(s, result);
	if (connect_error_is_local(result)) {
		finish(s, RESULT_OURS);
		return;
	}
	s->address++;
	try_address(s);
}

static socklen_t
address_len(const struct session *s, sa_family_t family)
{
	return family == AF_INET ? sizeof(struct sockaddr_in)
	    : family == AF_INET6 ? sizeof(struct sockaddr_in6)
				 : s->hop.address_len;
}

/* From the current address on, the first that can be tried; the end when there
 * is none. */
static void
try_address(struct session *s)
{
	int r;

	for (; s->address < s->naddresses; s->address++) {
		const struct sockaddr *sa =
		    (const struct sockaddr *)&s->addresses[s->address];

		s->reached = false;
		nexthop_peer(&s->hop, sa, s->c.peer, s->c.relay);
		r = connect_start(s->context->base, sa,
		    address_len(s, sa->sa_family), s->settings.connect_limit,
		    on_connected, s, &s->attempt);
		if (r == 0)
			return;
		note_connect_failure(s, r);
		if (connect_error_is_local(r)) {
			finish(s, RESULT_OURS);
			return;
		}
	}
	finish(s, RESULT_SITE_FAILED);
}

static void
on_resolved(void *arg, const struct resolve_result *result)
{
	struct session *s = arg;

	s->request = NULL;
	if (result->error < 0) {
		verdict_set(&s->why, AGENT_DEFERRED,
		    result->error == -ENOENT ? "4.4.4" : "4.4.3",
		    "name of host %s: %s", s->hop.host, result->text);
		finish(s,
		    result->error == -ENOMEM ? RESULT_OURS
					     : RESULT_SITE_FAILED);
		return;
	}
	s->naddresses = result->count;
	memcpy(s->addresses, result->addresses,
	    result->count * sizeof(s->addresses[0]));
	try_address(s);
}

static void
look_up(struct session *s)
{
	int r;

	if (s->naddresses > 0) {
		try_address(s);
		return;
	}
	if (s->hop.kind != NEXTHOP_NAME) {
		s->addresses[0] = s->hop.address;
		s->naddresses = 1;
		try_address(s);
		return;
	}
	r = resolve_start(s->context->resolver, s->hop.host, s->hop.port,
	    on_resolved, s, &s->request);
	if (r < 0)
		fail_here(s, r);
}

/* ---- the start ---- */

static bool
take_nexthop(struct session *s)
{
	bool lmtp = s->delivery->kind == AGENT_LMTP;
	int r = nexthop_parse(
	    s->delivery->nexthop, lmtp ? LMTP_PORT : SMTP_PORT, &s->hop);

	if (r == 0 && (lmtp || s->hop.kind != NEXTHOP_UNIX))
		return true;
	verdict_set(&s->why, AGENT_DEFERRED, "4.3.5",
	    "not a next hop for %s: %s", s->delivery->transport,
	    s->delivery->nexthop);
	return false;
}

void
session_start(struct session_context *context, struct agent_delivery *delivery)
{
	struct session *s = calloc(1, sizeof(*s));
	bool reused;

	if (s == NULL) {
		kept_close(context, delivery->connection);
		agent_defer(delivery, "4.3.0", "out of memory");
		return;
	}
	s->context = context;
	s->delivery = delivery;
	s->settings = context->settings;
	TAILQ_INSERT_TAIL(&context->running, s, entry);
	reused = kept_take(context, delivery, &s->c);
	if (!take_nexthop(s))
		finish(s, RESULT_SITE_FAILED);
	else if (reused)
		talk_on(s);
	else
		look_up(s);
}
