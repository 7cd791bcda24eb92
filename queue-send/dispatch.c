#include "queue-send/peers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "log/log.h"
#include "queue-send/backlog.h"
#include "queue-send/road.h"
#include "queue-send/schedule.h"

#define STARTED_PER_TURN 100
#define HOLD_MAX         16384 /* bytes of a message that is read at once */
#define DESCRIPTORS_WAIT USEC_PER_SEC

/* Any entry fits into a frame: its recipients, and the strings before them. */
_Static_assert(SCHED_ENTRY_RCPTS_MAX <= AGENT_RCPTS_MAX, "agents take them");
#define FRAME_REST \
	(QUEUE_ID_SIZE + AGENT_NAME_MAX + AGENT_NEXTHOP_MAX + ADDRESS_MAX + 256)
_Static_assert(
    SCHED_ENTRY_RCPTS_MAX *(8 + ADDRESS_MAX) + FRAME_REST < MSG_FRAME_MAX,
    "a DELIVER frame");

/* The recipients of an entry, for the frame and for the delivery. */
struct deliver_frame {
	struct buf frame;     /* as agent_rcpt_add() makes them */
	struct buf addresses; /* each with its NUL */
};

static int
read_rcpts(struct send *s, const struct message *m, const struct sched_entry *e,
    struct deliver_frame *h)
{
	struct queue_rcpt rcpt;
	uint32_t i;
	int r = 0;

	for (i = 0; r >= 0 && i < e->nrcpts; i++) {
		r = recipients_read(s, m, e, i, &rcpt);
		if (r >= 0)
			r = agent_rcpt_add(
			    &h->frame, rcpt.index, rcpt.address, rcpt.len);
		if (r >= 0)
			r = buf_add(&h->addresses, rcpt.address, rcpt.len + 1);
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
	r = wire_send(agent->wire, &msg, fd);
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
	int r = queue_file_content(m->fd, m->file.content_off, content, len);

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
	char id[QUEUE_ID_SIZE];
	struct msg msg = { .type = MSG_DELIVER_WHOLE };

	message_id(m, id);
	msg.u.DELIVER_WHOLE = (struct msg_DELIVER_WHOLE){
		.job = d->id,
		.id = MSG_S(id),
		.kind = (uint8_t)t->kind,
		.transport = MSG_S(t->name),
		.nexthop = MSG_S(d->entry->nexthop),
		.sender = MSG_S(m->sender),
		.flags = m->file.flags,
		.nrcpts = d->nrcpts,
		.rcpts = { rcpts->data, rcpts->len },
	};
	if (fits_whole(m, rcpts) || !agent_kinds[t->kind].content)
		return send_whole(m, agent, &msg);
	return send_by_file(s, m, agent, &msg.u.DELIVER_WHOLE);
}

/* Recipients and content come with one read. */
static int
hold_small(struct send *s, const struct message *m)
{
	const struct message_file *f = &m->file;

	if (f->rcpt_off + f->rcpt_len >= HOLD_MAX)
		return 0;
	return queue_file_hold(m->fd, &s->bytes);
}

static int
start_delivery(struct send *s, struct sched_entry *e, struct agent_link *agent,
    const struct kept *kept)
{
	struct deliver_frame h = { 0 };
	struct delivery *d = NULL;
	int r = hold_small(s, e->owner);

	if (r >= 0)
		r = read_rcpts(s, e->owner, e, &h);
	if (r >= 0) {
		d = delivery_new(s, e, &h.addresses);
		r = d == NULL ? -ENOMEM : kept_say(s, d, kept, agent);
		if (r >= 0)
			r = send_deliver(s, d, agent, &h.frame);
	}
	queue_file_let_go();
	buf_done(&h.frame);
	buf_done(&h.addresses);
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
		s->dispatch_at = s->now + DESCRIPTORS_WAIT;
		return true;
	}
	return health_is_general(error);
}

void
dispatch_give_up(
    struct send *s, struct sched_entry *e, enum site_result result, int error)
{
	struct message *m = e->owner;

	if (disk_is_shortage(error))
		s->dispatch_at = s->now + DESCRIPTORS_WAIT;
	else if (error < 0 && error != -ENOENT && error != -EBADMSG &&
	    error != -EPERM)
		disk_mark_failed(s, m, "open for delivery", error);
	message_fail(m, error);
	claims_end(s, m, e);
	sched_done(s->sched, e, result, NULL, s->now);
	settle_message(s, m);
}

/* False: nothing more can start in this turn. */
static bool
start(struct send *s, struct sched_entry *e)
{
	struct agent_link *agent =
	    s->agent[agent_kinds[s->conf->transports[e->transport].kind]
			 .program];
	struct message *m = e->owner;
	struct kept *kept = kept_find(s, e);
	bool open = m->fate == FATE_OPEN;
	int r = open ? disk_use(s, m) : m->error;

	ASSERT(agent != NULL); /* transports of that program have limit 0 */
	if (open && r == 0)
		r = start_delivery(s, e, agent, kept);
	if (open && r == 0) {
		if (kept != NULL)
			kept_taken(s, kept);
		return true;
	}
	if (kept != NULL)
		kept_spared(kept);
	if (open && wait_with(s, agent, r)) {
		if (health_is_general(r))
			disk_mark_failed(s, m, "open for delivery", r);
		sched_put_back(s->sched, e, s->now);
		if (sched_message_running(m->sched) == 0 && m->nunrecorded == 0)
			messages_rest(&s->messages, m, s->now);
		return r == -ENOBUFS || r == -EPIPE;
	}
	dispatch_give_up(s, e, SITE_AGENT_DIED, r);
	return true;
}

static usec_t
may_start_at(const struct send *s)
{
	if (s->stopping || s->health.read_only || send_is_evacuating(s))
		return USEC_NEVER;
	return s->dispatch_at;
}

usec_t
dispatch_work(struct send *s)
{
	const usec_t at = may_start_at(s);
	struct sched_entry *e;
	int n;

	schedule_pause(s, s->now < at);
	if (s->now < at)
		return at;
	for (n = 0; n < STARTED_PER_TURN; n++) {
		e = sched_select(s->sched, s->now);
		if (e == NULL)
			return USEC_NEVER;
		s->pub.changed = true;
		if (!start(s, e))
			return s->health.read_only ? USEC_NEVER
						   : s->dispatch_at;
	}
	return s->now;
}
