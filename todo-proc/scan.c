#include "todo-proc/todo.h"

#include <errno.h>
#include <string.h>

#include "log/log.h"

#define SCAN_SHARE 10
#define SHORT_WAIT USEC_PER_SEC

struct bounds {
	usec_t least, most;
};

/* The time between two scans is SCAN_SHARE times the length of the last scan,
 * within these bounds. A user waits for a drop, and on a busy disk a scan takes
 * long: so the upper bound of maildrop/ is small, and scans may take most of
 * the time of one thread while drops come. Files in incoming/ have doorbells.
 */
static const struct bounds drop_gap = { 5 * USEC_PER_MSEC,
	100 * USEC_PER_MSEC };
static const struct bounds incoming_gap = { 100 * USEC_PER_MSEC,
	10 * USEC_PER_SEC };

static void
pick_up(
    const struct spool *sp, enum spool_dir dir UNUSED, struct walk_found *found)
{
	uid_t uid;

	if (spool_drop_parse(found->item.name, &uid))
		pickup_drop(sp, found->item.name, &found->u.picked);
}

void
scan_init(struct todo *t)
{
	t->incoming.wanted = true;
	t->maildrop.wanted = true;
	t->drop_wait = drop_gap.most;
}

void
scan_done(struct todo *t)
{
	prepared_done(t);
	walk_end(&t->incoming.walk);
	walk_end(&t->maildrop.walk);
}

static bool
is_running(const struct todo_scan *s)
{
	return s->walk.part != NULL;
}

/* False: there is no memory. */
static bool
begin(struct todo *t, struct todo_scan *s, const struct walk_kind *kind)
{
	if (walk_begin(t, &s->walk, kind) < 0) {
		s->wanted = true;
		s->not_before = t->now + SHORT_WAIT;
		return false;
	}
	if (kind->dir == SPOOL_INCOMING) {
		inbox_scan_begins(&t->inbox);
		prepared_begin(t);
	} else {
		t->drop_later = false;
	}
	s->wanted = false;
	s->started_at = t->now;
	s->seen = 0;
	return true;
}

static usec_t
gap_after(const struct todo *t, const struct todo_scan *s)
{
	const struct bounds *gap =
	    s == &t->maildrop ? &drop_gap : &incoming_gap;
	const usec_t wanted = (t->now - s->started_at) * SCAN_SHARE;

	if (wanted < gap->least)
		return gap->least;
	return wanted < gap->most ? wanted : gap->most;
}

static void
end(struct todo *t, struct todo_scan *s)
{
	const usec_t gap = gap_after(t, s), interval = t->conf->scan_interval;

	walk_end(&s->walk);
	s->not_before = t->now + gap;
	s->due_at = t->now + (gap > interval ? gap : interval);
}

/* 0: the scan runs; else the time at which it is to begin. */
static usec_t
begin_when_due(
    struct todo *t, struct todo_scan *s, const struct walk_kind *kind)
{
	usec_t at = s->wanted ? s->not_before : s->due_at;

	if (is_running(s))
		return 0;
	if (t->now < at)
		return at;
	return begin(t, s, kind) ? 0 : s->not_before;
}

static bool
is_ours(const struct walk *w, const struct spool_item *item)
{
	uid_t uid;

	if (w->kind->dir == SPOOL_MAILDROP)
		return spool_drop_parse(item->name, &uid);
	return item->inode != 0;
}

/* Is it the name of a queue file? */
static bool
judge(struct todo *t, const struct walk *w, const struct walk_found *f)
{
	const char *dir = spool_dirs[w->kind->dir].name;

	if (f->error < 0) {
		if (todo_say(t, f->error))
			log_warning("%s/%s: %s: a part of it was not read",
			    t->sp.path, dir, strerror(-f->error));
		return false;
	}
	if (is_ours(w, &f->item))
		return true;
	if (foreign_warn(&t->foreign, w->kind->dir, f->item.name, t->now))
		log_warning("%s/%s/%s: not a queue file: ignored", t->sp.path,
		    dir, f->item.name);
	return false;
}

bool
scan_holds(const struct todo *t)
{
	return is_running(&t->incoming) &&
	    t->now - t->incoming.started_at < SCAN_HOLD;
}

static void
incoming_ended(struct todo *t)
{
	struct todo_scan *s = &t->incoming;
	uint64_t kept = t->inbox.nready + t->inbox.nnewest + t->inbox.nfresh;

	end(t, s);
	s->wanted |= s->started_at < t->bell_known_at;
	t->left_out = t->inbox.more && s->seen > kept ? s->seen - kept : 0;
}

static void
found_incoming(struct todo *t, const struct walk_found *f)
{
	const struct spool_item *item = &f->item;

	if (!judge(t, &t->incoming.walk, f) ||
	    offered_has(&t->offered, item->inode, item->mtime_wall, t->now))
		return;
	t->incoming.seen++;
	if (examine_has(t, item->inode))
		return;
	if (todo_found(t, item->inode, item->mtime_wall) == 1)
		t->counts.found_by_scan++;
}

static const struct walk_kind incoming_kind = {
	.dir = SPOOL_INCOMING,
	.with_stat = true,
	.most = WALK_PART_MAX,
	.take = found_incoming,
};

usec_t
scan_incoming_work(struct todo *t)
{
	struct todo_scan *s = &t->incoming;
	usec_t at;

	if (inbox_is_low(&t->inbox))
		s->wanted = true;
	at = begin_when_due(t, s, &incoming_kind);
	if (at != 0 || prepared_work(t, &at))
		return at;
	switch (walk_take(t, &s->walk)) {
	case WALK_READING:
		return scan_holds(t) ? s->started_at + SCAN_HOLD : USEC_NEVER;
	case WALK_MORE:
		return t->now;
	case WALK_LAST:
		break;
	}
	incoming_ended(t);
	return s->wanted ? s->not_before : s->due_at;
}

static void
maildrop_ended(struct todo *t)
{
	struct todo_scan *s = &t->maildrop;

	end(t, s);
	watch_init(t);
	t->counts.maildrop = s->seen;
	if (t->drop_later && s->due_at > t->now + t->drop_wait) {
		s->due_at = t->now + t->drop_wait;
		t->drop_wait *= 2;
	}
}

static void
found_drop(struct todo *t, const struct walk_found *f)
{
	int r;

	if (!judge(t, &t->maildrop.walk, f))
		return;
	r = pickup_ended(t, f->item.name, &f->u.picked);
	if (r == -EAGAIN)
		t->drop_later = true;
	if (r < 0 && r != -ENOENT)
		t->maildrop.seen++;
	t->drop_came |= r == 0;
}

static const struct walk_kind maildrop_kind = {
	.dir = SPOOL_MAILDROP,
	.most = 50,
	.work = pick_up,
	.take = found_drop,
};

usec_t
scan_maildrop_work(struct todo *t)
{
	struct todo_scan *s = &t->maildrop;
	enum walk_state state;
	usec_t at;

	/* While many wait, drops stay where the door counts them for their
	 * users; a turn that examines one comes here again. */
	if (t->sp.dir[SPOOL_MAILDROP] < 0 || t->inbox.ndrops >= INBOX_DROPS_MAX)
		return USEC_NEVER;
	at = begin_when_due(t, s, &maildrop_kind);
	if (at != 0)
		return at;
	t->drop_came = false;
	state = walk_take(t, &s->walk);
	if (state == WALK_READING)
		return USEC_NEVER;
	if (state == WALK_LAST)
		maildrop_ended(t);
	/* Drops that were picked up are to be offered. */
	return state == WALK_MORE || t->drop_came ? t->now : s->due_at;
}
