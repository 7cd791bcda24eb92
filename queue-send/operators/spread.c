#include "queue-send/disk/act_task.h"

#include <errno.h>

#include "base/io.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/own.h"
#include "queue-send/message/path.h"
#include "queue-send/operators/operators.h"

/* ---- one message ---- */

void
spread_left(struct send *s, const struct act_task *t)
{
	if (t->dir == SPOOL_INCOMING && t->fd >= 0)
		accepted_log_file(s, t->id.inode, t->fd);
	if (t->dir == SPOOL_DEFERRED)
		deferred_forget(s, t->id.inode);
	if (t->dir == SPOOL_HOLD)
		deferred_left_hold(s);
	s->began_wall = s->now_wall;
	s->pub.changed = true;
	send_wake(s);
}

/* The answer is that of the new act, which locks the file itself. */
static int
order_again(struct send *s, struct act_task *t, bool again)
{
	const struct act_order order = { .what = ACT_SPREAD,
		.id = &t->id,
		.to = other_queue_number(t->to),
		.again = again,
		.by = t->by };

	io_close(&t->fd);
	acts_do(s, &order);
	return ACT_UNDER_WAY;
}

static int
moved(struct send *s, struct act_task *t, uint32_t *ret_running UNUSED)
{
	other_queue_used(t->to, t->task.error);
	if (t->task.error == -ESTALE && !t->again)
		return order_again(s, t, true);
	if (t->task.error < 0)
		return t->task.error;
	spread_left(s, t);
	return 0;
}

/* Of several queues a plan names now one, now another. */
static struct other_queue **
place_of(struct spread *spread, uint32_t queue)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(spread->to); i++)
		if (spread->to[i] != NULL &&
		    other_queue_number(spread->to[i]) == queue)
			return &spread->to[i];
	return &spread->to[spread->next++ % ARRAY_LEN(spread->to)];
}

/* A queue stays open for the next acts of the operator. */
static struct other_queue *
queue_of(struct send *s, const struct act_order *order)
{
	struct other_queue *other = other_queue_get(s, order->to);
	struct other_queue **place;

	if (other == NULL || order->spread == NULL)
		return other;
	place = place_of(order->spread, order->to);
	other_queue_free(place);
	*place = other_queue_share(other);
	return other;
}

/* No file is taken for it: everything goes on with the message meanwhile, and
 * what the order needs is looked at again then. */
static int
wait_for_queue(struct send *s, struct act_task *t)
{
	TAILQ_INSERT_TAIL(&s->acts.waiting, t, on);
	s->acts.nwaiting++;
	return ACT_UNDER_WAY;
}

/* An offer is dropped, as act_on_file() does. */
static int
move(struct send *s, struct message *m, struct act_task *t)
{
	t->ended = moved;
	t->offered = m != NULL;
	if (m != NULL)
		act_drop_offer(s, m);
	return act_run(s, t);
}

static int
move_to_queue(struct send *s, struct message *m, const struct act_order *order)
{
	struct act_task *t = act_task_new(s, order, act_task_spread);
	int r;

	if (t == NULL)
		return -ENOMEM;
	t->again = order->again;
	t->to = queue_of(s, order);
	r = t->to == NULL ? -ENOMEM : other_queue_state(t->to);
	if (r == 0)
		return move(s, m, t);
	if (r == -EAGAIN)
		return wait_for_queue(s, t);
	sync_task_free(&t->task);
	return r;
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
	if (m != NULL && message_is_active(m))
		return -EINVAL;
	return move_to_queue(s, m, order);
}

/* ---- a queue is open ---- */

/* A place would be taken from others for as long as the queue hangs. */
static bool
is_nobodys(struct send *s, const struct act_task *t)
{
	const uint64_t number = t->by.operator;
	const struct operator* o = operators_find(s, number);

	return number > 0 && (o == NULL || o->gone);
}

static bool
must_wait(struct send *s, const struct act_task *t)
{
	return other_queue_state(t->to) == -EAGAIN && !s->stopping &&
	    !send_is_evacuating(s) && !is_nobodys(s, t);
}

static void
go_on(struct send *s, struct act_task *t)
{
	const int r = is_nobodys(s, t) ? -ECANCELED : other_queue_state(t->to);

	if (r < 0 && r != -EAGAIN)
		t->by.answer(s, &t->by, r, 0);
	else
		(void)order_again(s, t, t->again);
	sync_task_free(&t->task);
}

usec_t
spread_work(struct send *s)
{
	struct act_tasks all = TAILQ_HEAD_INITIALIZER(all);
	struct act_task *t;

	TAILQ_CONCAT(&all, &s->acts.waiting, on);
	while ((t = TAILQ_FIRST(&all)) != NULL) {
		TAILQ_REMOVE(&all, t, on);
		s->acts.nwaiting--;
		if (must_wait(s, t))
			(void)wait_for_queue(s, t);
		else
			go_on(s, t);
	}
	return USEC_NEVER;
}

void
spread_end(struct send *s, struct spread *spread)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(spread->to); i++)
		other_queue_free(&spread->to[i]);
	if (spread->moved > 0 && s->d != NULL)
		daemon_tell(s->d,
		    &(struct msg){ .type = MSG_HANDED,
			.u.HANDED = { .moved = spread->moved } });
	spread->moved = 0;
}
