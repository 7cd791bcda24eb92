#include "queue-send/walks/walks.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/disk/act_task.h"
#include "queue-send/message/path.h"
#include "queue-send/reports/reports.h"
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

/* A file in active/ that this queue-send does not know: the start could not
 * move the file, or an operator put the file there. */
static void
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

static void
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
static void
found_held(struct send *s, const struct walk_item *item)
{
	/* The end of its move there counts it, and looks again. */
	if (messages_find(&s->messages, item->file.inode) != NULL ||
	    act_meets_held(s, item->file.inode))
		return;
	acts_found_held(s, item);
}

/* ---- bounce/ ---- */

static void
look_at_reasons(const struct spool *sp, struct walk_item *item)
{
	item->has_message = spool_has(sp, item->file.inode);
}

/* A crash may have left it, when its message had gone. */
static void
found_reasons(struct send *s, const struct walk_item *item)
{
	if (!item->has_message &&
	    messages_find(&s->messages, item->file.inode) == NULL &&
	    !act_is_under_way(s, item->file.inode) &&
	    !removal_is_under_way(s, item->file.inode))
		act_run_own(
		    s, SPOOL_BOUNCE, item->file.inode, act_task_clear, NULL);
}

/* ---- holds with an end ---- */

/* A file of hold/ could not be dealt with, with that error: the walk comes
 * again, if that may help. */
static void
hold_again(struct send *s, int error)
{
	if (error < 0 && error != -ENOENT && error != -EBADMSG)
		acts_hold_ends(s, s->now_wall + s->conf->error_interval);
}

static int
released(struct send *s, struct act_task *t, uint32_t *ret_running UNUSED)
{
	char text[QUEUE_ID_SIZE];

	hold_again(s, t->task.error);
	if (t->task.error < 0)
		return 0;
	queue_id_format(&t->id, text);
	deferred_left_hold(s);
	deferred_make_due(s, t->id.inode, 0, true);
	sync_changed(s);
	s->pub.changed = true;
	log_message(LOG_INFO_L, "hold-is-over", text,
	    "released: the time of its hold is over");
	return 0;
}

static int
read_note(const struct spool *sp, uint64_t inode, struct queue_id *ret_id,
    struct hold_note *ret_note)
{
	struct queue_file file;
	int r, fd = spool_open_file(sp, SPOOL_HOLD, inode, O_RDONLY);

	if (fd < 0)
		return -ENOENT;
	r = queue_file_read(fd, &file);
	if (r == 0) {
		*ret_id = (struct queue_id){ file.arrival_wall, file.nonce,
			file.queue, inode };
		r = hold_note_read(sp, ret_id, ret_note);
	}
	io_close(&fd);
	return r;
}

static void
acts_look_at_held(const struct spool *sp, struct walk_item *item)
{
	struct hold_note note = { 0 };

	item->note_error = read_note(sp, item->file.inode, &item->id, &note);
	item->until_wall = note.until_wall;
}

/* The thread that releases it reads the note again. */
void
acts_found_held(struct send *s, const struct walk_item *item)
{
	struct act_task *t = NULL;

	hold_again(s, item->note_error);
	if (item->note_error < 0 || item->until_wall == 0)
		return;
	if (item->until_wall <= s->now_wall)
		t = act_task_own(s, SPOOL_HOLD, item->file.inode,
		    act_task_release, released);
	else
		acts_hold_ends(s, item->until_wall);
	if (t == NULL)
		return;
	t->what = ACT_RELEASE;
	t->id = item->id;
	(void)act_run(s, t);
}

usec_t
acts_hold_work(struct send *s)
{
	if (s->hold_until == 0)
		return USEC_NEVER;
	if (s->now_wall < s->hold_until)
		return s->now + (s->hold_until - s->now_wall);
	if (s->health.read_only)
		return USEC_NEVER;
	s->hold_until = 0; /* the walk finds the next one */
	s->walks[WALK_HOLD].wanted = true;
	return s->now;
}

/* ---- walks ---- */

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
