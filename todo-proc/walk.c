#include "todo-proc/todo.h"

#include <errno.h>
#include <stdlib.h>

/* A part of a directory, and where to go on. It is the thread's while that
 * reads, else the loop's. */
struct walk_part {
	struct sync_task task; /* first */
	struct walk *owner;
	const struct walk_kind *kind;
	struct spool_scan scan;
	bool end;
	int n;
	struct walk_found found[WALK_PART_MAX];
};

static int
read_part(struct sync_task *task)
{
	struct walk_part *p = (struct walk_part *)(void *)task;
	int r = 1;

	for (p->n = 0; p->n < p->kind->most && r != 0;) {
		struct walk_found *f = &p->found[p->n];

		r = spool_scan_next(&p->scan, p->kind->with_stat, &f->item);
		f->error = r < 0 ? r : 0;
		if (r > 0 && p->kind->work != NULL)
			p->kind->work(p->scan.sp, p->kind->dir, f);
		p->n += r != 0;
	}
	p->end = r == 0;
	return 0;
}

static void
close_part(struct sync_task *task)
{
	spool_scan_done(&((struct walk_part *)(void *)task)->scan);
}

static void
part_ended(void *todo UNUSED, struct sync_task *task)
{
	struct walk *w = ((struct walk_part *)(void *)task)->owner;

	w->away = false;
	w->ready = true;
}

int
walk_begin(struct todo *t, struct walk *w, const struct walk_kind *kind)
{
	struct walk_part *p = malloc(sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	sync_task_init(&p->task, read_part, close_part, part_ended);
	p->owner = w;
	p->kind = kind;
	p->end = false;
	p->n = 0;
	spool_scan_begin(&p->scan, &t->sp, kind->dir);
	*w = (struct walk){ .kind = kind, .part = p };
	return 0;
}

enum walk_state
walk_take(struct todo *t, struct walk *w)
{
	int i;

	if (!w->ready && !w->away) {
		w->away = true;
		executor_do(t->executor, 0, &w->part->task);
	}
	if (!w->ready)
		return WALK_READING;
	w->ready = false;
	for (i = 0; i < w->part->n; i++)
		w->kind->take(t, &w->part->found[i]);
	return w->part->end ? WALK_LAST : WALK_MORE;
}

/* A part that a thread has is the pool's. */
void
walk_end(struct walk *w)
{
	if (w->part != NULL && !w->away)
		sync_task_free(&w->part->task);
	*w = (struct walk){ 0 };
}
