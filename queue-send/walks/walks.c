#include "queue-send/walks/walks.h"

#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/disk/act_task.h"
#include "queue-send/reports/reports.h"

#define WALKED_PER_TURN 300
#define HELD_STEPS      15 /* a file that is opened and read takes as long */
#define REASON_STEPS    5  /* the message is looked for */
#define SHORTAGE_WAIT   USEC_PER_SEC

/* A file was found in deferred/: one that is not known gets a node. */
static void
found(struct send *s, const struct walk_item *item)
{
	const struct retry_now now = { s->now, s->now_wall };
	usec_t at = s->now;
	struct due *d;

	if (messages_find(&s->messages, item->file.inode) != NULL ||
	    due_find(&s->due, item->file.inode) != NULL)
		return;
	if (!s->walk_flush)
		at = retry_due_mono(&s->retry, item->file.mtime_wall, &now);
	/* The message that has waited longest comes first. */
	if (at <= s->now && item->file.mtime_wall < s->now_wall)
		at = s->now - (s->now_wall - item->file.mtime_wall);
	d = due_put(&s->due, item->file.inode, at);
	if (d == NULL)
		s->walks[WALK_DEFERRED].wanted = true; /* no memory: again */
	else /* an attempt that defers leaves its reasons in defer/ */
		due_set_untried(&s->due, d, !item->file.has_defer);
}

/* A walk, and what is done with each file that is found; steps that this takes.
 */
static const struct {
	enum spool_dir dir;
	void (*found)(struct send *s, const struct walk_item *item);
	int steps;
	void (*look)(const struct spool *sp, struct walk_item *item);
} kinds[WALK_NKINDS] = {
	[WALK_DEFERRED] = { SPOOL_DEFERRED, found, 1, NULL },
	[WALK_ACTIVE] = { SPOOL_ACTIVE, found_active, 1, NULL },
	[WALK_HOLD] = { SPOOL_HOLD, found_held, HELD_STEPS, acts_look_at_held },
	[WALK_CORRUPT] = { SPOOL_CORRUPT, reports_found_corrupt, 1, NULL },
	[WALK_DELETED] = { SPOOL_DELETED, found_deleted, 1, NULL },
	[WALK_BOUNCE] = { SPOOL_BOUNCE, found_reasons, REASON_STEPS,
	    look_at_reasons },
};

static void
end_walk(struct send *s, enum walk_kind kind)
{
	struct walk *w = &s->walks[kind];

	walk_end(s);
	w->running = false;
	w->ended_at = s->now;
	w->count = w->found;
	if (kind == WALK_DEFERRED)
		s->walk_flush = false;
	s->pub.changed = true;
}

static int
most(enum walk_kind kind)
{
	return WALKED_PER_TURN / kinds[kind].steps;
}

static int
begin_walk(struct send *s, enum walk_kind kind)
{
	struct walk *w = &s->walks[kind];
	const struct walk_plan plan = {
		.dir = kinds[kind].dir,
		.with_stat = kind == WALK_DEFERRED || kind == WALK_DELETED,
		.most = most(kind),
		.look = kinds[kind].look,
	};
	int r = walk_begin(s, &plan);

	if (r < 0)
		return r;
	w->running = true;
	w->wanted = false;
	w->began_at = s->now;
	w->found = 0;
	return 0;
}

static void
found_one(struct send *s, enum walk_kind kind, int error,
    const struct walk_item *item)
{
	if (error < 0)
		log_warning("%s/%s: %s: a part of it was not read", s->sp.path,
		    spool_dirs[kinds[kind].dir].name, strerror(-error));
	if (error < 0 || item->file.inode == 0)
		return;
	s->walks[kind].found++;
	if (kinds[kind].found != NULL)
		kinds[kind].found(s, item);
}

/* A part of the walk. */
static usec_t
step(struct send *s, enum walk_kind kind)
{
	const struct walk_item *item;
	int n, r;

	if (!s->walks[kind].running && begin_walk(s, kind) < 0)
		return s->now + SHORTAGE_WAIT;
	for (n = 0; n < most(kind); n++) {
		/* The end of an act, or of a warning, wakes the loop. */
		if (acts_own_are_full(s) ||
		    (kind == WALK_CORRUPT && reports_are_warning(s)))
			return USEC_NEVER;
		r = walk_next(s, &item);
		if (r == -EAGAIN || (r == 0 && s->acts.own > 0))
			return USEC_NEVER;
		if (r == 0) {
			end_walk(s, kind);
			break;
		}
		found_one(s, kind, r, item);
	}
	return s->now;
}

/* The walk that runs, else the first that is wanted; below 0: none. */
static int
next_walk(const struct send *s)
{
	int i, wanted = -1;

	for (i = WALK_NKINDS - 1; i >= 0; i--) {
		if (s->walks[i].running)
			return i;
		if (s->walks[i].wanted)
			wanted = i;
	}
	return wanted;
}

static void
begin_rescan(struct send *s)
{
	s->rescan_at = USEC_NEVER;
	s->walks[WALK_DEFERRED].wanted = true;
	s->walks[WALK_HOLD].wanted = true;
	s->want_scan = true;
	send_wake(s);
}

usec_t
walks_work(struct send *s)
{
	usec_t at;
	int i;

	if (s->stopping || send_is_evacuating(s))
		return USEC_NEVER;
	if (s->now >= s->walk_at)
		deferred_walk(s);
	if (s->now >= s->rescan_at)
		begin_rescan(s);
	if (s->now >= s->stray_at) {
		s->walks[WALK_ACTIVE].wanted = true;
		s->stray_at = USEC_NEVER;
	}
	i = next_walk(s);
	if (i >= 0)
		return step(s, (enum walk_kind)i);
	at = s->stray_at < s->walk_at ? s->stray_at : s->walk_at;
	return s->rescan_at < at ? s->rescan_at : at;
}
