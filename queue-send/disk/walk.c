#include "queue-send/disk/walk.h"

#include <errno.h>
#include <stdlib.h>

#include "queue-send/disk/work.h"

#define ITEMS_MAX 300

/* A part of a directory, and where to go on. It is the thread's while that
 * reads, else the loop's. */
struct walk_part {
	struct sync_task task; /* first */
	const struct spool *sp;
	struct spool_scan scan;
	struct walk_plan plan;
	bool end;
	int n, at; /* found; the next of them */
	struct {
		int error;
		struct walk_item item;
	} found[ITEMS_MAX];
};

static void
look_at_part(struct walk_part *p)
{
	int i;

	for (i = 0; p->plan.look != NULL && i < p->n; i++)
		if (p->found[i].error == 0 && p->found[i].item.file.inode != 0)
			p->plan.look(p->sp, &p->found[i].item);
}

static int
read_part(struct sync_task *task)
{
	struct walk_part *p = (struct walk_part *)(void *)task;
	int r;

	p->at = 0;
	for (p->n = 0; p->n < p->plan.most && !p->end;) {
		r = spool_scan_next(
		    &p->scan, p->plan.with_stat, &p->found[p->n].item.file);
		p->end = r == 0;
		p->found[p->n].error = r < 0 ? r : 0;
		p->n += r != 0;
	}
	look_at_part(p);
	return 0;
}

static void
drop(struct sync_task *task)
{
	struct walk_part *p = (struct walk_part *)(void *)task;

	spool_scan_done(&p->scan);
}

static void
ended(void *send, struct sync_task *task)
{
	struct reader *r = &((struct send *)send)->reader;

	if (r->part != NULL && task == &r->part->task)
		r->away = false;
	else
		sync_task_free(task);
}

int
walk_begin(struct send *s, const struct walk_plan *plan)
{
	struct walk_part *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	sync_task_init(&p->task, read_part, drop, ended);
	p->sp = &s->sp;
	p->plan = *plan;
	if (plan->most > ITEMS_MAX)
		p->plan.most = ITEMS_MAX;
	spool_scan_begin(&p->scan, &s->sp, plan->dir);
	s->reader.part = p;
	return 0;
}

int
walk_next(struct send *s, const struct walk_item **ret_item)
{
	struct reader *r = &s->reader;
	struct walk_part *p = r->part;
	int error;

	if (!r->away && p->at == p->n && !p->end) {
		r->away = true;
		disk_do(s, DISK_WALK, &p->task);
	}
	if (r->away)
		return -EAGAIN;
	if (p->at == p->n)
		return 0;
	error = p->found[p->at].error;
	*ret_item = &p->found[p->at++].item;
	return error < 0 ? error : 1;
}

void
walk_again(struct send *s)
{
	s->reader.part->at--;
}

/* A part that is with the thread is freed when it comes back. */
void
walk_end(struct send *s)
{
	struct walk_part *p = s->reader.part;

	if (p != NULL && !s->reader.away)
		sync_task_free(&p->task);
	s->reader.part = NULL;
	s->reader.away = false;
}
