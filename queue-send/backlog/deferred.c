#include "queue-send/backlog/own.h"

#include "queue-send/disk/walk.h"

#define WALK_INTERVAL (3600 * USEC_PER_SEC)
#define RESCAN_GAP    9 /* a tenth of the time at most */

void
deferred_walk(struct send *s)
{
	int i;

	for (i = 0; i < WALK_NKINDS; i++)
		s->walks[i].wanted = true;
	s->walk_at = s->now + WALK_INTERVAL;
}

void
deferred_rescan(struct send *s)
{
	const struct walk *w = &s->walks[WALK_DEFERRED];
	usec_t at = w->ended_at + RESCAN_GAP * (w->ended_at - w->began_at);

	s->rescan_at = at > s->now ? at : s->now;
	send_wake(s);
}

void
deferred_left_hold(struct send *s)
{
	struct walk *w = &s->walks[WALK_HOLD];

	w->found -= w->running && w->found > 0;
	w->count -= w->count > 0;
}

void
deferred_pause(struct send *s)
{
	int i;

	for (i = 0; i < WALK_NKINDS; i++) {
		s->walks[i].wanted |= s->walks[i].running;
		s->walks[i].running = false;
	}
	walk_end(s);
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
	d->owed = m->owed && (!m->tried || m->passed_over);
	due_set_untried(&s->due, d, m->untried && !m->tried && !m->passed_over);
	share_remember(m, d);
}

void
acts_hold_ends(struct send *s, usec_t until_wall)
{
	if (until_wall > 0 &&
	    (s->hold_until == 0 || until_wall < s->hold_until))
		s->hold_until = until_wall;
}

void
deferred_make_due(
    struct send *s, uint64_t inode, usec_t due_wall, bool was_held)
{
	struct due *d = due_find(&s->due, inode);
	struct backlog *b = d == NULL ? NULL : share_backlog_of(d);
	const usec_t at =
	    due_wall > s->now_wall ? s->now + (due_wall - s->now_wall) : s->now;

	d = due_put(&s->due, inode, at);
	if (d == NULL)
		s->walks[WALK_DEFERRED].wanted = true;
	else
		d->owed |= was_held;
	share_changed(s, b);
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
	b = share_backlog_of(d);
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
	walk_end(s);
	due_done(&s->due);
}
