#include "deliver-smtp/session/session_inside.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "deliver-smtp/session/log.h"
#include "spool/queue_file.h"

/* ---- the end ---- */

static void
close_spare(struct session *s)
{
	if (s->spare != 0)
		kept_drop(s->context, s->spare);
	s->spare = 0;
}

static void
disconnect(struct session *s)
{
	close_spare(s);
	reach_cancel(&s->reach);
	talk_free(&s->c.talk);
}

static void
session_free(struct session *s)
{
	disconnect(s);
	policies_unref(&s->c.policies);
	sender_map_free(&s->rewrites);
	verdict_done(&s->why);
	held_done(&s->held);
	free(s);
}

void
session_leave(struct session *s)
{
	struct session_context *context = s->context;

	TAILQ_REMOVE(&context->running, s, entry);
	session_free(s);
	daemon_agent_idle(&context->link);
}

static enum agent_site
site_of(const struct session *s, enum session_result result)
{
	static const enum agent_site sites[] = {
		[SESSION_TALKED] = AGENT_SITE_TALKED,
		[SESSION_FAILED] = AGENT_SITE_FAILED,
		[SESSION_DOUBTED] = AGENT_SITE_DOUBTED,
		[SESSION_OURS] = AGENT_SITE_TALKED,
	};

	/* The site is as good as the best of its hosts. */
	if (s->talked)
		return AGENT_SITE_TALKED;
	if (s->doubted && result == SESSION_FAILED)
		return AGENT_SITE_DOUBTED;
	return sites[result];
}

/* DONE gives back the place at the destination, so it comes when nothing is
 * connected any more. */
void
session_finish(struct session *s, enum session_result result)
{
	enum agent_site site = site_of(s, result);
	bool why = result == SESSION_OURS || site != AGENT_SITE_TALKED;
	struct agent_report report = {
		.outcome = AGENT_DEFERRED,
		.dsn = s->why.dsn,
		.relay = s->reached ? s->c.relay : "none",
		.text = buf_str(&s->why.text),
		.conn = clock_mono() - s->delivery->received_at,
	};

	disconnect(s);
	if (result != SESSION_OURS)
		held_report(&s->held, s->delivery);
	agent_result_rest(s->delivery, &report);
	agent_done(s->delivery, site, why ? s->why.dsn : "",
	    why ? buf_str(&s->why.text) : "");
	session_leave(s);
}

/* The place is at another destination: nothing was tried. */
static void
go_elsewhere(struct session *s, const char *site, uint32_t seconds)
{
	disconnect(s);
	agent_elsewhere(s->delivery, site, seconds);
	session_leave(s);
}

static void
fail_here(struct session *s, int error)
{
	verdict_set(&s->why, AGENT_DEFERRED, "4.3.0", "%s", strerror(-error));
	session_finish(s, SESSION_OURS);
}

static void
abandon(struct session *s, const char *dsn, const char *text,
    enum session_result result)
{
	if (s->c.talk != NULL)
		talk_abandon(s->c.talk, dsn, text);
	verdict_set(&s->why, AGENT_DEFERRED, dsn, "%s", text);
	session_finish(s, result);
}

void
session_abandon_all(
    struct session_context *context, const char *dsn, const char *text)
{
	struct session *s;

	while ((s = TAILQ_FIRST(&context->running)) != NULL)
		abandon(s, dsn, text, SESSION_OURS);
}

void
session_cancel(
    void *arg UNUSED, struct agent_delivery *delivery, enum agent_stage stage)
{
	const bool greets = stage == AGENT_NOT_GREETED;
	struct session *s = delivery->user;

	if (s->c.talk == NULL ||
	    talk_state(s->c.talk) <
		(stage == AGENT_NOT_ACCEPTED ? DIALOG_DOT : DIALOG_MAIL))
		abandon(s, greets ? "4.4.2" : AGENT_CANCELLED_DSN,
		    agent_cancelled(stage),
		    greets ? SESSION_FAILED : SESSION_OURS);
}

static void
on_secured(void *arg, const struct tls_facts *facts)
{
	struct session *s = arg;

	log_secured(s->delivery->id, s->c.relay, facts);
	session_trace(s, s->c.relay, facts->protocol);
}

/* A fallback belongs to another destination: its greeting is not told. */
static void
on_greeted(void *arg)
{
	const struct session *s = arg;

	if (!s->reach.fell_back)
		agent_greeted(s->delivery);
}

static const struct talk_ops talk_ops = {
	.report = session_on_report,
	.ended = session_on_ended,
	.greeted = on_greeted,
	.secured = on_secured,
};

/* The host that is connected to; but a server that has to prove the name of the
 * next hop is told that name, so that it can. */
static const char *
host_to_tell(const struct session *s)
{
	const struct nexthop *hop = &s->reach.hop;

	if (hop->kind == NEXTHOP_ADDRESS || hop->kind == NEXTHOP_UNIX)
		return NULL;
	return s->policy.nnames > 0 && s->policy.names[0] == hop->host
	    ? hop->host
	    : s->reach.host;
}

static struct talk_task
task_of(const struct session *s)
{
	const struct agent_delivery *delivery = s->delivery;

	return (struct talk_task){
		.dialog = {
			.lmtp = delivery->kind == AGENT_LMTP,
			.lockstep = s->lockstep ||
			    peers_find(&s->context->lockstep, s->c.relay,
				clock_mono()) != 0,
			.keep = !s->reach.fell_back &&
			    kept_may(
				s->context, &s->settings, delivery, &s->c),
			.tls = s->in_clear ? TLS_LEVEL_NONE : s->policy.level,
			.implicit = s->policy.implicit,
			.fall_back = s->policy.level == TLS_LEVEL_MAY &&
			    !s->fell_back,
			.credential = s->policy.credential,
			.auth_in_clear = s->policy.auth_in_clear,
			.auth_soft = s->policy.auth_soft,
			.mechanisms = s->policy.mechanisms,
			.helo = s->settings.helo,
			.sender = s->sender[0] != '\0' ? s->sender
							: delivery->sender,
			.peer = s->c.peer,
			.size = delivery->content_len,
			.at_hand = delivery->content != NULL,
			.rewritten = s->rewrites != NULL,
			.eight_bit = (delivery->flags & QUEUE_FILE_8BIT) != 0,
			.dsn = delivery->dsn,
			.eight = s->settings.eight,
			.chunking = s->settings.chunking,
			.ignored = s->settings.ignored,
			.batch = peers_find(&s->context->batches,
			    s->c.relay, clock_mono()),
			.said = session_on_said,
			.rcpts = delivery->rcpts,
			.nrcpts = delivery->nrcpts,
		},
		.limits = s->settings.limits,
		.content = { delivery->content, delivery->fd,
		    delivery->content_off, delivery->content_len },
		.rewrites = s->rewrites,
		.tls = policies_tls(s->c.policies),
		.want = {
			.level = s->policy.level,
			.host = host_to_tell(s),
			.relay = s->c.relay,
			.names = s->policy.names,
			.nnames = s->policy.nnames,
		},
	};
}

/* Takes the socket. */
static void
talk(struct session *s, int sock)
{
	struct talk_task task;
	int r;

	s->reached = true;
	s->reused = false;
	s->left = session_left(s);
	session_trace(s, s->c.relay, "connected");
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

	s->reached = s->reused = true;
	s->left = session_left(s);
	session_trace(s, s->c.relay, "connection used again");
	s->c.messages++;
	task = task_of(s);
	r = talk_again(s->c.talk, &task, &talk_ops, s);
	if (r < 0)
		fail_here(s, r);
}

/* ---- connecting ---- */

/* A transport that the configuration does not have has no policy, either: its
 * mail waits rather than go in the clear. */
static bool
take_policy(struct session *s)
{
	const char *hop =
	    s->reach.fell_back ? s->reach.fallback_hop : s->delivery->nexthop;

	if (policy_find(s->c.policies, s->delivery->transport, hop,
		&s->reach.hop, &s->policy))
		return true;
	verdict_set(&s->why, AGENT_DEFERRED, "4.3.5",
	    "the policy of TLS of transport %s is not known",
	    s->delivery->transport);
	return false;
}

static void
on_connected(void *arg, int sock)
{
	struct session *s = arg;

	if (s->reach.fell_back && !take_policy(s)) {
		io_close(&sock);
		session_finish(s, SESSION_OURS);
		return;
	}
	/* If another address has won, TLS has not failed at that address.
	 * fell_back stays set, else two addresses that win in turn would be
	 * connected to without end. */
	if (strcmp(s->c.relay, s->reach.relay) != 0)
		s->in_clear = false;
	memcpy(s->c.peer, s->reach.peer, sizeof(s->c.peer));
	memcpy(s->c.relay, s->reach.relay, sizeof(s->c.relay));
	talk(s, sock);
}

static void
on_goes_on(void *arg, const struct verdict *why)
{
	struct session *s = arg;

	session_trace(s, s->reach.relay, buf_str(&why->text));
	log_next_host(s->delivery->id, s->reach.relay, session_left(s),
	    why->dsn, buf_str(&why->text));
}

static void
on_failed(void *arg, struct reach_failure *failure)
{
	struct session *s = arg;
	bool settled;

	if (failure->no_more) {
		if (session_may_fall_back(s) && reach_fall_back(&s->reach))
			return;
		s->reached = true;
		session_finish(s, SESSION_FAILED);
		return;
	}
	/* The name of a fallback says nothing about the place. */
	if (failure->unknown && !failure->ours && !s->reach.fell_back &&
	    place_is_shared(s->delivery)) {
		verdict_done(&failure->why);
		go_elsewhere(s, "", 0);
		return;
	}
	verdict_done(&s->why);
	s->why = failure->why;
	session_trace(s, s->reach.relay, buf_str(&s->why.text));
	if (failure->permanent == NULL && !failure->ours &&
	    session_fall_back(s, failure->unknown ? "none" : s->reach.relay))
		return;
	settled = failure->permanent != NULL &&
	    domain_failed(
		s->delivery, failure->permanent, buf_str(&s->why.text));
	session_finish(s,
	    failure->ours ? SESSION_OURS
		: settled ? SESSION_TALKED
			  : SESSION_FAILED);
}

static bool
on_found(void *arg, const struct mx_set *set, bool loops)
{
	struct session *s = arg;
	char site[MX_SITE_MAX + 1];

	if (!place_is_right(s->delivery, &s->policy, set, loops, site)) {
		go_elsewhere(s, site, set->ttl);
		return false;
	}
	if (s->spare == 0)
		return true;
	if (kept_take_shared(s->context, s->delivery, set, loops, &s->c)) {
		s->spare = 0;
		talk_on(s);
		return false;
	}
	close_spare(s);
	return true;
}

/* MAIL and all that follows have limits of their own. A host that got no
 * further says nothing about a recipient: what another one said stands. */
static void
on_late(void *arg)
{
	struct session *s = arg;
	const char *last = s->c.talk != NULL ? s->c.relay : s->reach.relay;

	if (s->c.talk != NULL && talk_handshaken_at(s->c.talk) != 0)
		return;
	verdict_set(&s->why, AGENT_DEFERRED, "4.4.2",
	    "no host of %s got as far as MAIL within smtp_before_mail_timeout "
	    "(%us); the last one: %s",
	    s->delivery->nexthop,
	    (unsigned)(s->settings.before_limit / USEC_PER_SEC),
	    last[0] == '\0' ? "none was found" : last);
	reach_stop(&s->reach);
	if (!session_fall_back(s, last[0] == '\0' ? "none" : last))
		session_finish(s, SESSION_FAILED);
}

static const struct reach_ops reach_ops = {
	.found = on_found,
	.goes_on = on_goes_on,
	.connected = on_connected,
	.failed = on_failed,
	.late = on_late,
};

static bool
take_nexthop(struct session *s)
{
	bool lmtp = s->delivery->kind == AGENT_LMTP;
	int r = nexthop_parse(
	    s->delivery->nexthop, s->reach.default_port, &s->reach.hop);

	if (r == 0 && (lmtp || s->reach.hop.kind != NEXTHOP_UNIX))
		return true;
	verdict_set(&s->why, AGENT_DEFERRED, "4.3.5",
	    "not a next hop for %s: %s", s->delivery->transport,
	    s->delivery->nexthop);
	return false;
}

/* Over SMTP a sender may have another address. */
static bool
take_sender(struct session *s)
{
	const struct agent_delivery *delivery = s->delivery;
	struct sender_map *map = s->context->rewrites;
	int r = 0;

	if (delivery->kind == AGENT_SMTP && !sender_map_is_empty(map)) {
		s->rewrites = sender_map_ref(map);
		r = session_rewrite_sender(map, delivery, s->sender);
	}
	if (r < 0)
		verdict_set(
		    &s->why, AGENT_DEFERRED, "4.3.0", "%s", strerror(-r));
	return r >= 0;
}

void
session_start(void *arg, struct agent_delivery *delivery)
{
	struct session_context *context = arg;
	struct session *s = calloc(1, sizeof(*s));
	bool reused = false;

	if (s == NULL) {
		kept_close(context, delivery->connection);
		agent_defer(delivery, "4.3.0", "out of memory");
		return;
	}
	s->context = context;
	s->delivery = delivery;
	delivery->user = s;
	s->settings = context->settings;
	settings_apply(context->conf, delivery->transport, &s->settings);
	settings_reach(&s->settings, delivery->kind, &s->reach);
	s->reach.base = context->base;
	s->reach.lookups = &context->lookups;
	s->reach.ops = &reach_ops;
	s->reach.arg = s;
	TAILQ_INSERT_TAIL(&context->running, s, entry);
	if (kept_is_shared(context, delivery))
		s->spare = delivery->connection;
	else
		reused = kept_take(context, delivery, &s->c);
	if (!reused)
		s->c.policies = policies_ref(context->policies);
	if (!take_nexthop(s))
		session_finish(s, SESSION_FAILED);
	else if (!take_sender(s) || !take_policy(s))
		session_finish(s, SESSION_OURS);
	else if (reused)
		talk_on(s);
	else
		reach_start(&s->reach);
}
