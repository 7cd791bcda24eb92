#include "queue-send/backlog.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>

#include "queue-send/send.h"

#define ITEMS_MAX 300

/* A part of a directory, and where to go on. It is the thread's while that
 * reads, else the loop's. */
struct walk_part {
	struct sync_task task; /* first */
	struct spool_scan scan;
	bool with_stat, end;
	int most, n;
	struct {
		int error;
		struct spool_item item;
	} found[ITEMS_MAX];
};

static int
read_part(struct sync_task *task)
{
	struct walk_part *p = (struct walk_part *)(void *)task;
	int r;

	for (p->n = 0; p->n < p->most && !p->end;) {
		r = spool_scan_next(
		    &p->scan, p->with_stat, &p->found[p->n].item);
		p->end = r == 0;
		p->found[p->n].error = r < 0 ? r : 0;
		p->n += r != 0;
	}
	return 0;
}

int
walk_begin(struct send *s, enum spool_dir dir, bool with_stat, int most)
{
	struct walk_part *p = calloc(1, sizeof(*p));
	int i;

	if (p == NULL)
		return -ENOMEM;
	for (i = 0; i < SYNC_JOB_FDS; i++)
		p->task.fds[i] = -1;
	p->task.work = read_part;
	p->with_stat = with_stat;
	p->most = most < ITEMS_MAX ? most : ITEMS_MAX;
	spool_scan_begin(&p->scan, &s->sp, dir);
	s->reader.part = p;
	return 0;
}

static bool
give_to_thread(struct reader *r)
{
	r->away = r->threads > 0 && sync_pool_put(r->pool, &r->part->task) == 0;
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
on_done(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct send *s = arg;

	if (sync_pool_take(s->reader.pool) == NULL)
		return;
	s->reader.away = false;
	s->reader.ready = true;
	send_wake(s);
}

int
walk_init(struct send *s)
{
	struct reader *r = &s->reader;

	r->pool = sync_pool_new(s->sp.sys, r->threads);
	if (r->pool == NULL)
		return -ENOMEM;
	r->done = event_new(
	    s->base, sync_pool_fd(r->pool), EV_READ | EV_PERSIST, on_done, s);
	return r->done == NULL || event_add(r->done, NULL) < 0 ? -ENOMEM : 0;
}

/* The part that a thread reads into while it hangs stays its own. */
void
walk_done(struct send *s)
{
	struct reader *r = &s->reader;

	if (r->done != NULL)
		event_free(r->done);
	r->done = NULL;
	if (!r->away)
		walk_end(s);
	sync_pool_free(&r->pool);
}
