#include "queue-send/operators/act_task.h"

#include <errno.h>
#include <string.h>

#include "queue-send/backlog/backlog.h"
#include "queue-send/road/road.h"

/* ---- one message ---- */

/* Memory forgets the message. */
static void
forget(struct send *s, enum spool_dir dir, uint64_t inode, int fd)
{
	if (dir == SPOOL_INCOMING)
		accepted_log_file(s, inode, fd);
	else
		deferred_forget(s, inode);
	s->began_wall = s->now_wall;
	s->pub.changed = true;
	send_wake(s);
}

static int
moved(struct send *s, struct act_task *t, uint32_t *ret_running UNUSED)
{
	if (t->task.error < 0)
		return t->task.error;
	t->spread.moved++;
	forget(s, t->dir, t->id.inode, t->fd);
	return 0;
}

/* The queue that was open is the task's until the act has ended. */
static int
lend_queue(
    const struct send *s, const struct act_order *order, struct act_task *t)
{
	const struct spread *own = order->spread;

	if (!own->open || own->to.queue != order->to) {
		t->base = strdup(s->conf->queue_base);
		if (t->base == NULL)
			return -ENOMEM;
	}
	t->spread = *own;
	*order->spread = (struct spread){ 0 };
	return 0;
}

/* An offer is dropped, as act_on_file() does. */
static int
move(struct send *s, struct message *m, const struct act_order *order)
{
	struct act_task *t = act_task_new(s, order, act_task_spread);

	if (t == NULL)
		return -ENOMEM;
	if (lend_queue(s, order, t) < 0) {
		sync_task_free(&t->task);
		return -ENOMEM;
	}
	t->ended = moved;
	t->offered = m != NULL;
	if (m != NULL)
		act_drop_offer(s, m);
	return act_run(s, t);
}

int
spread_message(struct send *s, const struct act_order *order)
{
	const struct queue_id *id = order->id;
	struct message *m = messages_find(&s->messages, id->inode);
	const struct due *d = due_find(&s->due, id->inode);

	if (order->to == 0 || order->to > QUEUE_NUM_MAX ||
	    order->to == s->sp.queue)
		return -EINVAL;
	if (m != NULL && !message_is(m, id->arrival_wall, id->nonce))
		return -ENOENT;
	/* A thread has the file, or an answer of todo-proc is on its way. */
	if (m != NULL ? move_is_under_way(m) : d != NULL && d->asked)
		return -EAGAIN;
	/* Deaths of agents are in memory: elsewhere they would count from 0. */
	if (d != NULL && d->deaths > 0)
		return -EINVAL;
	if (m != NULL && m->active)
		return -EINVAL;
	return move(s, m, order);
}

void
spread_end(struct send *s, struct spread *spread)
{
	if (spread->open)
		spool_close(&spread->to);
	spread->open = false;
	if (spread->moved > 0 && s->d != NULL)
		daemon_tell(s->d,
		    &(struct msg){ .type = MSG_HANDED,
			.u.HANDED = { .moved = spread->moved } });
	spread->moved = 0;
}
