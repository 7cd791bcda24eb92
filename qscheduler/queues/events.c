#include "qscheduler/queues/queues.h"

#include "base/clock.h"
#include "ipc/msg.h"

static struct queue *
queue_of(const struct child *c)
{
	return c->group->owner;
}

static bool
is_queue_send(const struct child *c)
{
	return c->role->leads;
}

/* ---- frames ---- */

static void
on_handed(struct child *c, const struct msg *msg)
{
	if (is_queue_send(c))
		retirement_on_handed(
		    queue_of(c), msg->u.HANDED.moved, msg->u.HANDED.left);
}

static void
on_sites_lost(struct child *c, const struct msg *msg)
{
	if (is_queue_send(c))
		sites_on_lost(queue_of(c), msg->u.SITES_LOST.number);
}

static void
on_sites_counted(struct child *c, const struct msg *msg)
{
	if (is_queue_send(c))
		sites_on_counted(queue_of(c), msg->u.SITES_COUNTED.number);
}

static const struct child_frame frames[] = {
	{ MSG_HANDED, on_handed },
	{ MSG_SITES_LOST, on_sites_lost },
	{ MSG_SITES_COUNTED, on_sites_counted },
};

/* ---- the life of a child ---- */

static void
on_started(struct child *c)
{
	const struct queue *q = queue_of(c);
	const unsigned objects = c->role->objects;

	if ((objects & OBJECT(PAGE)) != 0)
		child_give(c, "page", q->page_fd);
	if ((objects & OBJECT(REPORTS)) != 0)
		child_give(c, "qscheduler", q->all->reports);
	if ((objects & OBJECT(SITES)) != 0)
		sites_link(c);
	if ((objects & OBJECT(BELL)) != 0)
		child_give(c, "bell", q->bell);
}

static void
on_ended(struct child *c)
{
	queue_of(c)->last_status = c->last_status;
}

static void
on_slow(struct child *c)
{
	queue_suspect(queue_of(c), clock_mono());
}

static void
on_changed(struct group *g)
{
	struct queue *q = g->owner;

	retirement_progress(q);
	q->all->events->progress(q->all->ctx);
}

static void
on_over(struct group *g)
{
	sites_group_gone(g->owner);
}

const struct child_events queue_child_events = {
	.started = on_started,
	.ended = on_ended,
	.stuck = sites_child_stuck,
	.slow = on_slow,
	.changed = on_changed,
	.over = on_over,
	.frames = { frames, ARRAY_LEN(frames) },
};

void
queues_orphans_gone(void *ctx, uint32_t queue)
{
	struct queues *all = ctx;
	struct group *g = children_find(all->children, queue);

	if (queue != 0)
		sites_collect(all);
	if (g != NULL)
		group_clear(g);
}
