#include "queue-send/operators/own.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "ipc/situation.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/agents/agents.h"
#include "queue-send/message/path.h"
#include "queue-send/schedule/schedule.h"
#include "site/shared.h"

#define SITE_SIZE (SITE_NAME_MAX + 80) /* TRANSPORT/DESTINATION */

struct explanation {
	struct send *s;
	struct wire *peer;
	uint64_t serial;
	uint32_t groups, steps; /* left */
};

/* ---- frames ---- */

static void
say(struct explanation *x, struct msg_EXPLAINED fact)
{
	struct msg msg = { .type = MSG_EXPLAINED };

	fact.serial = x->serial;
	msg.u.EXPLAINED = fact;
	(void)wire_send(x->peer, &msg, -1);
}

/* A situation without figures. */
static void
say_if(struct explanation *x, bool is, enum situation situation)
{
	if (is)
		say(x, (struct msg_EXPLAINED){ .situation = situation });
}

static void
say_end(struct explanation *x, int error, uint32_t left_out)
{
	const struct msg msg = { .type = MSG_EXPLAINED_END,
		.u.EXPLAINED_END = { x->serial, error, left_out } };

	(void)wire_send(x->peer, &msg, -1);
}

static usec_t
wall(const struct send *s, usec_t mono)
{
	return mono == 0 || mono == USEC_NEVER ? 0
					       : s->now_wall + (mono - s->now);
}

static msg_str
site_text(const struct send *s, uint32_t transport, const char *name,
    char out[SITE_SIZE])
{
	snprintf(
	    out, SITE_SIZE, "%s/%s", s->conf->transports[transport].name, name);
	return MSG_S(out);
}

static const char *
agent_name(const struct send *s, uint32_t transport)
{
	return agent_program_names
	    [agent_kinds[s->conf->transports[transport].kind].program];
}

/* ---- the queue ---- */

/* Messages that are on their way have a place. */
static uint32_t
used_places(const struct send *s)
{
	const uint32_t *count = s->messages.count;

	return s->active + count[STATE_ENTERING_INCOMING] +
	    count[STATE_ENTERING_DEFERRED];
}

static void
explain_queue(struct explanation *x)
{
	const struct send *s = x->s;

	if (s->health.read_only)
		say(x,
		    (struct msg_EXPLAINED){ .situation = SITUATION_READ_ONLY,
			.until_wall = wall(s, s->health.probe_at),
			.why = MSG_S(strerror(-s->health.error)) });
	say_if(x, send_is_evacuating(s), SITUATION_CLOSING);
	say_if(x, s->stopping, SITUATION_STOPPING);
	say_if(x, s->pub.page != NULL && s->pub.page->disabled != 0,
	    SITUATION_DISABLED);
	say_if(x, !shared_is_attached(s->sites) || shared_is_lost(s->sites),
	    SITUATION_NO_TABLE);
	say_if(x, !links_has_todo(s), SITUATION_NO_TODO);
	if (used_places(s) >= s->conf->sched.message_active_limit)
		say(x,
		    (struct msg_EXPLAINED){ .situation = SITUATION_ACTIVE_FULL,
			.used = used_places(s),
			.limit = s->conf->sched.message_active_limit });
}

/* ---- a destination ---- */

/* Say whether the destination of a next hop is dead, or how full its window is.
 * A next hop may share a destination with others; SITUATION_UNPLACED: that
 * destination is not known yet. */
static void
explain_site(struct explanation *x, uint32_t transport, const char *name)
{
	struct send *s = x->s;
	const bool asks = rollup_may_be_shared(s, transport, name);
	const char *at = asks ? delivery_destination(s, transport, name) : name;
	const char *shown = at == NULL ? name : at;
	struct site *site = site_open(s->sites, transport, shown, s->now);
	char text[SITE_SIZE];
	struct msg_EXPLAINED fact = { .site = site_text(
					  s, transport, shown, text) };
	struct site_view v;

	if (site == NULL)
		return;
	(void)site_state(site, s->now);
	site_view(site, &v);
	fact.situation = at == NULL ? SITUATION_UNPLACED : SITUATION_OPEN;
	fact.used = v.busy;
	fact.limit = v.window;
	if (v.state == SITE_DEAD) {
		fact.situation = SITUATION_DEAD;
		fact.since_wall = wall(s, v.dead_since);
		fact.until_wall = wall(s, v.dead_until);
		fact.why = MSG_S(v.why);
	}
	say(x, fact);
	site_close(site, s->now);
}

/* ---- a message that waits outside ---- */

static void
explain_parked(struct explanation *x, const struct due *d)
{
	const struct send *s = x->s;
	const struct backlog *b = share_backlog_of(d);
	char text[SITE_SIZE];
	struct msg_EXPLAINED fact = { .situation = SITUATION_PARKED,
		.used = backlog_load(b),
		.limit = backlog_limit(s),
		.site = site_text(s, b->transport, b->name, text) };
	bool more;

	fact.ahead = due_parked_before(d, x->steps, &more);
	fact.more = more;
	say(x, fact);
	if (backlog_is_dead(s, b))
		explain_site(x, b->transport, b->name);
}

static void
explain_suspect(struct explanation *x, const struct due *d)
{
	struct send *s = x->s;
	const uint64_t suspect = offers_suspect(s);
	const struct message *other = messages_find(&s->messages, suspect);
	char id[QUEUE_ID_SIZE] = "";

	if (other != NULL && suspect != d->inode)
		message_id(other, id);
	say(x,
	    (struct msg_EXPLAINED){ .situation = SITUATION_SUSPECT,
		.need = d->deaths,
		.other = MSG_S(id) });
}

static void
explain_waiting(struct explanation *x, const struct due *d)
{
	const struct send *s = x->s;
	const bool due = d->epoch != s->due.epoch || d->at_mono <= s->now;

	if (d->deaths >= RETRY_SUSPECT_DEATHS)
		explain_suspect(x, d);
	if (d->asked)
		say_if(x, true, SITUATION_PREPARED);
	else if (d->parked)
		explain_parked(x, d);
	else if (due)
		say(x,
		    (struct msg_EXPLAINED){ .situation = SITUATION_DUE,
			.used = (uint32_t)s->due.asked,
			.limit = admission_window(
			    s->conf->sched.message_active_limit) });
	else
		say(x,
		    (struct msg_EXPLAINED){ .situation = SITUATION_LATER,
			.until_wall = wall(s, d->at_mono) });
}

/* At most two windows of these are there. */
static void
explain_offered(struct explanation *x, const struct message *m)
{
	const struct send *s = x->s;
	const struct message *before = m;
	struct msg_EXPLAINED fact = { .situation = SITUATION_OFFERED,
		.used = used_places(s),
		.limit = s->conf->sched.message_active_limit };

	while ((before = TAILQ_PREV(before, message_queue, on)) != NULL)
		fact.ahead++;
	say(x, fact);
}

/* ---- a message of the active queue ---- */

static const enum situation by_state[NSTATES] = {
	[STATE_READING] = SITUATION_READING,
	[STATE_FETCHING] = SITUATION_READING,
	[STATE_FINISHED] = SITUATION_LEAVING,
	[STATE_STUCK] = SITUATION_STUCK,
	[STATE_UNSYNCED] = SITUATION_SYNCING,
	[STATE_SYNCING] = SITUATION_SYNCING,
	[STATE_UNREPORTED] = SITUATION_REPORTING,
	[STATE_REPORTING] = SITUATION_REPORTING,
	[STATE_UNMOVED] = SITUATION_LEAVING,
	[STATE_LEAVING] = SITUATION_MOVING,
};

static const char *const fate_names[NFATES] = {
	[FATE_EVICTED] = "parked",
	[FATE_ASIDE] = "moved to another queue",
	[FATE_SUSPECT] = "deferred, since agents died while delivering it",
	[FATE_REQUEUED] = "requeued",
	[FATE_HELD] = "held",
	[FATE_DELETED] = "deleted",
	[FATE_POISON] = "put on hold, since agents died while delivering it",
	[FATE_UNREADABLE] = "deferred, since its file cannot be read",
	[FATE_DAMAGED] = "put aside as damaged",
	[FATE_REPLACED] = "looked for again",
	[FATE_VANISHED] = "forgotten, since its file is gone",
};

static void
explain_state(struct explanation *x, const struct message *m)
{
	const struct send *s = x->s;
	const uint32_t unread =
	    message_has_unread(m) ? m->file.rcpt_count - m->next_index : 0;
	enum situation situation = by_state[m->state];

	if (situation == SITUATION_NONE && unread > 0)
		situation = SITUATION_UNREAD;
	if (situation != SITUATION_NONE)
		say(x,
		    (struct msg_EXPLAINED){ .situation = situation,
			.recipients = unread,
			.until_wall = situation == SITUATION_STUCK
			    ? wall(s, s->stuck_at)
			    : 0 });
	if (m->nunrecorded > 0)
		say(x,
		    (struct msg_EXPLAINED){ .situation = SITUATION_RECORDING,
			.recipients = m->nunrecorded });
	if (fate_names[m->fate] != NULL && m->sched != NULL)
		say(x,
		    (struct msg_EXPLAINED){ .situation = SITUATION_DECIDED,
			.why = MSG_S(fate_names[m->fate]),
			.need = sched_message_running(m->sched) });
}

static void
explain_delivery(struct explanation *x, const struct delivery *d)
{
	const struct send *s = x->s;
	const struct sched_entry *e = d->entry;
	char text[SITE_SIZE];

	x->groups--;
	say(x,
	    (struct msg_EXPLAINED){ .situation = SITUATION_DELIVERING,
		.recipients = d->nrcpts - d->nreported,
		.pid = d->agent->pid,
		.since_wall = wall(s, d->selected_at),
		.site = site_text(s, e->transport, e->destination, text),
		.why = MSG_S(agent_name(s, e->transport)) });
}

/* Deliveries of all messages are as many as their agents may have: process
 * limits. The number of recipients that were left out. */
static uint32_t
explain_deliveries(struct explanation *x, const struct message *m)
{
	const struct agent_link *agent;
	const struct delivery *d;
	uint32_t left_out = 0;

	if (sched_message_running(m->sched) == 0)
		return 0;
	TAILQ_FOREACH (agent, &x->s->agents, link)
		TAILQ_FOREACH (d, &agent->deliveries, of_agent) {
			if (d->message != m)
				continue;
			if (x->groups > 0)
				explain_delivery(x, d);
			else
				left_out += d->nrcpts - d->nreported;
		}
	return left_out;
}

static const enum situation by_reason[] = {
	[SCHED_WAITS_AGENT] = SITUATION_NO_AGENT,
	[SCHED_WAITS_DEAD] = SITUATION_DEAD,
	[SCHED_WAITS_WINDOW] = SITUATION_WINDOW,
	[SCHED_WAITS_BEHIND] = SITUATION_BEHIND,
	[SCHED_WAITS_LIMIT] = SITUATION_AGENTS,
	[SCHED_WAITS_TURN] = SITUATION_NEXT,
};

static uint32_t
hundredths(int64_t n)
{
	return n < 0 ? 0 : n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* used of limit, and what else the reason has. */
static void
fill_figures(const struct send *s, const struct sched_wait *w,
    struct msg_EXPLAINED *fact)
{
	switch (w->reason) {
	case SCHED_WAITS_WINDOW:
		fact->used = w->site.busy;
		fact->limit = w->site.window;
		break;
	case SCHED_WAITS_DEAD:
		fact->since_wall = wall(s, w->site.dead_since);
		fact->until_wall = wall(s, w->site.dead_until);
		fact->why = MSG_S(w->site.why == NULL ? "" : w->site.why);
		break;
	case SCHED_WAITS_BEHIND:
		fact->used = w->other.selected;
		fact->limit = w->other.total;
		fact->need = hundredths(w->need);
		fact->have = hundredths(w->have);
		break;
	case SCHED_WAITS_AGENT:
		fact->why = MSG_S(agent_name(s, w->transport));
		fact->until_wall = wall(s, s->dispatch_at);
		break;
	case SCHED_WAITS_LIMIT:
	case SCHED_WAITS_TURN:
		fact->used = w->busy;
		fact->limit = w->limit;
		break;
	}
}

static void
explain_wait(void *arg, const struct sched_wait *w)
{
	struct explanation *x = arg;
	const struct send *s = x->s;
	char text[SITE_SIZE], id[QUEUE_ID_SIZE] = "";
	struct msg_EXPLAINED fact = { .situation = by_reason[w->reason],
		.recipients = w->recipients,
		.ahead = w->ahead,
		.more = w->more,
		.site = site_text(s, w->transport, w->destination, text) };

	fill_figures(s, w, &fact);
	/* The scheduler takes it for full, and its window is not. */
	if (w->reason == SCHED_WAITS_WINDOW && w->site.busy < w->site.window &&
	    ungreeted_is_held(
		x->s, w->transport, w->destination, &fact.used, &fact.limit))
		fact.situation = SITUATION_UNGREETED;
	if (w->reason == SCHED_WAITS_BEHIND)
		message_id(w->other.owner, id);
	if (w->reason == SCHED_WAITS_AGENT && schedule_is_paused(s))
		fact.situation = SITUATION_PAUSED;
	fact.other = MSG_S(id);
	say(x, fact);
}

/* The number of recipients that were left out. */
static uint32_t
explain_active(struct explanation *x, const struct message *m)
{
	uint32_t left_out, waiting, told;

	explain_state(x, m);
	if (m->sched == NULL)
		return 0;
	left_out = explain_deliveries(x, m);
	waiting = sched_message_waiting(m->sched);
	told = sched_explain(m->sched, x->groups, &x->steps, explain_wait, x);
	return left_out + (waiting > told ? waiting - told : 0);
}

/* ---- questions ---- */

static void
explain_unknown(struct explanation *x)
{
	const uint64_t incoming = x->s->todo_counts.incoming;

	say(x,
	    (struct msg_EXPLAINED){ .situation = SITUATION_UNKNOWN,
		.ahead =
		    incoming > UINT32_MAX ? UINT32_MAX : (uint32_t)incoming });
}

void
explain_message(struct send *s, struct wire *peer, const struct msg_EXPLAIN *f)
{
	struct explanation x = { s, peer, f->serial, EXPLAIN_GROUPS,
		EXPLAIN_STEPS };
	const struct message *m = messages_find(&s->messages, f->inode);
	const struct due *d = due_find(&s->due, f->inode);
	uint32_t left_out = 0;

	if (m != NULL && !message_is(m, f->arrival_wall, f->nonce)) {
		say_end(&x, -ENOENT, 0);
		return;
	}
	explain_queue(&x);
	if (m != NULL && message_is_active(m))
		left_out = explain_active(&x, m);
	else if (m != NULL && move_is_under_way(m))
		say_if(&x, true, SITUATION_ENTERING);
	else if (m != NULL)
		explain_offered(&x, m);
	else if (d != NULL)
		explain_waiting(&x, d);
	else if (removal_is_under_way(s, f->inode))
		say_if(&x, true, SITUATION_LEAVING);
	else
		explain_unknown(&x);
	say_end(&x, 0, left_out);
}

/* The sentence of the situation begins with these words, too. */
static const char *
behind_no_route(const char *why)
{
	static const char words[] = "no route: ";
	const size_t len = sizeof(words) - 1;

	return strncmp(why, words, len) == 0 ? why + len : why;
}

void
explain_address(
    struct send *s, struct wire *peer, const struct msg_EXPLAIN_TO *f)
{
	struct explanation x = { s, peer, f->serial, EXPLAIN_GROUPS,
		EXPLAIN_STEPS };
	char address[ADDRESS_MAX + 1], sender[ADDRESS_MAX + 1];
	char name[ROUTE_DESTINATION_MAX + 1];
	struct recipient_route to;
	int r = f->address.len > ADDRESS_MAX || f->sender.len > ADDRESS_MAX
	    ? -ENAMETOOLONG
	    : address_check(f->address.data, f->address.len);

	if (r < 0) {
		say_end(&x, r, 0);
		return;
	}
	memcpy(address, f->address.data, f->address.len);
	address[f->address.len] = '\0';
	memcpy(sender, f->sender.data, f->sender.len);
	sender[f->sender.len] = '\0';
	r = recipients_route(s, sender, address, f->expanded != 0, &to);
	if (r < 0)
		say(&x,
		    (struct msg_EXPLAINED){ .situation = r == -EDESTADDRREQ
			    ? SITUATION_HOPELESS
			    : SITUATION_NO_ROUTE,
			.why = MSG_S(behind_no_route(to.why)) });
	else if (route_destination(
		     to.nexthop, to.by_itself ? address : NULL, name) >= 0)
		explain_site(&x, to.transport, name);
	say_end(&x, 0, 0);
}
