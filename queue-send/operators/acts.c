#include "queue-send/disk/act_task.h"

#include <errno.h>
#include <fcntl.h>

#include "base/io.h"
#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/agents/agents.h"
#include "queue-send/message/path.h"
#include "queue-send/rules/rules.h"
#include "queue-send/schedule/schedule.h"
#include "queue-send/operators/operators.h"
#include "spool/reason.h"

/* ---- in the active queue ---- */

static const enum message_fate fates[NACTS] = {
	[ACT_HOLD] = FATE_HELD,
	[ACT_REQUEUE] = FATE_REQUEUED,
	[ACT_DELETE] = FATE_DELETED,
};

/* The attempt ends, and what runs of it is waited for. A later act replaces an
 * earlier one; what was decided for other reasons stands. */
static uint32_t
decide(struct send *s, struct message *m, enum message_fate fate)
{
	const uint32_t running =
	    1 + (delivery_is_of(s, m) ? sched_message_running(m->sched) : 0);

	m->fate = (uint8_t)fate;
	m->rule = 0;
	if (running > 1)
		delivery_cancel(s, m, AGENT_NOT_ACCEPTED);
	if (m->state == STATE_ACTIVE || m->state == STATE_READING)
		settle_message(s, m);
	send_wake(s);
	return running;
}

/* The note is on disk, or the mark of one that is given up. */
static int
noted(struct send *s, struct act_task *t, uint32_t *ret_running)
{
	struct message *m = t->message;
	int r = t->task.error;

	m->nunrecorded--;
	if (r == 0)
		sync_changed(s);
	if (r == 0 && act_gives_up(t->what)) {
		m->expires = true;
	} else if (r == 0) {
		if (t->has_note)
			acts_hold_ends(s, t->note.until_wall);
		m->held_for = t->has_note && t->note.until_wall > 0;
		if (t->marks)
			m->decided = t->decision != 0;
		r = m->fate > FATE_DELETED ? -EAGAIN : 0;
		if (r == 0)
			*ret_running = decide(s, m, fates[t->what]);
	}
	/* The message may have waited for this alone. */
	if (m->state == STATE_ACTIVE)
		settle_message(s, m);
	return r;
}

/* Is a mark to be written, so that a stop or a crash does not forget the act?
 * Without a delivery under way the act is done at once. Of a hold by a rule the
 * rule is on disk. */
static bool
needs_mark(const struct send *s, const struct message *m,
    const struct act_order *order)
{
	if (act_gives_up(order->what))
		return true;
	if (order->what == ACT_REQUEUE)
		return m->decided;
	if (m->decided) /* the mark of the earlier act ends */
		return true;
	return sched_message_running(m->sched) > 0 &&
	    (order->note == NULL || order->note->rule == 0) &&
	    delivery_is_of(s, m);
}

/* A message that is about to leave is asked about again where it is then, since
 * it does not wait there for what a thread writes. */
static bool
may_act(const struct send *s, const struct message *m,
    const struct act_order *order)
{
	const bool stays =
	    m->state == STATE_ACTIVE || m->state == STATE_READING;

	if (act_gives_up(order->what))
		return stays && m->nunrecorded == 0;
	if (m->sched == NULL || m->fate > FATE_DELETED)
		return false;
	return stays || m->state == STATE_FETCHING ||
	    (order->note == NULL && !needs_mark(s, m, order));
}

/* The message does not finish before the note is written. Reasons of an attempt
 * that goes on are appended to it, and do not begin the file anew. */
static void
prepare_note(struct message *m, struct act_task *t)
{
	t->message = m;
	t->first = m->first;
	m->nunrecorded++;
	if (t->marks) {
		t->begins_bounce = m->first && !m->bounce_begun;
		m->bounce_begun = true;
	}
	if (!t->has_note)
		return;
	t->begins_defer = !m->reasons_begun;
	m->reasons_begun = true;
}

static int
note(struct send *s, struct message *m, const struct act_order *order)
{
	struct act_task *t = act_task_new(s, order, act_task_note);

	if (t == NULL)
		return -ENOMEM;
	t->ended = noted;
	t->marks = needs_mark(s, m, order);
	t->decision = order->what == ACT_HOLD ? REASON_TO_HOLD
	    : order->what == ACT_DELETE       ? REASON_TO_DELETE
					      : 0;
	prepare_note(m, t);
	return act_run(s, t);
}

/* Of a message that is given up recipients that cannot be delivered in this
 * attempt fail. */
static int
act_on_active(struct send *s, struct message *m, const struct act_order *order,
    uint32_t *ret_running)
{
	if (order->what == ACT_RETRY)
		return 0;
	if (!act_gives_up(order->what) && fates[order->what] == FATE_OPEN)
		return -EINVAL;
	if (!may_act(s, m, order))
		return -EAGAIN;
	if (order->note != NULL || needs_mark(s, m, order))
		return note(s, m, order);
	*ret_running = decide(s, m, fates[order->what]);
	return 0;
}

/* ---- on disk ---- */

static void
count_walk(struct send *s, enum spool_dir from, enum spool_dir to)
{
	struct walk *corrupt = &s->walks[WALK_CORRUPT];
	struct walk *hold = &s->walks[WALK_HOLD];

	corrupt->wanted |= to == SPOOL_CORRUPT;
	if (from == SPOOL_CORRUPT && to != SPOOL_CORRUPT && corrupt->count > 0)
		corrupt->count--;
	if (from == SPOOL_HOLD && to != SPOOL_HOLD)
		deferred_left_hold(s);
	if (to == SPOOL_HOLD && from != SPOOL_HOLD)
		hold->count++;
}

/* After the move: what memory knows of the message follows. */
static void
moved(struct send *s, enum spool_dir from, enum spool_dir to, uint64_t inode,
    usec_t due_wall)
{
	if (to == SPOOL_DEFERRED)
		deferred_make_due(s, inode, due_wall, from == SPOOL_HOLD);
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

static int
file_moved(struct send *s, struct act_task *t, uint32_t *ret_running UNUSED)
{
	const uint64_t inode = t->id.inode;

	if (t->task.error < 0)
		return t->task.error;
	if (t->has_note)
		acts_hold_ends(s, t->note.until_wall);
	if (t->what == ACT_RETRY && is_due_before(s, inode, t->due_wall)) {
		send_wake(s);
	} else {
		note_accepted(s, t->dir, inode, t->fd);
		moved(s, t->dir, t->went, inode, t->due_wall);
	}
	return 0;
}

/* An offer is dropped: its answer has come, and the file lies where it lay. */
static int
act_on_file(struct send *s, struct message *m, const struct act_order *order)
{
	struct act_task *t = act_task_new(s, order, act_task_file);

	if (t == NULL)
		return -ENOMEM;
	due_set_untouched(&s->due, order->id->inode, false);
	t->ended = file_moved;
	t->passes_rules = rules_exist(s);
	t->offered = m != NULL;
	if (m != NULL)
		act_drop_offer(s, m);
	return act_run(s, t);
}

/* ---- one act ---- */

void
act_drop_offer(struct send *s, struct message *m)
{
	struct due *d = due_find(&s->due, m->inode);

	if (d != NULL && d->asked)
		share_unask(s, d, s->now);
	messages_drop(&s->messages, m);
}

static int
act_on_message(struct send *s, struct message *m, const struct act_order *order,
    uint32_t *ret_running)
{
	const struct queue_id *id = order->id;

	if (!message_is(m, id->arrival_wall, id->nonce))
		return -ENOENT;
	/* The file has gone while a delivery ends: a note would be left. */
	if (m->removed)
		return -ENOENT;
	if (move_is_under_way(m))
		return -EAGAIN;
	if (message_is_active(m))
		return act_on_active(s, m, order, ret_running);
	return order->what == ACT_RETRY ? 0 : act_on_file(s, m, order);
}

static int
act_on_one(struct send *s, const struct act_order *order, uint32_t *ret_running)
{
	const uint64_t inode = order->id->inode;
	struct message *m = messages_find(&s->messages, inode);

	if (m != NULL)
		return act_on_message(s, m, order, ret_running);
	if (removal_is_under_way(s, inode))
		return -ENOENT; /* done: its file is about to go */
	return is_asked_for(s, inode) ? -EAGAIN : act_on_file(s, NULL, order);
}

static int
is_refused(const struct send *s, const struct act_order *order)
{
	if (send_is_evacuating(s) || s->stopping)
		return -EBUSY;
	if (s->health.read_only)
		return -EROFS;
	return acts_are_full(s) || act_is_under_way(s, order->id->inode)
	    ? -EAGAIN
	    : 0;
}

void
acts_do(struct send *s, const struct act_order *order)
{
	uint32_t running = 0;
	int r = is_refused(s, order);

	/* A start would take a later time for one of another clock. */
	if (r == 0 && order->due_wall > s->now_wall &&
	    order->due_wall - s->now_wall > s->retry.maximal)
		r = -ERANGE;
	if (r == 0)
		r = order->what == ACT_SPREAD ? spread_message(s, order)
					      : act_on_one(s, order, &running);
	if (r != ACT_UNDER_WAY)
		order->by.answer(s, &order->by, r, running);
}
