#include "queue-send/disk/act_task.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/io.h"
#include "spool/prepared.h"
#include "spool/reason.h"

/* Bytes of an accepted message that its line in the log is made of. */
#define HEAD_MAX 8192

/* ---- on disk ---- */

/* The loop reads it again for the line of an acceptance, from memory then. */
static void
read_ahead(const struct act_task *t)
{
	char head[HEAD_MAX];
	struct buf sender = { 0 };
	struct queue_file file;

	if (t->dir != SPOOL_INCOMING || queue_file_read(t->fd, &file) < 0)
		return;
	(void)queue_file_sender(t->fd, &file, &sender);
	(void)!t->sp->sys->pread(
	    t->fd, head, sizeof(head), (off_t)file.content_off);
	buf_done(&sender);
}

static int
find(struct act_task *t)
{
	t->fd = act_find(t->sp, act_source(t->what), &t->id, &t->dir);
	if (t->fd < 0)
		return t->fd;
	/* The walk of active/ brings a stray back to incoming/. */
	return t->dir == SPOOL_ACTIVE ? -EAGAIN : 0;
}

int
act_task_file(struct act_task *t)
{
	const struct act_plan plan = { .what = t->what,
		.due_wall = t->due_wall,
		.now_wall = t->now_wall,
		.note = t->has_note ? &t->note : NULL,
		.uid = t->note.uid,
		.passes_rules = t->passes_rules };
	int r = find(t);

	if (r == 0)
		r = act_do(t->sp, &plan, t->dir, &t->id, t->fd, &t->went);
	if (r == 0)
		read_ahead(t);
	return r;
}

int
act_task_note(struct act_task *t)
{
	struct hold_note_before before;
	int r = 0;

	if (t->begins_bounce)
		(void)reason_clear(t->sp, SPOOL_BOUNCE, t->id.inode);
	if (t->begins_defer && t->first) /* another message's */
		(void)reason_clear(t->sp, SPOOL_DEFER, t->id.inode);
	if (t->has_note)
		r = hold_note_write(t->sp, &t->id, &t->note, &before);
	if (r < 0 || !t->marks)
		return r;
	return act_gives_up(t->what)
	    ? reason_add_expiry(t->sp, &t->id, t->now_wall)
	    : reason_add_decision(t->sp, &t->id, t->decision, t->now_wall);
}

/* ---- to another queue ---- */

int
act_task_spread(struct act_task *t)
{
	int r = find(t);

	if (r == 0)
		r = act_spread(t->sp, other_queue_spool(t->to), t->dir,
		    t->id.inode, t->fd);
	if (r == 0)
		read_ahead(t);
	return r;
}

/* ---- of the queue itself ---- */

/* todo-proc judges a damaged one, where it goes. */
static int
settle_prepared(struct act_task *t)
{
	struct queue_file file;

	if (queue_file_read(t->fd, &file) < 0)
		return 0;
	return spool_settle_message(
		   t->sp, t->fd, &file, t->id.inode, NULL, NULL) < 0
	    ? -EAGAIN
	    : 0;
}

/* No writer and no expansion has such a file locked, and todo-proc judges it,
 * where it goes. Any other error says nothing of the file. */
static bool
is_no_queue_file(int error)
{
	return error == -EPERM || error == -ELOOP || error == -EACCES;
}

/* Opens and locks it. The place and the marks of a message settle its prepared
 * messages, so that comes before the move, and no expansion begins meanwhile.
 * No queue file is moved all the same. */
static int
take_file(struct act_task *t)
{
	int r;

	t->fd = spool_open_file(t->sp, t->dir, t->id.inode, O_RDONLY);
	if (t->fd == -EMFILE || t->fd == -ENFILE)
		return -EAGAIN;
	if (t->fd < 0)
		return is_no_queue_file(t->fd) ? 0 : t->fd;
	r = prepared_lock(t->fd);
	return r == 0 ? settle_prepared(t) : r;
}

/* Does the error say something of the other queue, and nothing of the file? */
static bool
is_of_other(int error)
{
	static const int errors[] = { EXDEV, ESHUTDOWN, ESTALE, ENOSPC, EDQUOT,
		EROFS, EMFILE, ENFILE, ENOMEM };
	size_t i;

	for (i = 0; i < ARRAY_LEN(errors); i++)
		if (errors[i] == -error)
			return true;
	return false;
}

int
act_task_hand_over(struct act_task *t)
{
	int r = take_file(t);

	if (r < 0)
		return r;
	r = spool_hand_over(
	    t->sp, other_queue_spool(t->to), t->dir, t->id.inode);
	t->of_other = is_of_other(r);
	if (r == 0)
		read_ahead(t);
	return r;
}

/* -ENOENT: the message has left hold/, or has another note, since the walk has
 * looked. */
int
act_task_release(struct act_task *t)
{
	struct hold_note note;
	int r = find(t);

	if (r == 0)
		r = t->dir == SPOOL_HOLD ? hold_note_read(t->sp, &t->id, &note)
					 : -ENOENT;
	if (r == 0 && (note.until_wall == 0 || note.until_wall > t->now_wall))
		r = -ENOENT;
	return r < 0 ? r
		     : act_move(t->sp, ACT_RELEASE, SPOOL_HOLD, t->id.inode,
			   t->fd, t->now_wall, &t->went);
}

int
act_task_clear(struct act_task *t)
{
	reason_clear_lost(t->sp, t->id.inode);
	return 0;
}

/* ---- the task ---- */

static void
drop(struct sync_task *task)
{
	struct act_task *t = (struct act_task *)(void *)task;

	io_close(&t->fd);
	buf_done(&t->sender);
	other_queue_free(&t->to);
}

static int
work(struct sync_task *task)
{
	struct act_task *t = (struct act_task *)(void *)task;

	return t->work(t);
}

static struct act_task *
make(struct send *s, const struct queue_id *id, int (*what)(struct act_task *t))
{
	struct act_task *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	sync_task_init(&t->task, work, drop, act_ended);
	t->task.inode = id->inode;
	t->work = what;
	t->sp = &s->sp;
	t->id = *id;
	t->now_wall = s->now_wall;
	t->fd = -1;
	return t;
}

struct act_task *
act_task_new(struct send *s, const struct act_order *order,
    int (*what)(struct act_task *t))
{
	struct act_task *t = make(s, order->id, what);

	if (t == NULL)
		return NULL;
	t->by = order->by;
	t->what = order->what;
	t->due_wall = order->due_wall;
	t->has_note = order->note != NULL;
	t->note.uid = order->by.uid;
	if (order->note != NULL)
		t->note = *order->note;
	return t;
}

struct act_task *
act_task_own(struct send *s, enum spool_dir dir, uint64_t inode,
    int (*what)(struct act_task *t),
    int (*ended)(struct send *s, struct act_task *t, uint32_t *ret_running))
{
	struct act_task *t =
	    make(s, &(struct queue_id){ .inode = inode }, what);

	if (t == NULL)
		return NULL;
	t->dir = dir;
	t->ended = ended;
	return t;
}
