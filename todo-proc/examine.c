#include "todo-proc/todo.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"

/* ---- in the log ---- */

int
examine_say_corrupt(struct todo *t, const struct corrupt *c)
{
	const char *dir = spool_dirs[c->dir].name;
	char part[16] = "";

	if (c->moved == -ENOENT)
		return c->moved;
	if (spool_dirs[c->dir].split)
		snprintf(part, sizeof(part), "%" PRIu32 "/", c->split);
	if (c->moved < 0) {
		if (todo_say(t, c->moved))
			log_error("%s/%s/%s%s: damaged (%s), and cannot be "
				  "moved to corrupt/: %s",
			    t->sp.path, dir, part, c->name, c->why,
			    strerror(-c->moved));
		return c->moved;
	}
	t->counts.corrupt++;
	log_error("ALERT: %s/%s/%s%s: damaged (%s): moved to corrupt/; `qctl "
		  "explain state=corrupt' says what can be done",
	    t->sp.path, dir, part, c->name, c->why);
	return -EBADMSG;
}

static int
say_corrupt(struct todo *t, const struct examine_task *e)
{
	char name[QUEUE_FILE_MAX];
	const struct corrupt c = { e->dir, (uint32_t)(e->inode % t->sp.split),
		name, e->why, e->moved };

	queue_file_name(e->inode, name);
	return examine_say_corrupt(t, &c);
}

static void
say_unread(struct todo *t, const struct examine_task *e, int error)
{
	char path[SPOOL_PATH_MAX];

	if (error == -EAGAIN || error == -ENOENT || !todo_say(t, error))
		return;
	spool_path(&t->sp, e->dir, e->inode, path, sizeof(path));
	log_error(
	    "%s/%s: %s: tried again later", t->sp.path, path, strerror(-error));
}

/* ---- examinations under way ---- */

bool
examine_is_full(const struct todo *t)
{
	return t->examine.count == EXAMINE_MAX;
}

bool
examine_has(const struct todo *t, uint64_t inode)
{
	const struct examination *e;

	TAILQ_FOREACH (e, &t->examine.list, link)
		if (e->t.inode == inode && e->t.dir == SPOOL_INCOMING)
			return true;
	return false;
}

static struct examination *
take_idle(struct todo *t)
{
	struct examinations *x = &t->examine;
	struct examination *e = TAILQ_FIRST(&x->idle);

	if (e != NULL)
		TAILQ_REMOVE(&x->idle, e, link);
	else
		e = calloc(1, sizeof(*e));
	return e;
}

/* The room stays for the next one. */
static void
finish(struct todo *t, struct examination *e)
{
	struct examinations *x = &t->examine;
	struct examine_task *task = &e->t;
	int *error = &task->task.error;

	TAILQ_REMOVE(&x->list, e, link);
	x->count--;
	if (e->era == t->era && task->dir == SPOOL_INCOMING)
		x->incoming--;
	else if (e->era == t->era)
		x->deferred--;
	if (*error == -EBADMSG || *error == -EPERM)
		*error = say_corrupt(t, task);
	else if (*error < 0)
		say_unread(t, task, *error);
	e->ended_with(t, e);
	examine_task_drop(&task->task);
	TAILQ_INSERT_HEAD(&x->idle, e, link);
}

static void
on_ended(void *todo, struct sync_task *task)
{
	struct todo *t = todo;
	struct examination *e = (struct examination *)(void *)task;

	routing_let_go(&t->routings, e->routing);
	e->ended = true;
	if (t->threads == 0)
		t->read += e->t.file.size;
	(void)examine_work(t);
}

int
examine_begin(struct todo *t, uint64_t inode, const struct inbox_file *from,
    void (*ended)(struct todo *t, struct examination *e))
{
	struct examinations *x = &t->examine;
	struct examination *e = take_idle(t);

	if (e == NULL)
		return -ENOMEM;
	memset(e, 0, offsetof(struct examination, t.cursor));
	sync_task_init(
	    &e->t.task, examine_task_work, examine_task_drop, on_ended);
	e->t.sp = &t->sp;
	e->t.routing = e->routing = routing_use(&t->routings);
	e->t.dir = from != NULL ? SPOOL_INCOMING : SPOOL_DEFERRED;
	e->t.inode = inode;
	e->t.in_memory = t->in_memory;
	e->t.fd = -1;
	if (from != NULL)
		e->from = *from;
	e->began_at = t->now;
	e->era = t->era;
	e->ended = false;
	e->ended_with = ended;
	*(from != NULL ? &x->incoming : &x->deferred) += 1;
	TAILQ_INSERT_TAIL(&x->list, e, link);
	x->count++;
	executor_do(t->executor, 0, &e->t.task);
	return 0;
}

/* The first one that has ended, and need not wait for another one. *ret_at: the
 * end of the patience with one that is waited for. */
static struct examination *
next_to_end(const struct todo *t, usec_t *ret_at)
{
	struct examination *e = TAILQ_FIRST(&t->examine.list);

	*ret_at = USEC_NEVER;
	for (; e != NULL; e = TAILQ_NEXT(e, link)) {
		const bool waits = *ret_at != USEC_NEVER;

		if (e->ended && (!waits || e->t.dir == SPOOL_DEFERRED))
			return e;
		if (!e->ended && !waits && e->t.dir == SPOOL_INCOMING &&
		    t->now < e->began_at + EXAMINE_PATIENCE)
			*ret_at = e->began_at + EXAMINE_PATIENCE;
	}
	return NULL;
}

usec_t
examine_work(struct todo *t)
{
	struct examination *e;
	usec_t at;

	while ((e = next_to_end(t, &at)) != NULL)
		finish(t, e);
	return at;
}

/* ---- start and end ---- */

void
examine_init(struct todo *t)
{
	t->examine = (struct examinations){ 0 };
	TAILQ_INIT(&t->examine.list);
	TAILQ_INIT(&t->examine.idle);
}

/* Examinations that have not ended are the pool's. */
void
examine_done(struct todo *t)
{
	struct examinations *x = &t->examine;
	struct examination *e, *next;

	for (e = TAILQ_FIRST(&x->list); e != NULL; e = next) {
		next = TAILQ_NEXT(e, link);
		if (e->ended)
			sync_task_free(&e->t.task);
	}
	while ((e = TAILQ_FIRST(&x->idle)) != NULL) {
		TAILQ_REMOVE(&x->idle, e, link);
		free(e);
	}
	examine_init(t);
}
