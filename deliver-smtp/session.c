#include "deliver-smtp/session.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "deliver-smtp/net.h"
#include "route/nexthop.h"
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
	struct talk *talk;
	struct sockaddr_storage addresses[RESOLVE_MAX];
	size_t naddresses, address; /* how many, the current one */
	char peer[NEXTHOP_PEER_MAX], relay[NEXTHOP_PEER_MAX];
	bool reached;       /* the current address was connected to */
	bool lockstep;      /* pipelining went wrong in this session */
	struct verdict why; /* the last failure */
};

static void try_address(struct session *s);

/* ---- the end ---- */

static void
disconnect(struct session *s)
{
	resolve_cancel(&s->request);
	connect_cancel(&s->attempt);
	talk_free(&s->talk);
}

static void
session_free(struct session *s)
{
	disconnect(s);
	verdict_done(&s->why);
	free(s);
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
	struct session_context *context = s->context;
	struct agent_report report = {
		.outcome = AGENT_DEFERRED,
		.dsn = s->why.dsn,
		.relay = s->reached ? s->relay : "none",
		.text = buf_str(&s->why.text),
		.conn = clock_mono() - s->delivery->received_at,
	};

	disconnect(s);
	agent_result_rest(s->delivery, &report);
	agent_done(s->delivery, result == RESULT_SITE_FAILED,
	    why ? s->why.dsn : "", why ? buf_str(&s->why.text) : "");
	TAILQ_REMOVE(&context->running, s, entry);
	session_free(s);
	context->ended(context);
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
		if (s->talk != NULL)
			talk_abandon(s->talk, dsn, text);
		verdict_set(&s->why, AGENT_DEFERRED, dsn, "%s", text);
		finish(s, RESULT_OURS);
	}
}

/* ---- the dialogue ---- */

static void
on_report(void *arg, uint32_t place, const struct verdict *v)
{
	struct session *s = arg;
	usec_t now = clock_mono(), handshaken = talk_handshaken_at(s->talk);
	struct agent_report report = {
		.outcome = v->outcome,
		.dsn = v->dsn,
		.relay = s->relay,
		.text = buf_str(&v->text),
	};

	if (handshaken == 0)
		handshaken = now;
	report.conn = handshaken - s->delivery->received_at;
	report.xfer = now - handshaken;
	agent_result(s->delivery, place, &report);
}

static void
on_ended(void *arg, struct dialog_end *end)
{
	struct session *s = arg;
	bool site_failed = end->site_failed, next = end->try_next;
	bool lockstep = end->lockstep;

	verdict_done(&s->why);
	s->why = end->why;
	end->why = (struct verdict){ 0 };
	talk_free(&s->talk);
	if (lockstep) {
		peers_add(&s->context->peers, s->relay, clock_mono());
		s->lockstep = true;
		try_address(s);
	} else if (next) {
		s->address++;
		try_address(s);
	} else {
		finish(s, site_failed ? RESULT_SITE_FAILED : RESULT_TALKED);
	}
}

static const struct talk_ops talk_ops = {
	.report = on_report,
	.ended = on_ended,
};

/* Takes the socket. */
static void
talk(struct session *s, int sock)
{
	const struct agent_delivery *delivery = s->delivery;
	struct talk_task task = {
		.dialog = {
			.lmtp = delivery->kind == AGENT_LMTP,
			.lockstep = s->lockstep,
			.helo = s->settings.helo,
			.sender = delivery->sender,
			.peer = s->peer,
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
	int r;

	s->reached = true;
	if (peers_has(&s->context->peers, s->relay, clock_mono()))
		task.dialog.lockstep = true;
	r = talk_start(s->context->base, sock, &task, &talk_ops, s, &s->talk);
	if (r < 0)
		fail_here(s, r);
}

/* ---- connecting ---- */

static void
note_connect_failure(struct session *s, int error)
{
	verdict_set(&s->why, AGENT_DEFERRED,
	    connect_error_is_local(error) ? "4.3.0" : "4.4.1",
	    "connect to %s: %s", s->relay, strerror(-error));
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
		nexthop_peer(&s->hop, sa, s->peer, s->relay);
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

	if (s == NULL) {
		agent_defer(delivery, "4.3.0", "out of memory");
		return;
	}
	s->context = context;
	s->delivery = delivery;
	s->settings = context->settings;
	TAILQ_INSERT_TAIL(&context->running, s, entry);
	if (take_nexthop(s))
		look_up(s);
	else
		finish(s, RESULT_SITE_FAILED);
}
