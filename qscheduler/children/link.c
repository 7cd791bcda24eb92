#include "qscheduler/supervisor/super.h"

#include <errno.h>
#include <inttypes.h>

#include "base/io.h"
#include "ipc/msg.h"
#include "log/log.h"

static int
send_link(struct child *c, const char *name, int fd)
{
	const struct msg msg = { .type = MSG_LINK,
		.u.LINK = {
		    .name = MSG_S(name), .generation = c->queue->group } };

	return child_send(c, &msg, fd);
}

void
link_object(struct child *c, const char *name, int fd)
{
	if (fd >= 0 && child_is_joinable(c))
		(void)send_link(c, name, fd);
}

static int
join(struct child *a, struct child *b)
{
	int ends[2];
	int r = chan_pair(ends);

	if (r < 0)
		return r;
	r = send_link(a, role_names[b->role], ends[0]);
	if (r == 0)
		r = send_link(b, role_names[a->role], ends[1]);
	io_close(&ends[0]);
	io_close(&ends[1]);
	return r;
}

/* Everybody is joined to queue-send and to nobody else. A pair that cannot be
 * made is tried again with a new child: the queue does not stay cut. */
static void
join_pair(struct child *leader, struct child *other)
{
	int r;

	if (!child_is_joinable(leader) || !child_is_joinable(other))
		return;
	r = join(leader, other);
	if (r == 0 || r == -EPIPE)
		return;
	log_error("%s/%" PRIu32 ": link to %s: %s: started again",
	    role_names[other->role], other->queue->number,
	    role_names[leader->role], strerror(-r));
	child_event(other, PROC_EV_WANT_AGAIN);
}

void
link_child(struct child *c)
{
	struct queue *q = c->queue;
	struct child *leader = &q->children[ROLE_QUEUE_SEND];
	int role;

	if (c != leader) {
		if (c->role == ROLE_TODO_PROC)
			link_object(c, "bell", q->bell);
		join_pair(leader, c);
		return;
	}
	link_object(c, "page", q->page_fd);
	link_object(c, "qscheduler", q->super->reports);
	sites_link(c);
	for (role = 0; role < NROLES; role++)
		if (role != ROLE_QUEUE_SEND)
			join_pair(leader, &q->children[role]);
}
