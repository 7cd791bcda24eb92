#include "todo-proc/todo.h"

#include <errno.h>
#include <string.h>

#include "log/log.h"

#define FILES_PER_TURN 20
#define FILES_PER_BELL 4          /* the message queue holds ten rings */
#define READ_PER_TURN  (8u << 20) /* bytes verified */
#define ERROR_WAIT     (60 * USEC_PER_SEC)
#define COUNTS_EVERY   USEC_PER_SEC
#define COUNTS_ALONG   (COUNTS_EVERY / 2) /* with a message */

/* ---- in ---- */

static int
on_credit(struct todo *t, const struct msg *msg)
{
	uint32_t more = msg->u.CREDIT.messages;

	if (more > MSG_PREP_WINDOW - t->credit - t->examine.incoming)
		return -EBADMSG;
	t->credit += more;
	waiting_changed(t);
	return 0;
}

static int
on_prepare(struct todo *t, const struct msg *msg)
{
	struct prepares *p = &t->prepares;

	waiting_changed(t);
	if (p->count + t->examine.deferred >= MSG_PREP_WINDOW ||
	    msg->u.PREPARE.inode == 0)
		return -EBADMSG;
	p->inode[(p->first + p->count++) % MSG_PREP_WINDOW] =
	    msg->u.PREPARE.inode;
	return 0;
}

static int
on_scan(struct todo *t, const struct msg *msg UNUSED)
{
	offered_forget(&t->offered);
	t->incoming.wanted = true;
	return 0;
}

static const struct {
	enum msg_type type;
	int (*handle)(struct todo *t, const struct msg *msg);
} frames[] = {
	{ MSG_CREDIT, on_credit },
	{ MSG_PREPARE, on_prepare },
	{ MSG_SCAN, on_scan },
};

int
offer_frame(struct todo *t, const struct msg *msg)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(frames); i++)
		if (frames[i].type == msg->type)
			return frames[i].handle(t, msg);
	return -EBADMSG;
}

static void
give_up(struct todo *t, const char *what)
{
	log_error("queue-send: %s: stopping", what);
	offer_done(t);
	todo_leave(t, EXIT_TEMPORARY);
}

static void
on_frame(void *arg, struct wire *w UNUSED, struct chan_frame *frame)
{
	struct todo *t = arg;

	todo_tick(t);
	if (offer_frame(t, &frame->msg) < 0)
		give_up(t, msg_name(frame->msg.type));
	else
		todo_kick(t);
}

static void
on_bad(void *arg, struct wire *w UNUSED)
{
	give_up(arg, "a frame that cannot be read");
}

static void
on_closed(void *arg, struct wire *w UNUSED)
{
	struct todo *t = arg;

	log_info("queue-send has ended: stopping");
	offer_done(t);
	todo_leave(t, 0);
}

static const struct wire_ops ops = {
	.manner = WIRE_BUNDLED,
	.frame = on_frame,
	.bad = on_bad,
	.closed = on_closed,
};

int
offer_linked(void *todo, int fd)
{
	struct todo *t = todo;
	struct wire *fresh;
	int r = wire_new(t->base, fd, &ops, t, &fresh);

	if (r < 0)
		return r;
	offer_done(t);
	t->send = fresh;
	t->credit = 0;
	t->era++;
	t->examine.incoming = t->examine.deferred = 0;
	t->prepares.count = 0;
	t->told_at = 0;
	/* A new queue-send knows none of the offered messages. */
	return on_scan(t, NULL);
}

void
offer_done(struct todo *t)
{
	wire_free(&t->send);
}

/* ---- out ---- */

static int
put_with(struct todo *t, const struct msg *msg, int *fd)
{
	int r = wire_give(t->send, msg, fd);

	if (r < 0 && r != -EPIPE && log_due(t->now, USEC_PER_SEC, &t->said_io))
		log_warning("%s to queue-send: %s: not sent",
		    msg_name(msg->type), strerror(-r));
	return r;
}

static int
put(struct todo *t, const struct msg *msg)
{
	int none = -1;

	return put_with(t, msg, &none);
}

/* Of a deferred message queue-send reads the file: its marks may change yet. */
static void
add_facts(const struct examine_task *e, struct msg_MESSAGE *m)
{
	const struct queue_file *f = &e->file;

	if (e->dir != SPOOL_INCOMING)
		return;
	m->version = f->version;
	m->uid = f->uid;
	m->flags = f->flags;
	m->env_len = f->env_len;
	m->rcpt_len = f->rcpt_len;
	m->message_id = MSG_S(e->message_id);
	m->rcpts = (struct msg_str){ e->rcpts.data, e->rcpts.len };
}

static int
send_message(struct todo *t, struct examine_task *e)
{
	struct msg msg = {
		.type = MSG_MESSAGE,
		.u.MESSAGE = {
			.inode = e->inode,
			.dir = e->dir,
			.arrival_wall = e->file.arrival_wall,
			.queue = e->file.queue,
			.nonce = e->file.nonce,
			.size = e->file.size,
			.content_len = e->file.content_len,
			.recipients = e->file.rcpt_count,
			.pending = e->pending,
			.sender = { buf_str(&e->sender), e->sender.len },
			.census = { e->census.data, e->census.len },
			.destinations = { e->destinations.data,
			    e->destinations.len },
			.hops = e->hops,
		},
	};

	add_facts(e, &msg.u.MESSAGE);
	t->says = true;
	return put_with(t, &msg, &e->fd);
}

static bool
is_offered(const struct todo *t, const struct examine_task *e)
{
	return offered_has(&t->offered, e->inode, e->mtime_wall, t->now);
}

/* 0: it was, else what became of the file. */
static int
offer(struct todo *t, struct examination *e)
{
	int r = e->t.task.error;

	if (r == 0 && is_offered(t, &e->t))
		return -EALREADY;
	if (r < 0)
		return r;
	/* The scan that each link begins with finds it. */
	r = e->era == t->era && t->send != NULL ? send_message(t, &e->t)
						: -EALREADY;
	if (r == 0) {
		offered_add(&t->offered, e->t.inode, e->t.mtime_wall, t->now);
		waiting_offered(t, &e->t);
	}
	return r;
}

static void
incoming_ended(struct todo *t, struct examination *e)
{
	int r = offer(t, e);

	if (r < 0 && e->era == t->era)
		t->credit++;
	switch (-r) {
	case 0:
	case EBADMSG:
		break;
	case EALREADY:
	case ENOENT:
		t->counts.rings_stale += e->from.heard;
		break;
	case EAGAIN: /* still being written */
		inbox_later(&t->inbox, &e->from, t->now, 0);
		break;
	default:
		inbox_later(&t->inbox, &e->from, t->now, ERROR_WAIT);
	}
}

/* The next file of incoming/. One that is examined twice at a time would be
 * offered twice. */
static void
offer_next(struct todo *t)
{
	struct inbox_file c;

	if (!inbox_take(&t->inbox, scan_holds(t), &c) ||
	    offered_has(&t->offered, c.inode, c.at, t->now))
		return;
	if (examine_has(t, c.inode)) {
		inbox_later(&t->inbox, &c, t->now, 0);
		return;
	}
	t->credit--;
	if (examine_begin(t, c.inode, &c, incoming_ended) == 0)
		return;
	t->credit++;
	inbox_later(&t->inbox, &c, t->now, ERROR_WAIT);
}

static void
say_gone(struct todo *t, uint64_t inode, int error)
{
	const struct msg gone = {
		.type = MSG_GONE,
		.u.GONE = { .inode = inode, .error = error },
	};

	(void)put(t, &gone);
}

static void
deferred_ended(struct todo *t, struct examination *e)
{
	int r = e->t.task.error;

	if (e->era != t->era || t->send == NULL)
		return;
	if (r == 0)
		r = send_message(t, &e->t);
	if (r < 0)
		say_gone(t, e->t.inode, r);
}

/* The first message of deferred/ that was asked for. */
static void
prepare_next(struct todo *t)
{
	struct prepares *p = &t->prepares;
	const uint64_t inode = p->inode[p->first];
	int r;

	p->first = (p->first + 1) % MSG_PREP_WINDOW;
	p->count--;
	r = examine_begin(t, inode, NULL, deferred_ended);
	if (r < 0)
		say_gone(t, inode, r);
}

/* False: there is nothing to do, or no room for it. */
static bool
begin_some(struct todo *t)
{
	bool may_offer;

	if (examine_is_full(t))
		return false;
	may_offer = t->credit > 0 && inbox_has(&t->inbox, scan_holds(t));
	if (!may_offer && t->prepares.count == 0)
		return false;
	if (may_offer)
		offer_next(t);
	if (t->prepares.count > 0 && !examine_is_full(t))
		prepare_next(t);
	return true;
}

static usec_t
offer_some(struct todo *t)
{
	const usec_t patience = examine_work(t);
	const usec_t tried = inbox_wake(&t->inbox, t->now);
	int n;

	if (t->send == NULL)
		return patience;
	t->read = 0;
	for (n = 0; n < FILES_PER_TURN && t->read < READ_PER_TURN; n++) {
		if (n % FILES_PER_BELL == FILES_PER_BELL - 1)
			bells_take(t);
		if (!begin_some(t))
			return tried < patience ? tried : patience;
	}
	return t->now;
}

usec_t
offer_work(struct todo *t)
{
	const usec_t at = offer_some(t);

	bells_listen(t);
	return at;
}

usec_t
offer_counts_work(struct todo *t)
{
	struct todo_counts *c = &t->counts;
	/* With a message it wakes nobody for itself. */
	usec_t at = t->told_at + (t->says ? COUNTS_ALONG : COUNTS_EVERY);

	t->says = false;
	c->scan_only = t->bell == NULL;
	c->incoming = t->inbox.nfresh + t->inbox.nready + t->inbox.nnewest +
	    t->inbox.nheard + t->inbox.nlater + t->examine.incoming +
	    t->left_out;
	if (t->send == NULL ||
	    (t->told_at != 0 && memcmp(c, &t->told, sizeof(*c)) == 0))
		return USEC_NEVER;
	if (t->told_at != 0 && t->now < at)
		return t->told_at + COUNTS_EVERY;
	t->told_at = t->now;
	t->told = *c;
	(void)put(t,
	    &(struct msg){
		.type = MSG_COUNTS,
		.u.COUNTS = {
			.rings = c->rings,
			.rings_bad = c->rings_bad,
			.rings_stale = c->rings_stale,
			.found_by_scan = c->found_by_scan,
			.lost_rings = c->lost_rings,
			.maildrop = c->maildrop,
			.incoming = c->incoming,
			.corrupt = c->corrupt,
			.scan_only = (uint32_t)c->scan_only,
		},
	    });
	return USEC_NEVER;
}
