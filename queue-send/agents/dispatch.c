#include "queue-send/agents/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/io.h"
#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/message/fetch.h"
#include "queue-send/message/path.h"
#include "queue-send/schedule/schedule.h"

#define STARTED_PER_TURN 100
#define DESCRIPTORS_WAIT USEC_PER_SEC

/* Any entry fits into a frame: its recipients, and the strings before them. */
_Static_assert(SCHED_ENTRY_RCPTS_MAX <= AGENT_RCPTS_MAX, "agents take them");
#define FRAME_REST \
	(QUEUE_ID_SIZE + AGENT_NAME_MAX + AGENT_NEXTHOP_MAX + ADDRESS_MAX + 256)
_Static_assert(
    SCHED_ENTRY_RCPTS_MAX *(8 + ADDRESS_MAX) + FRAME_REST < MSG_FRAME_MAX,
    "a DELIVER frame");
_Static_assert(SCHED_ENTRY_RCPTS_MAX *(8 + DSN_ORCPT_MAX) + DSN_ENVID_MAX + 64 <
	MSG_FRAME_MAX,
    "a WISHES frame");

/* The recipients of an entry, for the frame and for the delivery. */
struct deliver_frame {
	struct buf frame;     /* as agent_rcpt_add() makes them */
	struct buf addresses; /* each with its NUL */
	struct dsn_mail dsn;  /* wishes of the sender, and */
	struct buf wishes;    /* of each recipient, by agent_wish_add() */
	bool wished;          /* something was asked for */
};

/* Agents that reach other hosts pass on what the sender asks of reports. */
static bool
may_wish(
    const struct send *s, const struct message *m, const struct sched_entry *e)
{
	const enum agent_kind kind = s->conf->transports[e->transport].kind;

	return m->file.version > QUEUE_FILE_PLAIN &&
	    (kind == AGENT_SMTP || kind == AGENT_LMTP);
}

static int
read_wishes_of_mail(const struct message *m, struct deliver_frame *h)
{
	const int r = queue_file_dsn(m->fd, &m->file, &h->dsn);

	h->wished = r == 0 && !dsn_mail_is_empty(&h->dsn);
	return r;
}

static int
add_wish(struct deliver_frame *h, const struct dsn_rcpt *dsn)
{
	h->wished |= !dsn_rcpt_is_empty(dsn);
	return agent_wish_add(&h->wishes, dsn);
}

static int
say_wishes(
    const struct deliver_frame *h, uint64_t job, struct agent_link *agent)
{
	const struct msg msg = { .type = MSG_WISHES,
		.u.WISHES = { .job = job,
		    .ret = h->dsn.ret,
		    .envid = MSG_S(h->dsn.envid),
		    .rcpts = { h->wishes.data, h->wishes.len } } };

	return h->wished ? wire_send(agent->wire, &msg, -1) : 0;
}

static int
read_rcpts(struct send *s, const struct message *m, const struct sched_entry *e,
    struct deliver_frame *h)
{
	const bool wishes = may_wish(s, m, e);
	struct queue_rcpt rcpt;
	uint32_t i;
	int r = wishes ? read_wishes_of_mail(m, h) : 0;

	for (i = 0; r >= 0 && i < e->nrcpts; i++) {
		r = recipients_read(s, m, e, i, &rcpt);
		if (r >= 0)
			r = agent_rcpt_add(
			    &h->frame, rcpt.index, rcpt.address, rcpt.len);
		if (r >= 0)
			r = buf_add(&h->addresses, rcpt.address, rcpt.len + 1);
		if (r >= 0 && wishes)
			r = add_wish(h, &rcpt.dsn);
	}
	return r;
}

/* Does the message fit into the frame, beside its recipients and FRAME_REST
 * bytes of other fields? */
static bool
fits_whole(const struct message *m, const struct buf *rcpts)
{
	return m->file.content_len <= AGENT_WHOLE_MAX &&
	    rcpts->len + m->file.content_len + FRAME_REST <= MSG_FRAME_MAX;
}

/* A message that is not small goes as a descriptor of its queue file. The
 * descriptor is opened anew, read-only: a copy of m->fd would let the agent
 * write marks. */
static int
send_by_file(struct send *s, const struct message *m, struct agent_link *agent,
    const struct msg_DELIVER_WHOLE *f)
{
	const struct msg msg = {
		.type = MSG_DELIVER,
		.u.DELIVER = {
			.job = f->job,
			.id = f->id,
			.kind = f->kind,
			.transport = f->transport,
			.nexthop = f->nexthop,
			.sender = f->sender,
			.content_off = m->file.content_off,
			.content_len = m->file.content_len,
			.flags = f->flags,
			.nrcpts = f->nrcpts,
			.rcpts = f->rcpts,
		},
	};
	int fd = spool_open_file(&s->sp, SPOOL_ACTIVE, m->inode, O_RDONLY);
	int r;

	if (fd < 0)
		return fd;
	r = wire_give(agent->wire, &msg, &fd);
	io_close(&fd);
	return r;
}

static int
send_whole(const struct message *m, struct agent_link *agent, struct msg *msg)
{
	static char content[AGENT_WHOLE_MAX];
	struct msg_DELIVER_WHOLE *f = &msg->u.DELIVER_WHOLE;
	size_t len =
	    agent_kinds[f->kind].content ? (size_t)m->file.content_len : 0;
	int r = len == 0
	    ? 0
	    : queue_file_content(m->fd, m->file.content_off, content, len);

	if (r < 0)
		return r;
	f->content = (struct msg_str){ content, len };
	return wire_send(agent->wire, msg, -1);
}

static int
send_deliver(struct send *s, const struct delivery *d, struct agent_link *agent,
    const struct buf *rcpts)
{
	const struct message *m = d->message;
	const struct conf_transport *t =
	    &s->conf->transports[d->entry->transport];
	char id[QUEUE_ID_SIZE], sender[ADDRESS_MAX + 1];
	struct msg msg = { .type = MSG_DELIVER_WHOLE };
	int r = sender_for(s, m, d->rcpts[0].address, sender);

	if (r < 0)
		return r;
	message_id(m, id);
	msg.u.DELIVER_WHOLE = (struct msg_DELIVER_WHOLE){
		.job = d->id,
		.id = MSG_S(id),
		.kind = (uint8_t)t->kind,
		.transport = MSG_S(t->name),
		.nexthop = MSG_S(d->nexthop),
		.sender = MSG_S(sender),
		.flags = m->file.flags,
		.nrcpts = d->nrcpts,
		.rcpts = { rcpts->data, rcpts->len },
	};
	if (fits_whole(m, rcpts) || !agent_kinds[t->kind].content)
		return send_whole(m, agent, &msg);
	return send_by_file(s, m, agent, &msg.u.DELIVER_WHOLE);
}

/* The next hop of an entry, whose recipients are h's; size is that of a
 * recipient_route's. -ESTALE: they have more than one. */
static int
find_nexthop(const struct send *s, const struct sched_entry *e,
    const struct deliver_frame *h, struct recipient_route *ret)
{
	const struct message *m = e->owner;
	const char *address = h->addresses.data;
	struct recipient_route to;
	uint32_t i;

	for (i = 0; i < e->nrcpts; i++) {
		if (recipients_route(s, m->sender, address,
			(m->file.flags & QUEUE_FILE_EXPANDED) != 0, &to) < 0 ||
		    to.transport != e->transport || to.mailbox ||
		    (i > 0 && strcasecmp(to.nexthop, ret->nexthop) != 0))
			return -ESTALE;
		*ret = to;
		address += strlen(address) + 1;
	}
	return 0;
}

/* Where the place of the delivery is, for an agent that knows better. */
static int
say_site(const struct send *s, struct delivery *d, struct agent_link *agent)
{
	const struct msg msg = { .type = MSG_SITE,
		.u.SITE = {
		    .job = d->id,
		    .site = MSG_S(d->entry->destination),
		} };

	d->placed = rollup_is_asked(s, d->entry, d->nexthop);
	return d->placed ? wire_send(agent->wire, &msg, -1) : 0;
}

/* A message that is to be marked, and not only removed, needs it as well: no
 * delivery starts whose mark could not be written. */
static bool
needs_file(
    const struct send *s, const struct message *m, const struct sched_entry *e)
{
	const enum agent_kind kind = s->conf->transports[e->transport].kind;

	return m->rcpts == NULL || agent_kinds[kind].content || !s->in_memory ||
	    m->file.rcpt_count > 1 || m->file.version > QUEUE_FILE_PLAIN;
}

/* Open for the delivery, if it is needed. */
static int
use_file(struct send *s, struct message *m, const struct sched_entry *e)
{
	if (needs_file(s, m, e))
		return disk_use(s, m);
	messages_use(&s->messages, m);
	return 0;
}

static int
start_delivery(struct send *s, struct sched_entry *e, struct agent_link *agent,
    const struct kept *kept)
{
	const bool shared = rollup_is_shared(s, e);
	struct deliver_frame h = { 0 };
	struct recipient_route to;
	struct delivery *d = NULL;
	int r = read_rcpts(s, e->owner, e, &h);

	if (r >= 0 && shared)
		r = find_nexthop(s, e, &h, &to);
	if (r >= 0) {
		d = delivery_new(
		    s, e, shared ? to.nexthop : e->nexthop, &h.addresses);
		r = d == NULL ? -ENOMEM : kept_say(s, d, kept, agent);
		if (r >= 0)
			r = say_site(s, d, agent);
		if (r >= 0)
			r = say_wishes(&h, d->id, agent);
		if (r >= 0)
			r = send_deliver(s, d, agent, &h.frame);
	}
	buf_done(&h.frame);
	buf_done(&h.addresses);
	buf_done(&h.wishes);
	if (r < 0) {
		free(d);
		return r;
	}
	delivery_begin(s, d, agent);
	return 0;
}

/* The error is not the message's fault, and the same entry may start later. */
static bool
wait_with(struct send *s, struct agent_link *agent, int error)
{
	/* links.c hears of the end of the link in this turn. */
	if (error == -ENOBUFS || error == -EPIPE) {
		agent->full = true;
		schedule_limits(s);
		return true;
	}
	if (disk_is_shortage(error)) {
		messages_close_resting(&s->messages);
		s->dispatch_at = s->now + DESCRIPTORS_WAIT;
		return true;
	}
	return health_is_general(error);
}

static struct agent_link *
agent_of(const struct send *s, const struct sched_entry *e)
{
	return s->agent[agent_kinds[s->conf->transports[e->transport].kind]
			    .program];
}

static void
put_back(struct send *s, struct sched_entry *e)
{
	struct message *m = e->owner;

	ungreeted_over(s, e);
	sched_put_back(s->sched, e, s->now);
	if (sched_message_running(m->sched) == 0 && m->nunrecorded == 0)
		messages_rest(&s->messages, m, s->now);
}

/* False: nothing more can start in this turn. */
static bool
start(struct send *s, struct sched_entry *e)
{
	struct agent_link *agent = agent_of(s, e);
	struct message *m = e->owner;
	struct kept *kept = kept_find(s, e);
	bool open = m->fate == FATE_OPEN;
	int r = open ? use_file(s, m, e) : m->error;

	ASSERT(agent != NULL); /* transports of that program have limit 0 */
	if (open && r == 0)
		r = start_delivery(s, e, agent, kept);
	if (open && r == 0) {
		if (kept != NULL)
			kept_taken(s, kept);
		return true;
	}
	if (kept != NULL)
		kept_spared(s, kept);
	if (open && wait_with(s, agent, r)) {
		if (health_is_general(r))
			disk_mark_failed(s, m, "open for delivery", r);
		put_back(s, e);
		return r == -ENOBUFS || r == -EPIPE;
	}
	if (r == -ESTALE)
		message_decide(m, FATE_REQUEUED);
	entry_give_up(s, e, SITE_AGENT_DIED, r == -ESTALE ? 0 : r);
	return true;
}

/* The selected entry goes back, and the place that it was to have. */
static void
spare_kept(struct send *s, const struct sched_entry *e)
{
	struct kept *kept = kept_find(s, e);

	if (kept != NULL)
		kept_spared(s, kept);
}

/* True: the entry belongs to another destination, and waits there now. */
static bool
moves(struct send *s, struct sched_entry *e)
{
	const char *elsewhere = rollup_elsewhere(s, e);

	if (elsewhere == NULL)
		return false;
	spare_kept(s, e);
	entry_move(s, e, elsewhere);
	return true;
}

static usec_t
may_start_at(const struct send *s)
{
	if (s->stopping || s->health.read_only || send_is_evacuating(s) ||
	    results_are_full(s))
		return USEC_NEVER;
	return s->dispatch_at;
}

/* The file of an entry that was selected before is in memory. */
static void
start_late(struct send *s, struct sched_entry *e, const char *why UNUSED)
{
	const struct message *m = e->owner;

	if (m->fate != FATE_OPEN) {
		spare_kept(s, e);
		entry_give_up(s, e, SITE_AGENT_DIED, m->error);
	} else if (s->now < may_start_at(s) || agent_of(s, e) == NULL) {
		spare_kept(s, e);
		put_back(s, e);
	} else
		(void)start(s, e);
}

/* True: the entry starts when a thread has its file in memory. */
static bool
waits_for_file(struct send *s, struct sched_entry *e)
{
	struct kept *kept;

	if (!needs_file(s, e->owner, e) || !fetch_entry(s, e, NULL, start_late))
		return false;
	kept = kept_find(s, e);
	if (kept != NULL)
		kept_promise(s, kept, e);
	return true;
}

usec_t
dispatch_work(struct send *s)
{
	const usec_t at = may_start_at(s);
	struct sched_entry *e;
	usec_t again;
	int n;

	schedule_pause(s, s->now < at);
	if (s->now < at)
		return at;
	again = ungreeted_work(s);
	for (n = 0; n < STARTED_PER_TURN; n++) {
		e = sched_select(s->sched, s->now);
		if (e == NULL)
			return again;
		s->pub.changed = true;
		ungreeted_selected(s, e);
		if (moves(s, e) || waits_for_file(s, e))
			continue;
		if (!start(s, e))
			return s->health.read_only ? USEC_NEVER
						   : s->dispatch_at;
	}
	return s->now;
}
