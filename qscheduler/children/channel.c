#include "qscheduler/children/children.h"

#include <errno.h>

#include "base/clock.h"
#include "ipc/msg.h"
#include "ipc/wire.h"
#include "log/log.h"

#define COMPLAIN_EVERY (60 * USEC_PER_SEC)

static void
complain(struct child *c, usec_t *last, const char *of_what)
{
	if (log_due(clock_mono(), COMPLAIN_EVERY, last))
		log_warning(
		    "%s (pid %ld) %s", c->name, (long)c->process.pid, of_what);
}

/* A child that says more than it has to say waits, with the rest in its socket,
 * until the next tick. */
static void
count_frame(struct child *c)
{
	if (++c->channel.frames != CHANNEL_FRAMES_MAX)
		return;
	complain(c, &c->channel.flood_told_at, "sends without end: held back");
	channel_hold(c);
}

static void
on_bad(void *arg, struct wire *w UNUSED)
{
	struct child *c = arg;

	complain(c, &c->channel.bad_told_at, "sent a bad frame: dropped");
	count_frame(c);
}

static const struct child_frame *
find(const struct child_frames *of, const struct msg *msg)
{
	size_t i;

	for (i = 0; i < of->n; i++)
		if (of->rows[i].type == msg->type)
			return &of->rows[i];
	return NULL;
}

static void
on_frame(void *arg, struct wire *w, struct chan_frame *frame)
{
	struct child *c = arg;
	const struct child_frame *row = find(c->frames, &frame->msg);

	if (row == NULL)
		row = find(&c->group->events->frames, &frame->msg);
	if (row == NULL) {
		on_bad(c, w);
		return;
	}
	count_frame(c);
	row->handle(c, &frame->msg);
}

static void
on_closed(void *arg, struct wire *w UNUSED)
{
	struct child *c = arg;

	wire_free(&c->channel.wire);
}

static const struct wire_ops channel_ops = {
	.frame = on_frame,
	.bad = on_bad,
	.closed = on_closed,
};

int
channel_open(struct child *c, int sock)
{
	c->channel.frames = 0;
	c->channel.held = false;
	return wire_new(c->group->all->instance->loop, sock, &channel_ops, c,
	    &c->channel.wire);
}

void
channel_hold(struct child *c)
{
	c->channel.held = true;
	wire_pause(c->channel.wire, true);
}

void
channel_tick(struct child *c)
{
	if (c->channel.held && c->channel.wire != NULL)
		wire_pause(c->channel.wire, false);
	c->channel.held = false;
	c->channel.frames = 0;
}

void
channel_finish(struct child *c)
{
	c->channel.frames = 0;
	if (c->channel.wire != NULL)
		wire_take_rest(c->channel.wire, CHANNEL_FRAMES_MAX);
	if (c->channel.wire != NULL)
		wire_free(&c->channel.wire);
}

bool
child_is_joinable(const struct child *c)
{
	return c->channel.wire != NULL &&
	    (c->proc.state == PROC_STARTING || c->proc.state == PROC_UP);
}

int
child_send(struct child *c, const struct msg *msg, int fd)
{
	int r;

	if (c->channel.wire == NULL)
		return -EPIPE;
	r = wire_send(c->channel.wire, msg, fd);
	/* -EPIPE: the child is ending, which is told in another way. */
	if (r < 0 && r != -EPIPE)
		log_warning(
		    "%s: %s: %s", c->name, msg_name(msg->type), strerror(-r));
	return r;
}

int
child_link(struct child *c, const char *name, int fd)
{
	const struct msg msg = { .type = MSG_LINK,
		.u.LINK = {
		    .name = MSG_S(name), .generation = c->group->generation } };

	return child_send(c, &msg, fd);
}

void
child_give(struct child *c, const char *name, int fd)
{
	if (fd >= 0 && child_is_joinable(c))
		(void)child_link(c, name, fd);
}
