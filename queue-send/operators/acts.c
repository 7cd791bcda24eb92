#include "queue-send/operators/operators.h"

#include <errno.h>
#include <fcntl.h>

#include "base/io.h"
#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/peers/peers.h"
#include "queue-send/road/road.h"
#include "queue-send/operators/rules.h"
#include "queue-send/schedule/schedule.h"
#include "spool/prepared.h"
#include "spool/reason.h"

struct act {
	enum spool_act what;
	const struct queue_id *id;
	usec_t due_wall;
	const struct hold_note *note; /* NULL: none */
};

void
acts_hold_ends(struct send *s, usec_t until_wall)
{
	if (until_wall > 0 &&
	    (s->hold_until == 0 || until_wall < s->hold_until))
		s->hold_until = until_wall;
}

/* Before the act: by whom, why, until when. */
static int
write_note(
    struct send *s, const struct act *a, struct hold_note_before *ret_before)
{
	int r = a->note == NULL
	    ? 0
	    : hold_note_write(&s->sp, a->id, a->note, ret_before);

	if (r == 0 && a->note != NULL)
		acts_hold_ends(s, a->note->until_wall);
	return r;
}

/* ---- in the active queue ---- */

static const enum message_fate fates[NACTS] = {
	[ACT_HOLD] = FATE_HELD,
	[ACT_REQUEUE] = FATE_REQUEUED,
	[ACT_DELETE] = FATE_DELETED,
};

/* Recipients that cannot be delivered in this attempt fail. One that is about
 * to leave is asked about again where it is then. */
static int
give_up(struct send *s, struct message *m, const struct queue_id *id)
{
	int r;

	if ((m->list != LIST_NONE && m->list != LIST_READING) ||
	    m->nunrecorded > 0)
		return -EAGAIN;
	reasons_begin_bounce(s, m);
	r = reason_add_expiry(&s->sp, id, s->now_wall);
	if (r < 0)
		return r;
	m->expires = true;
	sync_changed(s);
	return 0;
}

/* Reasons of an attempt that goes on are appended to the note, and do not begin
 * the file anew. */
static int
note_active(struct send *s, struct message *m, const struct act *a)
{
	struct hold_note_before before;
	int r;

	reasons_flush(s, m);
	r = write_note(s, a, &before);
	if (r == 0 && a->note != NULL) {
		m->reasons_begun = true;
		m->held_for = a->note->until_wall > 0;
	}
	return r;
}

/* The attempt ends, and what runs of it is waited for. A later act replaces an
 * earlier one; what was decided for other reasons stands. */
static int
act_on_active(struct send *s, struct message *m, const struct act *a,
    uint32_t *ret_running)
{
	int r;

	if (a->what == ACT_RETRY)
		return 0;
	if (act_gives_up(a->what))
		return give_up(s, m, a->id);
	if (fates[a->what] == FATE_OPEN)
		return -EINVAL;
	if (m->sched == NULL || m->fate > FATE_DELETED)
		return -EAGAIN;
	r = note_active(s, m, a);
	if (r < 0)
		return r;
	*ret_running = 1 + sched_message_running(m->sched);
	m->fate = (uint8_t)fates[a->what];
	if (m->list == LIST_NONE || m->list == LIST_READING)
		settle_message(s, m);
	send_wake(s);
	return 0;
}

/* ---- on disk ---- */

/* The message waits in deferred/ and is due at once. Parked in its backlog it
 * would wait for its turn, which is not at once. */
static void
make_due(struct send *s, uint64_t inode, usec_t due_wall, bool was_held)
{
	struct due *d = due_find(&s->due, inode);
	struct backlog *b = d == NULL ? NULL : share_backlog_of(s, d);
	const usec_t at =
	    due_wall > s->now_wall ? s->now + (due_wall - s->now_wall) : s->now;

	d = due_put(&s->due, inode, at);
	if (d == NULL)
		s->walks[WALK_DEFERRED].wanted = true;
	else
		d->owed |= was_held;
	share_changed(s, b);
}

static void
count_walk(struct send *s, enum spool_dir from, enum spool_dir to)
{
	struct walk *hold = &s->walks[WALK_HOLD];

	if (from == SPOOL_HOLD && to != SPOOL_HOLD && hold->count > 0)
		hold->count--;
	if (to == SPOOL_HOLD && from != SPOOL_HOLD)
		hold->count++;
}

/* After the move: what memory knows of the message follows. */
static void
moved(struct send *s, enum spool_act act, enum spool_dir from, uint64_t inode,
    usec_t due_wall)
{
	const enum spool_dir to = act_target(act, from);

	if (to == SPOOL_DEFERRED)
		make_due(s, inode, due_wall, from == SPOOL_HOLD);
	else if (from == SPOOL_DEFERRED)
		deferred_forget(s, inode);
	count_walk(s, from, to);
	sync_changed(s);
	s->pub.changed = true;
	send_wake(s);
}

/* The line of an acceptance is written when a message leaves incoming/. */
static void
note_accepted(struct send *s, enum spool_dir from, uint64_t inode, int fd)
{
	if (from != SPOOL_INCOMING)
		return;
	accepted_log_file(s, inode, fd);
	s->counters.accepted++;
}

/* An answer of todo-proc to a question that was asked before the act would be
 * taken for one about the message where it is then. */
static bool
is_asked_for(const struct send *s, uint64_t inode)
{
	const struct due *d = due_find(&s->due, inode);

	return d != NULL && d->asked;
}

/* Is a message that is to be retried at that time due before it? One that is
 * parked waits for its turn already; one that no walk has found yet keeps the
 * earlier time on disk. */
static bool
is_due_before(struct send *s, uint64_t inode, usec_t due_wall)
{
	const struct due *d = due_find(&s->due, inode);

	if (due_wall <= s->now_wall)
		return false;
	if (d == NULL)
		s->walks[WALK_DEFERRED].wanted = true;
	return d == NULL || d->parked ||
	    d->at_mono <= s->now + (due_wall - s->now_wall);
}

/* A hold of a message on hold is a new reason, or a new end. */
static bool
may_be_done(const struct act *a, enum spool_dir dir)
{
	return act_applies(a->what, dir) &&
	    (a->what != ACT_HOLD || dir != SPOOL_HOLD ||
		(a->note != NULL && hold_note_replaces(a->note)));
}

static int
move(struct send *s, const struct act *a, enum spool_dir dir, int fd)
{
	const usec_t due =
	    a->due_wall > s->now_wall ? a->due_wall : s->now_wall;
	struct hold_note_before before;
	int r;

	if (dir == SPOOL_ACTIVE) /* the walk brings it back to incoming/ */
		return -EAGAIN;
	r = may_be_done(a, dir) ? write_note(s, a, &before) : -EINVAL;
	if (r < 0)
		return r;
	if (dir == SPOOL_HOLD && act_target(a->what, dir) == SPOOL_DEFERRED)
		r = rules_release(s, a->id);
	if (r == 0)
		r = act_move(&s->sp, a->what, dir, a->id->inode, fd, due);
	if (r < 0 && a->note != NULL)
		hold_note_undo(&s->sp, a->id->inode, &before);
	return r;
}

static int
act_on_file(struct send *s, const struct act *a)
{
	const uint64_t inode = a->id->inode;
	enum spool_dir dir = SPOOL_DEFERRED;
	int r, fd = act_find(&s->sp, act_source(a->what), a->id, &dir);

	if (fd < 0)
		return fd;
	due_set_untouched(&s->due, inode, false);
	r = move(s, a, dir, fd);
	if (r == 0 && a->what == ACT_RETRY &&
	    is_due_before(s, inode, a->due_wall)) {
		send_wake(s);
	} else if (r == 0) {
		note_accepted(s, dir, inode, fd);
		moved(s, a->what, dir, inode, a->due_wall);
	}
	io_close(&fd);
	return r;
}

/* ---- one act ---- */

/* An offer is forgotten: its answer has come, and the file lies where it lay.
 */
static int
act_on_offered(struct send *s, struct message *m, const struct act *a)
{
	struct due *d = due_find(&s->due, m->inode);
	int r;

	if (a->what == ACT_RETRY)
		return 0;
	if (d != NULL && d->asked)
		share_unask(s, d, s->now);
	messages_drop(&s->messages, m);
	r = act_on_file(s, a);
	/* One that still lies in incoming/ is to be offered again. */
	s->want_scan |= r < 0;
	return r;
}

static int
act_on(struct send *s, const struct act *a, uint32_t *ret_running)
{
	const struct queue_id *id = a->id;
	struct message *m = messages_find(&s->messages, id->inode);

	*ret_running = 0;
	if (send_is_evacuating(s) || s->stopping)
		return -EBUSY;
	if (s->health.read_only)
		return -EROFS;
	/* A start would take a later time for one of another clock. */
	if (a->due_wall > s->now_wall &&
	    a->due_wall - s->now_wall > s->retry.maximal)
		return -ERANGE;
	/* Done: its file is about to go, or gone while a delivery ends. A note
	 * would be left behind. */
	if (m == NULL ? removal_is_under_way(s, id->inode) : m->removed)
		return -ENOENT;
	if (m == NULL)
		return is_asked_for(s, id->inode) ? -EAGAIN : act_on_file(s, a);
	if (!message_is(m, id->arrival_wall, id->nonce))
		return -ENOENT;
	if (move_is_under_way(m))
		return -EAGAIN;
	return m->active ? act_on_active(s, m, a, ret_running)
			 : act_on_offered(s, m, a);
}

int
acts_do(struct send *s, enum spool_act act, const struct queue_id *id,
    usec_t due_wall, uint32_t *ret_running)
{
	const struct act a = { .what = act, .id = id, .due_wall = due_wall };

	return act_on(s, &a, ret_running);
}

int
acts_hold(struct send *s, const struct queue_id *id,
    const struct hold_note *note, uint32_t *ret_running)
{
	const struct act a = { .what = ACT_HOLD, .id = id, .note = note };

	return act_on(s, &a, ret_running);
}

void
acts_flush(struct send *s)
{
	sched_flush(s->sched, s->now);
	deferred_flush(s);
	share_flush(s);
	send_wake(s);
}

/* ---- a hold with an end ---- */

static int
release(struct send *s, const struct queue_id *id, int fd)
{
	int r = act_move(
	    &s->sp, ACT_RELEASE, SPOOL_HOLD, id->inode, fd, s->now_wall);
	char text[QUEUE_ID_SIZE];

	if (r < 0)
		return r;
	queue_id_format(id, text);
	moved(s, ACT_RELEASE, SPOOL_HOLD, id->inode, 0);
	log_message(LOG_INFO_L, "hold-is-over", text,
	    "released: the time of its hold is over");
	return 0;
}

bool
acts_found_held(struct send *s, uint64_t inode)
{
	struct queue_file file;
	struct hold_note note;
	struct queue_id id;
	bool released = false;
	int r, fd = spool_open_file(&s->sp, SPOOL_HOLD, inode, O_RDONLY);

	if (fd < 0)
		return false;
	r = queue_file_read(fd, &file);
	if (r == 0) {
		id = (struct queue_id){ file.arrival_wall, file.nonce,
			file.queue, inode };
		r = hold_note_read(&s->sp, &id, &note);
	}
	if (r == 0 && note.until_wall > 0 && note.until_wall <= s->now_wall) {
		/* An operator may be taking back marks of failure. */
		r = prepared_lock(fd);
		if (r == 0)
			r = release(s, &id, fd);
		released = r == 0;
	} else if (r == 0)
		acts_hold_ends(s, note.until_wall);
	if (r < 0 && r != -ENOENT && r != -EBADMSG)
		acts_hold_ends(s, s->now_wall + s->conf->error_interval);
	io_close(&fd);
	return released;
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
