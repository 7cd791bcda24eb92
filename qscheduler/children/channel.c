#include "qscheduler/supervisor/super.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "ipc/wire.h"
#include "log/log.h"

#define COMPLAIN_EVERY (60 * USEC_PER_SEC)

static void
on_ready(struct child *c, const struct msg *msg UNUSED)
{
	if (c->proc.state == PROC_STARTING)
		log_debug("%s/%" PRIu32 ": ready", role_names[c->role],
		    c->queue->number);
	child_event(c, PROC_EV_READY);
}

static void
on_status(struct child *c, const struct msg *msg)
{
	const struct msg_str *text = &msg->u.STATUS.text;
	struct buf clean = { 0 };

	if (text_clean(&clean, text->data, text->len, CHILD_TEXT_MAX) == 0)
		snprintf(c->text, sizeof(c->text), "%s", buf_str(&clean));
	buf_done(&clean);
}

static void
on_handed(struct child *c, const struct msg *msg)
{
	if (c->role == ROLE_QUEUE_SEND)
		retire_on_handed(c->queue, &msg->u.HANDED);
}

static void
on_pong(struct child *c, const struct msg *msg)
{
	heartbeat_pong(c, msg->u.PONG.serial);
}

static void
on_sites_lost(struct child *c, const struct msg *msg)
{
	sites_on_lost(c, &msg->u.SITES_LOST);
}

static void
on_sites_counted(struct child *c, const struct msg *msg)
{
	sites_on_counted(c, &msg->u.SITES_COUNTED);
}

static const struct {
	enum msg_type type;
	void (*handle)(struct child *c, const struct msg *msg);
} frames[] = {
	{ MSG_READY, on_ready },
	{ MSG_STATUS, on_status },
	{ MSG_HANDED, on_handed },
	{ MSG_PONG, on_pong },
	{ MSG_SITES_LOST, on_sites_lost },
	{ MSG_SITES_COUNTED, on_sites_counted },
};

static void
complain(struct child *c, usec_t *last, const char *of_what)
{
	if (log_due(clock_mono(), COMPLAIN_EVERY, last))
		log_warning("%s/%" PRIu32 " (pid %ld) %s", role_names[c->role],
		    c->queue->number, (long)c->process.pid, of_what);
}

/* More than a child has to say: the rest waits in the socket, and the child
 * with it, until the next tick. */
static void
count_frame(struct child *c)
{
	if (++c->frames != CHILD_FRAMES)
		return;
	complain(c, &c->flood_told_at, "sends without end: held back");
	channel_hold(c);
}

static void
on_bad(void *arg, struct wire *w UNUSED)
{
	struct child *c = arg;

	complain(c, &c->bad_told_at, "sent a bad frame: dropped");
	count_frame(c);
}

static void
on_frame(void *arg, struct wire *w, struct chan_frame *frame)
{
	struct child *c = arg;
	size_t i;

	for (i = 0; i < ARRAY_LEN(frames); i++)
		if (frames[i].type == frame->msg.type) {
			count_frame(c);
			frames[i].handle(c, &frame->msg);
			return;
		}
	on_bad(c, w);
}

static void
on_closed(void *arg, struct wire *w UNUSED)
{
	struct child *c = arg;

	wire_free(&c->channel);
}

static const struct wire_ops channel_ops = {
	.frame = on_frame,
	.bad = on_bad,
	.closed = on_closed,
};

int
channel_open(struct child *c, int sock)
{
	c->frames = 0;
	c->held = false;
	return wire_new(
	    c->queue->super->loop, sock, &channel_ops, c, &c->channel);
}

void
channel_hold(struct child *c)
{
	c->held = true;
	wire_pause(c->channel, true);
}

void
channel_tick(struct child *c)
{
	if (c->held && c->channel != NULL)
		wire_pause(c->channel, false);
	c->held = false;
	c->frames = 0;
}

void
channel_finish(struct child *c)
{
	c->frames = 0;
	if (c->channel != NULL)
		wire_take_rest(c->channel, CHILD_FRAMES);
	if (c->channel != NULL)
		wire_free(&c->channel);
}

int
child_send(struct child *c, const struct msg *msg, int fd)
{
	int r;

	if (c->channel == NULL)
		return -EPIPE;
	r = wire_send(c->channel, msg, fd);
	/* -EPIPE: it is ending, which is told in another way. */
	if (r < 0 && r != -EPIPE)
		log_warning("%s/%" PRIu32 ": %s: %s", role_names[c->role],
		    c->queue->number, msg_name(msg->type), strerror(-r));
	return r;
}
