#include "queue-send/disk/other_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "queue-send/state/send.h"
#include "queue-send/disk/work.h"

struct other_queue {
	LIST_ENTRY(other_queue) on; /* while it is open, or being opened */
	uint32_t number;
	uint32_t users; /* the task that opens it is one */
	int state;
	/* The thread's while it is being opened. */
	const struct spool_sys *sys;
	char *base;
	bool open;
	struct spool sp;
};

struct opening {
	struct sync_task task; /* first */
	struct other_queue *other;
};

/* ---- users ---- */

static bool
is_listed(const struct other_queue *o)
{
	return o->state == 0 || o->state == -EAGAIN;
}

void
other_queue_free(struct other_queue **other)
{
	struct other_queue *o = *other;

	*other = NULL;
	if (o == NULL || --o->users > 0)
		return;
	if (is_listed(o))
		LIST_REMOVE(o, on);
	if (o->open)
		spool_close(&o->sp);
	free(o->base);
	free(o);
}

struct other_queue *
other_queue_share(struct other_queue *other)
{
	other->users++;
	return other;
}

uint32_t
other_queue_number(const struct other_queue *other)
{
	return other->number;
}

int
other_queue_state(const struct other_queue *other)
{
	return other->state;
}

const struct spool *
other_queue_spool(const struct other_queue *other)
{
	return &other->sp;
}

/* ---- the opening ---- */

static int
open_it(struct sync_task *task)
{
	struct other_queue *o = ((struct opening *)(void *)task)->other;
	int r = spool_open(&o->sp, o->sys, o->base, o->number);

	o->open = r == 0; /* also if the loop ends before it hears of that */
	return r == -ENOENT ? -ESTALE : r;
}

static void
drop(struct sync_task *task)
{
	other_queue_free(&((struct opening *)(void *)task)->other);
}

static void
fail(struct other_queue *o, int error)
{
	LIST_REMOVE(o, on);
	o->state = error;
}

static void
opened(void *send UNUSED, struct sync_task *task)
{
	struct other_queue *o = ((struct opening *)(void *)task)->other;

	if (o->open)
		o->state = 0;
	else
		fail(o, task->error);
	sync_task_free(task);
}

void
other_queue_used(struct other_queue *other, int error)
{
	if (error == -ESTALE && is_listed(other))
		fail(other, error);
}

static void
begin(struct send *s, struct other_queue *o)
{
	struct opening *t = calloc(1, sizeof(*t));

	if (t == NULL) {
		fail(o, -ENOMEM);
		return;
	}
	sync_task_init(&t->task, open_it, drop, opened);
	t->other = other_queue_share(o);
	disk_do(s, DISK_OPEN, &t->task);
}

struct other_queue *
other_queue_get(struct send *s, uint32_t queue)
{
	struct other_queue *o;

	LIST_FOREACH (o, &s->others, on)
		if (o->number == queue)
			return other_queue_share(o);
	o = calloc(1, sizeof(*o));
	if (o == NULL)
		return NULL;
	o->number = queue;
	o->users = 1;
	o->state = -EAGAIN;
	o->sys = s->sp.sys;
	o->base = strdup(s->conf->queue_base);
	LIST_INSERT_HEAD(&s->others, o, on);
	if (o->base == NULL)
		other_queue_free(&o);
	else
		begin(s, o);
	return o;
}
