#include "queue-send/walks/walks.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/disk/act_task.h"
#include "queue-send/message/path.h"
#include "spool/act.h"

#define STRAY_RETRY (10 * USEC_PER_SEC)

static void
came_back(struct send *s, const struct act_task *t)
{
	s->want_scan = true;
	if (t->id.arrival_wall != 0)
		accepted_note(&s->accepted, t->id.inode, t->id.arrival_wall);
}

/* ---- active/ ---- */

static int
bring_back(struct act_task *t)
{
	struct queue_id id = { 0 };
	int r = recover_stray(t->sp, t->id.inode, &id);

	/* The loop knows the task by the inode that was found. */
	t->id.arrival_wall = id.arrival_wall;
	t->id.nonce = id.nonce;
	t->id.queue = id.queue;
	t->done = r == 1;
	return r < 0 ? r : 0;
}

static int
brought_back(struct send *s, struct act_task *t, uint32_t *ret_running UNUSED)
{
	int r = t->task.error;

	if (r == 0 && t->done)
		came_back(s, t);
	else if (r == 0)
		r = removal_begin_left(s, &t->id);
	if (r >= 0 || r == -ENOENT)
		return 0;
	s->stray_at = s->now + STRAY_RETRY;
	if (log_due(s->now, 60 * USEC_PER_SEC, &s->said_stray))
		log_error("%s/active/%llu: cannot be moved back: %s: tried "
			  "again",
		    s->sp.path, (unsigned long long)t->id.inode, strerror(-r));
	return 0;
}

/* If it is no message of this queue-send, the start could not move it, or an
 * operator put it there. */
void
found_active(struct send *s, const struct walk_item *item)
{
	if (messages_find(&s->messages, item->file.inode) != NULL ||
	    removal_is_under_way(s, item->file.inode))
		return;
	if (act_is_under_way(s, item->file.inode))
		s->stray_at = s->now + STRAY_RETRY;
	else
		act_run_own(s, SPOOL_ACTIVE, item->file.inode, bring_back,
		    brought_back);
}

/* ---- deleted/ ---- */

static int
end_day(struct act_task *t)
{
	int r = act_end_day(t->sp, t->id.inode, t->now_wall);

	t->done = r == 1;
	return r < 0 ? r : 0;
}

static int
day_ended(struct send *s, struct act_task *t, uint32_t *ret_running UNUSED)
{
	if (t->done)
		sync_changed(s);
	if (t->task.error < 0)
		log_warning("%s/deleted/%llu: %s", s->sp.path,
		    (unsigned long long)t->id.inode, strerror(-t->task.error));
	return 0;
}

void
found_deleted(struct send *s, const struct walk_item *item)
{
	if (!act_day_may_be_over(item->file.mtime_wall, s->now_wall))
		return;
	if (!act_is_under_way(s, item->file.inode))
		act_run_own(
		    s, SPOOL_DELETED, item->file.inode, end_day, day_ended);
}

/* ---- hold/ ---- */

/* A hold that may be over. */
void
found_held(struct send *s, const struct walk_item *item)
{
	/* The end of its move there counts it, and looks again. */
	if (messages_find(&s->messages, item->file.inode) != NULL ||
	    act_meets_held(s, item->file.inode))
		return;
	acts_found_held(s, item);
}

/* ---- bounce/ ---- */

void
look_at_reasons(const struct spool *sp, struct walk_item *item)
{
	item->has_message = spool_has(sp, item->file.inode);
}

/* A crash may have left it, when its message had gone. */
void
found_reasons(struct send *s, const struct walk_item *item)
{
	if (!item->has_message &&
	    messages_find(&s->messages, item->file.inode) == NULL &&
	    !act_is_under_way(s, item->file.inode) &&
	    !removal_is_under_way(s, item->file.inode))
		act_run_own(
		    s, SPOOL_BOUNCE, item->file.inode, act_task_clear, NULL);
}
