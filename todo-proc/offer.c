#include "todo-proc/todo.h"

#include <errno.h>
#include <string.h>

#include "log/log.h"

#define FILES_PER_TURN 20
#define FILES_PER_BELL 4          /* the message queue holds ten rings */
#define READ_PER_TURN  (8u << 20) /* bytes verified */
#define ERROR_WAIT     (60 * USEC_PER_SEC)
#define COUNTS_EVERY   USEC_PER_SEC

/* ---- in ---- */

static int
on_credit(struct todo *t, const struct msg *msg)
{
	uint32_t more = msg->u.CREDIT.messages;

	if (more > MSG_PREP_WINDOW - t->credit)
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
	if (p->count == MSG_PREP_WINDOW || msg->u.PREPARE.inode == 0)
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
	daemon_exit(t->d, EXIT_TEMPORARY);
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
	daemon_exit(t->d, 0);
}

static const struct wire_ops ops = {
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
	wire_gather(fresh);
	offer_done(t);
	t->send = fresh;
	t->credit = 0;
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
put(struct todo *t, const struct msg *msg)
{
	int r = wire_send(t->send, msg, -1);

	if (r < 0 && r != -EPIPE && log_due(t->now, USEC_PER_SEC, &t->said_io))
		log_warning("%s to queue-send: %s: not sent",
		    msg_name(msg->type), strerror(-r));
	return r;
}

static int
send_message(struct todo *t, enum spool_dir dir, uint64_t inode,
    const struct examined *e)
{
	const struct msg msg = {
		.type = MSG_MESSAGE,
		.u.MESSAGE = {
			.inode = inode,
			.dir = dir,
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
		},
	};

	return put(t, &msg);
}

/* Subtract this file from the bytes that may be read in this turn. */
static void
charge(uint64_t *left, const struct examined *e)
{
	*left = e->file.size < *left ? *left - e->file.size : 0;
}

/* The next file of incoming/. */
static void
offer_next(struct todo *t, uint64_t *left)
{
	struct inbox_file c;
	struct examined e;
	int r;

	if (!inbox_take(&t->inbox, scan_holds(t), &c))
		return;
	r = examine(t, SPOOL_INCOMING, c.inode, &e);
	if (r == 0) {
		charge(left, &e);
		r = send_message(t, SPOOL_INCOMING, c.inode, &e);
		if (r == 0) {
			t->credit--;
			offered_add(&t->offered, c.inode, e.mtime_wall, t->now);
		}
		examined_done(&e);
	}
	switch (-r) {
	case 0:
	case EALREADY:
	case ENOENT:
	case EBADMSG:
		break;
	case EAGAIN: /* still being written */
		inbox_later(&t->inbox, &c, t->now, 0);
		break;
	default:
		inbox_later(&t->inbox, &c, t->now, ERROR_WAIT);
	}
}

/* The first message of deferred/ that was asked for. */
static void
prepare_next(struct todo *t, uint64_t *left)
{
	struct prepares *p = &t->prepares;
	uint64_t inode = p->inode[p->first];
	struct msg gone = { .type = MSG_GONE, .u.GONE.inode = inode };
	struct examined e;
	int r = examine(t, SPOOL_DEFERRED, inode, &e);

	p->first = (p->first + 1) % MSG_PREP_WINDOW;
	p->count--;
	if (r == 0) {
		charge(left, &e);
		r = send_message(t, SPOOL_DEFERRED, inode, &e);
		examined_done(&e);
	}
	if (r == 0)
		return;
	gone.u.GONE.error = r;
	(void)put(t, &gone);
}

usec_t
offer_work(struct todo *t)
{
	usec_t wake = inbox_wake(&t->inbox, t->now);
	uint64_t left = READ_PER_TURN;
	bool may_offer;
	int n;

	if (t->send == NULL)
		return USEC_NEVER;
	for (n = 0; n < FILES_PER_TURN && left > 0; n++) {
		if (n % FILES_PER_BELL == FILES_PER_BELL - 1)
			bells_take(t);
		may_offer =
		    t->credit > 0 && inbox_has(&t->inbox, scan_holds(t));
		if (!may_offer && t->prepares.count == 0)
			return wake;
		if (may_offer)
			offer_next(t, &left);
		if (t->prepares.count > 0)
			prepare_next(t, &left);
	}
	return t->now;
}

usec_t
offer_counts_work(struct todo *t)
{
	struct todo_counts *c = &t->counts;
	usec_t at = t->told_at + COUNTS_EVERY;

	c->scan_only = t->bell == NULL;
	c->incoming =
	    t->inbox.nfresh + t->inbox.nready + t->inbox.nlater + t->left_out;
	if (t->send == NULL ||
	    (t->told_at != 0 && memcmp(c, &t->told, sizeof(*c)) == 0))
		return USEC_NEVER;
	if (t->told_at != 0 && t->now < at)
		return at;
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
