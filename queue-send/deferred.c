#include "queue-send/backlog.h"

#include <errno.h>
#include <string.h>

#include "base/io.h"
#include "log/log.h"
#include "queue-send/road.h"
#include "spool/act.h"
#include "spool/reason.h"

#define WALKED_PER_TURN 300
#define WALK_INTERVAL   (3600 * USEC_PER_SEC)
#define STRAY_RETRY     (10 * USEC_PER_SEC)
#define RESCAN_GAP      9 /* a tenth of the time at most */

static const enum spool_dir walk_dirs[WALK_NKINDS] = {
	[WALK_DEFERRED] = SPOOL_DEFERRED,
	[WALK_ACTIVE] = SPOOL_ACTIVE,
	[WALK_HOLD] = SPOOL_HOLD,
	[WALK_CORRUPT] = SPOOL_CORRUPT,
	[WALK_DELETED] = SPOOL_DELETED,
};

void
deferred_walk(struct send *s)
{
	int i;

	for (i = 0; i < WALK_NKINDS; i++)
		s->walks[i].wanted = true;
	s->walk_at = s->now + WALK_INTERVAL;
}

/* A file was found in deferred/: one that is not known gets a node. */
static void
found(struct send *s, const struct spool_item *item)
{
	const struct retry_now now = { s->now, s->now_wall };
	usec_t at = s->now;

	if (messages_find(&s->messages, item->inode) != NULL ||
	    due_find(&s->due, item->inode) != NULL)
		return;
	if (!s->walk_flush)
		at = retry_due_mono(&s->retry, item->mtime_wall, &now);
	/* The message that has waited longest comes first. */
	if (at <= s->now && item->mtime_wall < s->now_wall)
		at = s->now - (s->now_wall - item->mtime_wall);
	if (due_put(&s->due, item->inode, at) == NULL)
		s->walks[WALK_DEFERRED].wanted = true; /* no memory: again */
}

/* A file was found in active/. If it is no message of this queue-send, the
 * start could not move it, or an operator put it there. */
static void
found_active(struct send *s, const struct spool_item *item)
{
	struct recovered done = { .accepted = &s->accepted };
	int r;

	if (messages_find(&s->messages, item->inode) != NULL)
		return;
	r = recover_message(&s->sp, item->inode, &done);
	s->want_scan |= done.returned > 0;
	if (r >= 0 || r == -ENOENT)
		return;
	s->stray_at = s->now + STRAY_RETRY;
	if (log_due(s->now, 60 * USEC_PER_SEC, &s->said_stray))
		log_error("%s/active/%s: cannot be moved back: %s: tried again",
		    s->sp.path, item->name, strerror(-r));
}

/* The end of the day is known until the file is gone. */
static int
remove_deleted(struct send *s, uint64_t inode)
{
	int r = reason_clear(&s->sp, SPOOL_BOUNCE, inode);

	if (r == 0)
		r = spool_remove(&s->sp, SPOOL_DELETED, inode);
	if (r == 0)
		r = reason_clear(&s->sp, SPOOL_DEFER, inode);
	if (r == 0)
		sync_changed(s);
	return r;
}

/* A file was found in deleted/: its day may be over. */
static void
found_deleted(struct send *s, const struct spool_item *item)
{
	int r, fd = reason_open(&s->sp, SPOOL_DEFER, item->inode);

	/* A restore may lose the end of its day: a day from now, then. */
	if (fd < 0)
		r = spool_set_due(
		    &s->sp, item->inode, s->now_wall + ACT_DELETED_TIME);
	else if (item->mtime_wall > s->now_wall)
		r = 0;
	else
		r = remove_deleted(s, item->inode);
	io_close(&fd);
	if (r < 0)
		log_warning(
		    "%s/deleted/%s: %s", s->sp.path, item->name, strerror(-r));
}

static void
walk_end(struct send *s, enum walk_kind kind)
{
	struct walk *w = &s->walks[kind];

	spool_scan_done(&w->scan);
	w->running = false;
	w->ended_at = s->now;
	w->count = w->found;
	if (kind == WALK_DEFERRED)
		s->walk_flush = false;
	s->pub.changed = true;
}

static void
step(struct send *s, enum walk_kind kind)
{
	struct walk *w = &s->walks[kind];
	struct spool_item item;
	int n, r;

	if (!w->running) {
		spool_scan_begin(&w->scan, &s->sp, walk_dirs[kind]);
		w->running = true;
		w->wanted = false;
		w->began_at = s->now;
		w->found = 0;
	}
	for (n = 0; n < WALKED_PER_TURN; n++) {
		r = spool_scan_next(&w->scan,
		    kind == WALK_DEFERRED || kind == WALK_DELETED, &item);
		if (r < 0)
			log_warning("%s/%s: %s: a part of it was not read",
			    s->sp.path, spool_dirs[walk_dirs[kind]].name,
			    strerror(-r));
		if (r == 0) {
			walk_end(s, kind);
			return;
		}
		if (r < 0 || item.inode == 0)
			continue;
		w->found++;
		if (kind == WALK_DEFERRED)
			found(s, &item);
		else if (kind == WALK_ACTIVE)
			found_active(s, &item);
		else if (kind == WALK_DELETED)
			found_deleted(s, &item);
	}
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

void
deferred_rescan(struct send *s)
{
	const struct walk *w = &s->walks[WALK_DEFERRED];
	usec_t at = w->ended_at + RESCAN_GAP * (w->ended_at - w->began_at);

	s->rescan_at = at > s->now ? at : s->now;
	send_wake(s);
}

usec_t
deferred_work(struct send *s)
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
	for (i = 0; i < WALK_NKINDS; i++)
		if (s->walks[i].running || s->walks[i].wanted) {
			step(s, (enum walk_kind)i);
			return s->now;
		}
	at = s->stray_at < s->walk_at ? s->stray_at : s->walk_at;
	return s->rescan_at < at ? s->rescan_at : at;
}

void
deferred_add(struct send *s, const struct message *m, usec_t at_mono)
{
	struct due *d = due_put(&s->due, m->inode, at_mono);

	if (d == NULL) { /* no memory: the walk finds it again */
		s->walks[WALK_DEFERRED].wanted = true;
		return;
	}
	d->deaths = !m->agent_died       ? 0
	    : m->deaths < DUE_DEATHS_MAX ? m->deaths & DUE_DEATHS_MAX
					 : DUE_DEATHS_MAX;
	if (d->second == 0)
		d->second =
		    ages_add(&s->ages, m->file.arrival_wall, s->now_wall);
	share_remember(s, m, d);
}

void
deferred_forget(struct send *s, uint64_t inode)
{
	struct due *d = due_find(&s->due, inode);
	struct backlog *b;

	if (d == NULL)
		return;
	if (d->second != 0)
		ages_remove(&s->ages, d->second, s->now_wall);
	b = share_backlog_of(s, d);
	due_drop(&s->due, inode);
	share_changed(s, b);
}

void
deferred_flush(struct send *s)
{
	due_flush(&s->due);
	deferred_walk(s);
	s->walk_flush = true;
}

void
deferred_done(struct send *s)
{
	int i;

	for (i = 0; i < WALK_NKINDS; i++)
		if (s->walks[i].running)
			spool_scan_done(&s->walks[i].scan);
	due_done(&s->due);
}
