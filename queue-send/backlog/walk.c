#include "queue-send/backlog/backlog.h"

#include <errno.h>
#include <stdlib.h>

#include "queue-send/send.h"

#define ITEMS_MAX 300

/* A part of a directory, and where to go on. It is the thread's while that
 * reads, else the loop's. */
struct walk_part {
	struct sync_task task; /* first */
	const struct spool *sp;
	struct spool_scan scan;
	struct walk_plan plan;
	bool end;
	int n;
	struct {
		int error;
		struct spool_item item;
	} found[ITEMS_MAX];
};

static void
look_at_part(struct walk_part *p)
{
	int i;

	for (i = 0; p->plan.look != NULL && i < p->n; i++)
		if (p->found[i].error == 0 && p->found[i].item.inode != 0)
			p->plan.look(p->sp, p->found[i].item.inode);
}

static int
read_part(struct sync_task *task)
{
	struct walk_part *p = (struct walk_part *)(void *)task;
	int r;

	for (p->n = 0; p->n < p->plan.most && !p->end;) {
		r = spool_scan_next(
		    &p->scan, p->plan.with_stat, &p->found[p->n].item);
		p->end = r == 0;
		p->found[p->n].error = r < 0 ? r : 0;
		p->n += r != 0;
	}
	look_at_part(p);
	return 0;
}

int
walk_begin(struct send *s, const struct walk_plan *plan)
{
	struct walk_part *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	sync_task_init(&p->task, read_part, NULL);
	p->sp = &s->sp;
	p->plan = *plan;
	if (plan->most > ITEMS_MAX)
		p->plan.most = ITEMS_MAX;
	if (s->reader.pool.threads == 0)
		p->plan.look = NULL;
	spool_scan_begin(&p->scan, &s->sp, plan->dir);
	s->reader.part = p;
	return 0;
}

static bool
give_to_thread(struct reader *r)
{
	r->away =
	    r->pool.threads > 0 && pool_put(&r->pool, &r->part->task) == 0;
	return r->away;
}

bool
walk_read(struct send *s)
{
	struct reader *r = &s->reader;

	if (r->ready) {
		r->ready = false;
		return true;
	}
	if (r->away || give_to_thread(r))
		return false;
	(void)read_part(&r->part->task);
	return true;
}

int
walk_count(const struct send *s, bool *ret_more)
{
	*ret_more = !s->reader.part->end;
	return s->reader.part->n;
}

int
walk_item(const struct send *s, int i, const struct spool_item **ret_item)
{
	*ret_item = &s->reader.part->found[i].item;
	return s->reader.part->found[i].error;
}

void
walk_end(struct send *s)
{
	struct walk_part *p = s->reader.part;

	s->reader.part = NULL;
	if (p == NULL)
		return;
	spool_scan_done(&p->scan);
	sync_task_free(&p->task);
}

/* ---- start and end ---- */

static void
ended(struct send *s, struct sync_task *task UNUSED)
{
	s->reader.away = false;
	s->reader.ready = true;
}

int
walk_init(struct send *s)
{
	return pool_init(s, &s->reader.pool, 1, ended);
}

/* The part that a thread reads into while it hangs stays its own. */
void
walk_done(struct send *s)
{
	if (!s->reader.away)
		walk_end(s);
	s->hung |= !pool_done(&s->reader.pool);
}
