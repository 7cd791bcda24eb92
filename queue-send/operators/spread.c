#include "queue-send/operators/operators.h"

#include <errno.h>

#include "base/io.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/road/road.h"

/* ---- the other queue ---- */

static void
close_queue(struct spread *spread)
{
	if (spread->open)
		spool_close(&spread->to);
	spread->open = false;
}

static int
open_queue(struct send *s, struct spread *spread, uint32_t to)
{
	int r;

	if (to == 0 || to > QUEUE_NUM_MAX || to == s->sp.queue)
		return -EINVAL;
	if (spread->open && spread->to.queue == to)
		return 0;
	close_queue(spread);
	r = spool_open(&spread->to, s->sp.sys, s->conf->queue_base, to);
	spread->open = r == 0;
	return r == -ENOENT ? -ESTALE : r;
}

/* ---- one message ---- */

/* Memory forgets the message. */
static void
moved(struct send *s, enum spool_dir dir, uint64_t inode, int fd)
{
	if (dir == SPOOL_INCOMING)
		accepted_log_file(s, inode, fd);
	else
		deferred_forget(s, inode);
	s->pub.changed = true;
	send_wake(s);
}

static int
move(struct send *s, struct spread *spread, const struct queue_id *id)
{
	enum spool_dir dir;
	int r, fd = act_find(&s->sp, SPOOL_DEFERRED, id, &dir);

	if (fd < 0)
		return fd;
	/* The walk of active/ brings a stray back to incoming/. */
	r = dir == SPOOL_ACTIVE
	    ? -EAGAIN
	    : act_spread(&s->sp, &spread->to, dir, id->inode, fd);
	if (r == 0) {
		spread->moved++;
		moved(s, dir, id->inode, fd);
	}
	io_close(&fd);
	return r;
}

/* An offer is forgotten: its answer has come, and the file lies where it lay.
 */
static int
move_offered(struct send *s, struct spread *spread, struct message *m,
    const struct queue_id *id)
{
	struct due *d = due_find(&s->due, m->inode);
	int r;

	if (m->active)
		return -EINVAL;
	if (d != NULL && d->asked)
		share_unask(s, d, s->now);
	messages_drop(&s->messages, m);
	r = move(s, spread, id);
	/* One that stays is to be offered again. */
	s->want_scan |= r < 0;
	return r;
}

int
spread_message(struct send *s, struct spread *spread, const struct queue_id *id,
    uint32_t to)
{
	struct message *m = messages_find(&s->messages, id->inode);
	const struct due *d = due_find(&s->due, id->inode);
	int r;

	if (send_is_evacuating(s) || s->stopping)
		return -EBUSY;
	if (s->health.read_only)
		return -EROFS;
	if (m != NULL && !message_is(m, id->arrival_wall, id->nonce))
		return -ENOENT;
	/* A thread has the file, or an answer of todo-proc is on its way. */
	if (m != NULL ? move_is_under_way(m) : d != NULL && d->asked)
		return -EAGAIN;
	/* Deaths of agents are in memory: elsewhere they would count from 0. */
	if (d != NULL && d->deaths > 0)
		return -EINVAL;
	r = open_queue(s, spread, to);
	if (r < 0)
		return r;
	return m == NULL ? move(s, spread, id) : move_offered(s, spread, m, id);
}

void
spread_end(struct send *s, struct spread *spread)
{
	close_queue(spread);
	if (spread->moved > 0 && s->d != NULL)
		daemon_tell(s->d,
		    &(struct msg){ .type = MSG_HANDED,
			.u.HANDED = { .moved = spread->moved } });
	spread->moved = 0;
}
