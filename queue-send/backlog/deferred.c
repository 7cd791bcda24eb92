#include "queue-send/backlog/backlog.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "log/log.h"
#include "queue-send/road/road.h"
#include "spool/act.h"
#include "spool/hold_note.h"
#include "spool/reason.h"

#define WALKED_PER_TURN 300
#define HELD_STEPS      15 /* a file that is opened and read takes as long */
#define REASON_STEPS    5  /* the message is looked for */
#define WALK_INTERVAL   (3600 * USEC_PER_SEC)
#define STRAY_RETRY     (10 * USEC_PER_SEC)
#define SHORTAGE_WAIT   USEC_PER_SEC
#define RESCAN_GAP      9 /* a tenth of the time at most */

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
	struct recovered done = { .accepted = &s->accepted, .behind = s };
	int r;

	if (messages_find(&s->messages, item->inode) != NULL ||
	    removal_is_under_way(s, item->inode))
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

/* The message may have come there again since the walk looked. */
static bool
ends_later(const struct send *s, int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ||
	    (usec_t)st.st_mtim.tv_sec * USEC_PER_SEC > s->now_wall;
}

/* The message may have left since the walk looked: what it has in defer/ and
 * bounce/ goes on with it. */
static bool
is_deleted(const struct send *s, uint64_t inode)
{
	char leaf[SPOOL_PATH_MAX];
	struct stat st;

	spool_leaf(&s->sp, SPOOL_DELETED, inode, leaf, sizeof(leaf));
	return fstatat(s->sp.dir[SPOOL_DELETED], leaf, &st,
		   AT_SYMLINK_NOFOLLOW) == 0;
}

/* A file was found in deleted/: its day may be over. */
static void
found_deleted(struct send *s, const struct spool_item *item)
{
	int r, fd;

	if (act_is_under_way(s, item->inode) || !is_deleted(s, item->inode))
		return;
	fd = reason_open(&s->sp, SPOOL_DEFER, item->inode);
	/* A restore may lose the end of its day: a day from now, then. */
	if (fd < 0)
		r = spool_set_due(
		    &s->sp, item->inode, s->now_wall + ACT_DELETED_TIME);
	else if (item->mtime_wall > s->now_wall || ends_later(s, fd))
		r = 0;
	else
		r = remove_deleted(s, item->inode);
	io_close(&fd);
	if (r < 0)
		log_warning(
		    "%s/deleted/%s: %s", s->sp.path, item->name, strerror(-r));
}

/* Failed mail of a version without reports. */
static void
found_held(struct send *s, const struct spool_item *item)
{
	struct recovered done = { .accepted = &s->accepted };
	struct walk *w = &s->walks[WALK_HOLD];

	/* The end of its move there counts it, and looks again. */
	if (messages_find(&s->messages, item->inode) != NULL ||
	    act_meets_held(s, item->inode))
		return;
	w->failed += recover_held(&s->sp, item->inode,
			 s->conf->report_held_failures, &done) == 1;
	w->found -= done.returned;
	s->want_scan |= done.returned > 0;
	if (done.returned == 0)
		w->found -= acts_found_held(s, item->inode);
}

/* A second name: the queue that gives the message away lends them, and the
 * message comes after them (spool_hand_over()). */
static bool
are_lent(const struct spool *sp, uint64_t inode)
{
	char leaf[SPOOL_PATH_MAX];
	struct stat st;

	spool_leaf(sp, SPOOL_BOUNCE, inode, leaf, sizeof(leaf));
	return fstatat(sp->dir[SPOOL_BOUNCE], leaf, &st, AT_SYMLINK_NOFOLLOW) ==
	    0 &&
	    st.st_nlink > 1;
}

/* A crash may have left it, when its message had gone. */
static void
found_reasons(struct send *s, const struct spool_item *item)
{
	if (messages_find(&s->messages, item->inode) == NULL &&
	    !act_is_under_way(s, item->inode) && !are_lent(&s->sp, item->inode))
		reasons_clear(s, item->inode);
}

/* Once for a number: what stays is not told of each hour. */
static void
say_held(struct walk *w, bool taken)
{
	if (w->failed > 0 && taken)
		log_info("hold/: failed messages of an earlier version: %llu "
			 "are reported and go",
		    (unsigned long long)w->failed);
	else if (w->failed > 0 && w->failed != w->said)
		log_warning("hold/: failed messages of an earlier version: "
			    "%llu stay there, and their senders know nothing "
			    "(report_held_failures = no)",
		    (unsigned long long)w->failed);
	w->said = w->failed;
}

/* ---- in a thread: the same looks before the loop takes them ---- */

/* As recover.c reads marks. */
static void
read_ahead(int fd, const struct queue_file *file)
{
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;

	queue_rcpt_begin(&cursor, file);
	while (queue_rcpt_next(&cursor, fd, &rcpt) > 0)
		;
}

static void
look_at_held(const struct spool *sp, uint64_t inode)
{
	struct queue_file file;
	struct hold_note note;
	struct queue_id id;
	int fd = spool_open_file(sp, SPOOL_HOLD, inode, O_RDONLY);

	if (fd < 0)
		return;
	if (queue_file_read(fd, &file) == 0) {
		id = (struct queue_id){ file.arrival_wall, file.nonce,
			file.queue, inode };
		read_ahead(fd, &file);
		(void)hold_note_read(sp, &id, &note);
	}
	io_close(&fd);
}

static void
look_at_deleted(const struct spool *sp, uint64_t inode)
{
	int fd = reason_open(sp, SPOOL_DEFER, inode);

	io_close(&fd);
}

static void
look_at_reasons(const struct spool *sp, uint64_t inode)
{
	(void)spool_has(sp, inode);
}

/* A walk, and what is done with each file that is found; steps that this takes.
 */
static const struct {
	enum spool_dir dir;
	void (*found)(struct send *s, const struct spool_item *item);
	int steps;
	void (*look)(const struct spool *sp, uint64_t inode);
} kinds[WALK_NKINDS] = {
	[WALK_DEFERRED] = { SPOOL_DEFERRED, found, 1, NULL },
	[WALK_ACTIVE] = { SPOOL_ACTIVE, found_active, 1, NULL },
	[WALK_HOLD] = { SPOOL_HOLD, found_held, HELD_STEPS, look_at_held },
	[WALK_CORRUPT] = { SPOOL_CORRUPT, NULL, 1, NULL },
	[WALK_DELETED] = { SPOOL_DELETED, found_deleted, 1, look_at_deleted },
	[WALK_BOUNCE] = { SPOOL_BOUNCE, found_reasons, REASON_STEPS,
	    look_at_reasons },
};

static void
end_walk(struct send *s, enum walk_kind kind)
{
	struct walk *w = &s->walks[kind];

	if (kind == WALK_HOLD)
		say_held(w, s->conf->report_held_failures);
	walk_end(s);
	w->running = false;
	w->ended_at = s->now;
	w->count = w->found;
	if (kind == WALK_DEFERRED)
		s->walk_flush = false;
	s->pub.changed = true;
}

static int
begin_walk(struct send *s, enum walk_kind kind)
{
	struct walk *w = &s->walks[kind];
	const struct walk_plan plan = {
		.dir = kinds[kind].dir,
		.with_stat = kind == WALK_DEFERRED || kind == WALK_DELETED,
		.most = WALKED_PER_TURN / kinds[kind].steps,
		.look = kinds[kind].look,
	};
	int r = walk_begin(s, &plan);

	if (r < 0)
		return r;
	w->running = true;
	w->wanted = false;
	w->began_at = s->now;
	w->found = w->failed = 0;
	return 0;
}

static void
found_one(struct send *s, enum walk_kind kind, int i)
{
	const struct spool_item *item;
	int error = walk_item(s, i, &item);

	if (error < 0)
		log_warning("%s/%s: %s: a part of it was not read", s->sp.path,
		    spool_dirs[kinds[kind].dir].name, strerror(-error));
	if (error < 0 || item->inode == 0)
		return;
	s->walks[kind].found++;
	if (kinds[kind].found != NULL)
		kinds[kind].found(s, item);
}

/* A part of the walk. */
static usec_t
step(struct send *s, enum walk_kind kind)
{
	bool more;
	int i, n;

	if (!s->walks[kind].running && begin_walk(s, kind) < 0)
		return s->now + SHORTAGE_WAIT;
	if (!walk_read(s))
		return USEC_NEVER;
	n = walk_count(s, &more);
	for (i = 0; i < n; i++)
		found_one(s, kind, i);
	if (!more)
		end_walk(s, kind);
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
	i = next_walk(s);
	if (i >= 0)
		return step(s, (enum walk_kind)i);
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
	d->owed = m->owed && (!m->tried || m->passed_over);
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

/* The time of the last mark, or of the acceptance, stands for its age. */
static bool
is_hopeless(struct send *s, uint64_t inode)
{
	char leaf[SPOOL_PATH_MAX];
	struct stat st;
	usec_t changed;

	spool_leaf(&s->sp, SPOOL_DEFERRED, inode, leaf, sizeof(leaf));
	if (s->now < s->expire_after ||
	    fstatat(s->sp.dir[SPOOL_DEFERRED], leaf, &st, AT_SYMLINK_NOFOLLOW) <
		0)
		return false;
	changed = (usec_t)st.st_mtim.tv_sec * USEC_PER_SEC;
	return retry_is_hopeless(
	    &s->retry, jumps_age(&s->jumps, changed, s->now_wall), false);
}

bool
deferred_give_up(struct send *s, uint64_t inode, int error)
{
	char name[QUEUE_FILE_MAX];

	if (error != -EIO || !is_hopeless(s, inode))
		return false;
	queue_file_name(inode, name);
	if (spool_move_corrupt(&s->sp, SPOOL_DEFERRED,
		(uint32_t)(inode % s->sp.split), name) < 0)
		return false;
	log_error("%s/deferred/%s: cannot be read, for longer than mail is "
		  "kept: %s: moved to corrupt/",
	    s->sp.path, name, strerror(-error));
	s->walks[WALK_CORRUPT].count++;
	deferred_forget(s, inode);
	return true;
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
	walk_done(s);
	due_done(&s->due);
}
