#include "todo-proc/hand.h"

#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "todo-proc/bells.h"
#include "todo-proc/examine.h"
#include "todo-proc/scan.h"
#include "todo-proc/waiting.h"

#define LOOKS_PER_TURN 20
#define LOOKS_PER_BELL 4 /* rings are ten at most in the message queue */
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
	handed_forget(&t->handed);
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
hand_frame(struct todo *t, const struct msg *msg)
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
	hand_done(t);
	daemon_exit(t->d, EXIT_TEMPORARY);
}

static void
on_frame(void *arg, struct wire *w UNUSED, struct chan_frame *frame)
{
	struct todo *t = arg;

	todo_tick(t);
	if (hand_frame(t, &frame->msg) < 0)
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

	log_info("queue-send is gone: stopping");
	hand_done(t);
	daemon_exit(t->d, 0);
}

static const struct wire_ops ops = {
	.frame = on_frame,
	.bad = on_bad,
	.closed = on_closed,
};

int
hand_linked(void *todo, int fd)
{
	struct todo *t = todo;
	struct wire *fresh;
	int r = wire_new(t->base, fd, &ops, t, &fresh);

	if (r < 0)
		return r;
	hand_done(t);
	t->send = fresh;
	t->credit = 0;
	t->prepares.count = 0;
	t->told_at = 0;
	/* Whoever it is has got nothing of us. */
	return on_scan(t, NULL);
}

void
hand_done(struct todo *t)
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

/* What the caller may still read in this turn after this file. */
static void
charge(uint64_t *left, const struct examined *e)
{
	*left = e->file.size < *left ? *left - e->file.size : 0;
}

/* The next of incoming/. */
static void
hand_next(struct todo *t, uint64_t *left)
{
	struct candidate c;
	struct examined e;
	int r;

	if (!backlog_take(&t->backlog, scan_holds(t), &c))
		return;
	r = examine(t, SPOOL_INCOMING, c.inode, &e);
	if (r == 0) {
		charge(left, &e);
		r = send_message(t, SPOOL_INCOMING, c.inode, &e);
		if (r == 0) {
			t->credit--;
			handed_add(&t->handed, c.inode, e.mtime_wall, t->now);
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
		backlog_later(&t->backlog, &c, t->now, 0);
		break;
	default:
		backlog_later(&t->backlog, &c, t->now, ERROR_WAIT);
	}
}

/* The first that was asked for of deferred/. */
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
hand_work(struct todo *t)
{
	usec_t wake = backlog_wake(&t->backlog, t->now);
	uint64_t left = READ_PER_TURN;
	bool may_hand;
	int n;

	if (t->send == NULL)
		return USEC_NEVER;
	for (n = 0; n < LOOKS_PER_TURN && left > 0; n++) {
		if (n % LOOKS_PER_BELL == LOOKS_PER_BELL - 1)
			bells_take(t);
		may_hand =
		    t->credit > 0 && backlog_has(&t->backlog, scan_holds(t));
		if (!may_hand && t->prepares.count == 0)
			return wake;
		if (may_hand)
			hand_next(t, &left);
		if (t->prepares.count > 0)
			prepare_next(t, &left);
	}
	return t->now;
}

usec_t
hand_counts_work(struct todo *t)
{
	struct todo_counts *c = &t->counts;
	usec_t at = t->told_at + COUNTS_EVERY;

	c->scan_only = t->bell == NULL;
	c->incoming = t->backlog.nfresh + t->backlog.nready +
	    t->backlog.nlater + t->left_out;
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
