#include "todo-proc/todo.h"

#include <errno.h>
#include <string.h>

#include "log/log.h"

#define NAMES_PER_TURN 500
#define SCAN_GAP       (100 * USEC_PER_MSEC)
#define DROP_GAP       (5 * USEC_PER_MSEC)
#define DROPS_PER_TURN 50
#define SCAN_SHARE     10 /* at most one tenth of the time */

void
scan_init(struct todo *t)
{
	t->incoming.wanted = true;
	t->maildrop.wanted = true;
	t->drop_wait = SCAN_GAP;
}

void
scan_done(struct todo *t)
{
	prepared_done(t);
	if (t->incoming.running)
		spool_scan_done(&t->incoming.walk);
	if (t->maildrop.running)
		spool_scan_done(&t->maildrop.walk);
}

static void
begin(struct todo *t, struct todo_scan *s, enum spool_dir dir)
{
	spool_scan_begin(&s->walk, &t->sp, dir);
	if (dir == SPOOL_INCOMING) {
		inbox_scan_begins(&t->inbox);
		prepared_begin(t);
	} else {
		t->drop_later = false;
	}
	s->running = true;
	s->wanted = false;
	s->started_at = t->now;
	s->seen = 0;
}

static void
end(struct todo *t, struct todo_scan *s)
{
	usec_t took = t->now - s->started_at, gap = took * SCAN_SHARE;
	/* A user waits for a drop; in incoming/ there are doorbells. */
	usec_t least = s == &t->maildrop ? DROP_GAP : SCAN_GAP;
	usec_t interval = t->conf->scan_interval;

	spool_scan_done(&s->walk);
	s->running = false;
	s->not_before = t->now + (gap > least ? gap : least);
	s->due_at = t->now + (gap > interval ? gap : interval);
}

/* 0: the scan runs; else the time at which it is to begin. */
static usec_t
begin_when_due(struct todo *t, struct todo_scan *s, enum spool_dir dir)
{
	usec_t at = s->wanted ? s->not_before : s->due_at;

	if (s->running)
		return 0;
	if (t->now < at)
		return at;
	begin(t, s, dir);
	return 0;
}

static bool
is_ours(const struct todo_scan *s, const struct spool_item *item)
{
	uid_t uid;

	if (s->walk.dir == SPOOL_MAILDROP)
		return spool_drop_parse(item->name, &uid);
	return item->inode != 0;
}

/* 1: the next name of a queue file; 0: the end; -EAGAIN: a foreign name. */
static int
next(struct todo *t, struct todo_scan *s, bool with_stat,
    struct spool_item *ret_item)
{
	const char *dir = spool_dirs[s->walk.dir].name;
	int r = spool_scan_next(&s->walk, with_stat, ret_item);

	if (r < 0) {
		if (todo_say(t, r))
			log_warning("%s/%s: %s: a part of it was not read",
			    t->sp.path, dir, strerror(-r));
		return -EAGAIN;
	}
	if (r == 0 || is_ours(s, ret_item))
		return r;
	if (foreign_warn(&t->foreign, s->walk.dir, ret_item->name, t->now))
		log_warning("%s/%s/%s: not a queue file: ignored", t->sp.path,
		    dir, ret_item->name);
	return -EAGAIN;
}

bool
scan_holds(const struct todo *t)
{
	return t->incoming.running &&
	    t->now - t->incoming.started_at < SCAN_HOLD;
}

static void
incoming_ended(struct todo *t)
{
	struct todo_scan *s = &t->incoming;
	uint64_t kept = t->inbox.nready + t->inbox.nfresh;

	end(t, s);
	s->wanted |= s->started_at < t->bell_known_at;
	t->left_out = t->inbox.more && s->seen > kept ? s->seen - kept : 0;
}

/* The ring of a file that was written since this process runs was lost, or is
 * still to come: the file is fresh all the same. */
static int
add_found(struct todo *t, const struct spool_item *item)
{
	if (item->mtime_wall >= t->began_wall)
		return inbox_ring(&t->inbox, item->inode, item->mtime_wall);
	return inbox_add(&t->inbox, item->inode, item->mtime_wall);
}

usec_t
scan_incoming_work(struct todo *t)
{
	struct todo_scan *s = &t->incoming;
	struct spool_item item;
	usec_t at;
	int n, r;

	if (inbox_is_low(&t->inbox))
		s->wanted = true;
	at = begin_when_due(t, s, SPOOL_INCOMING);
	if (at != 0)
		return at;
	if (prepared_work(t))
		return t->now;
	for (n = 0; n < NAMES_PER_TURN; n++) {
		r = next(t, s, true, &item);
		if (r == 0) {
			incoming_ended(t);
			return s->wanted ? s->not_before : s->due_at;
		}
		if (r < 0 ||
		    offered_has(
			&t->offered, item.inode, item.mtime_wall, t->now))
			continue;
		s->seen++;
		if (add_found(t, &item) == 1)
			t->counts.found_by_scan++;
	}
	return t->now;
}

static void
maildrop_ended(struct todo *t)
{
	struct todo_scan *s = &t->maildrop;

	end(t, s);
	t->counts.maildrop = s->seen;
	if (t->drop_later && s->due_at > t->now + t->drop_wait) {
		s->due_at = t->now + t->drop_wait;
		t->drop_wait *= 2;
	}
}

usec_t
scan_maildrop_work(struct todo *t)
{
	struct todo_scan *s = &t->maildrop;
	struct spool_item item;
	usec_t at;
	int n, r, drops = 0;

	if (t->sp.dir[SPOOL_MAILDROP] < 0)
		return USEC_NEVER;
	at = begin_when_due(t, s, SPOOL_MAILDROP);
	if (at != 0)
		return at;
	for (n = 0; n < NAMES_PER_TURN && drops < DROPS_PER_TURN; n++) {
		r = next(t, s, false, &item);
		if (r == 0) {
			maildrop_ended(t);
			/* Drops that were picked up are to be offered. */
			return drops > 0 ? t->now : s->due_at;
		}
		if (r < 0)
			continue;
		drops++;
		r = pickup_drop(t, item.name);
		if (r == -EAGAIN)
			t->drop_later = true;
		if (r < 0 && r != -ENOENT)
			s->seen++;
	}
	return t->now;
}
