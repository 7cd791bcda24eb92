#include "queue-send/message/leave.h"

#include "queue-send/rules/rules.h"
#include "queue-send/reports/reports.h"

#include <errno.h>

#define FINISHED_PER_TURN 50

/* There is nothing left to hold or to delete: all of it is delivered or has
 * failed. */
static bool
came_too_late(const struct message *m)
{
	return m->fate >= FATE_REQUEUED && m->fate <= FATE_DELETED &&
	    m->settled >= m->pending;
}

/* The recipients decide the fate, unless it was decided before. */
static enum message_fate
fate_of(const struct send *s, const struct message *m)
{
	if (m->removed)
		return FATE_DELIVERED;
	if (m->fate == FATE_EVICTED && send_is_evacuating(s))
		return FATE_ASIDE;
	if (m->fate == FATE_UNREADABLE && m->error == -EIO &&
	    message_is_hopeless(s, m))
		return FATE_DAMAGED;
	if (m->rule != 0 && rules_are_over(s, m->rule))
		return FATE_REQUEUED;
	if (m->fate != FATE_OPEN && !came_too_late(m) &&
	    (m->fate != FATE_EVICTED || m->deferred == 0))
		return (enum message_fate)m->fate;
	if (m->deferred > 0)
		return FATE_DEFERRED;
	/* Another queue reports it, when it has come there. */
	if ((m->failed > 0 || m->succeeded) && send_is_evacuating(s))
		return FATE_ASIDE;
	return m->failed > 0 ? FATE_FAILED
	    : m->succeeded   ? FATE_TOLD
			     : FATE_DELIVERED;
}

static bool
is_to_report(
    const struct send *s, const struct message *m, enum message_fate fate)
{
	return leave[fate].tells && reports_is_wanting(s, m);
}

/* ---- one message leaves ---- */

/* A message that alone cannot be moved holds up no other. */
static void
cannot_leave(struct send *s, struct message *m, int error)
{
	static const char what[] = "move out of active";

	if (m->stuck && !health_is_general(error))
		disk_write_failed_again(s, m, what, error);
	else
		disk_write_failed(s, m, what, error);
	if (health_is_general(error)) {
		messages_put(&s->messages, m, STATE_FINISHED);
		s->finish_at = s->now + s->conf->error_interval;
		return;
	}
	if (s->messages.count[STATE_STUCK] == 0)
		s->stuck_at = s->now + s->conf->error_interval;
	m->stuck = true;
	messages_put(&s->messages, m, STATE_STUCK);
}

static void
gone(struct send *s, struct message *m, enum message_fate fate)
{
	char id[QUEUE_ID_SIZE];

	message_id(m, id);
	s->counters.finished += leave[fate].for_good;
	if (leave[fate].say != NULL)
		leave[fate].say(m, id);
	active_forget(s, m);
}

static void
go_at_once(struct send *s, struct message *m, enum message_fate fate)
{
	int r = leave[fate].go(s, m);

	if (r < 0)
		cannot_leave(s, m, r);
	else
		gone(s, m, fate);
}

/* A message without its note is not held, and not delivered now. */
static void
not_noted(struct send *s, struct message *m, int error)
{
	disk_note_failed(s, m, error);
	m->fate = FATE_DEFERRED;
	messages_put(&s->messages, m, STATE_FINISHED);
}

static void
moved(struct send *s, struct message *m, struct move *mv)
{
	const int r = mv->t.task.error;

	if (mv->t.has_note)
		m->rule = 0;
	if (mv->t.note_error < 0) {
		not_noted(s, m, mv->t.note_error);
		return;
	}
	if (mv->t.has_note)
		rules_noted(s, m, &mv->t.note);
	if (mv->t.due_error < 0 && mv->t.due_error != -ENOENT)
		disk_write_failed(s, m, "write the due time", mv->t.due_error);
	if (r == -ENOENT) {
		go_at_once(s, m, FATE_VANISHED);
	} else if (r < 0) {
		cannot_leave(s, m, r);
	} else {
		if (leave[mv->fate].in != NULL)
			leave[mv->fate].in(s, m, mv);
		gone(s, m, mv->fate);
	}
}

/* Reasons that are not of this message. */
static unsigned
strange_reasons(const struct message *m)
{
	unsigned bits = 0;

	if (!reasons_may_exist(m, SPOOL_DEFER))
		bits |= SPOOL_DIR_BIT(SPOOL_DEFER);
	if (!reasons_may_exist(m, SPOOL_BOUNCE))
		bits |= SPOOL_DIR_BIT(SPOOL_BOUNCE);
	return bits;
}

static void
move_away(struct send *s, struct message *m, enum message_fate fate)
{
	struct move mv = {
		.ended = moved,
		.fate = fate,
		.t.clear = strange_reasons(m),
	};

	if (moves_are_full(s)) {
		messages_put(&s->messages, m, STATE_UNMOVED);
		return;
	}
	leave_prepare(s, m, &mv);
	mv.t.has_note = fate == FATE_HELD && m->rule != 0 &&
	    rules_note(s, m->rule, &mv.t.note) == 0;
	move_begin(s, m, &mv);
}

static void
cleared(struct send *s, struct message *m, struct move *mv UNUSED)
{
	m->reasons_begun = m->bounce_begun = true; /* others' are gone */
	messages_put(&s->messages, m, STATE_FINISHED);
}

/* Where nothing moves. */
static void
clear_strange(struct send *s, struct message *m)
{
	struct move mv = {
		.ended = cleared,
		.t = { .clear = strange_reasons(m), .stays = true },
	};

	if (moves_are_full(s)) {
		messages_put(&s->messages, m, STATE_UNMOVED);
		return;
	}
	move_begin(s, m, &mv);
}

static void
finish_one(struct send *s, struct message *m)
{
	const enum message_fate fate = fate_of(s, m);
	const bool stays = fate == FATE_ASIDE && send_is_evacuating(s);
	const bool reports = is_to_report(s, m, fate);

	if (leave[fate].needs_marks && sync_is_wanting(s, m))
		messages_put(&s->messages, m, STATE_UNSYNCED);
	else if (stays && strange_reasons(m) != 0)
		clear_strange(s, m);
	else if (reports)
		messages_put(&s->messages, m, STATE_UNREPORTED);
	else if (leave[fate].go != NULL)
		go_at_once(s, m, fate);
	else if (stays)
		gone(s, m, FATE_ASIDE); /* evacuate.c takes it from active/ */
	else
		move_away(s, m, fate);
}

static void
try_stuck(struct send *s)
{
	uint32_t n = s->messages.count[STATE_STUCK];

	if (s->now < s->stuck_at)
		return;
	for (; n > 0; n--)
		messages_put(&s->messages,
		    messages_first(&s->messages, STATE_STUCK), STATE_FINISHED);
}

usec_t
finish_work(struct send *s)
{
	struct message *m;
	int n;

	try_stuck(s);
	for (n = 0; n < FINISHED_PER_TURN; n++) {
		m = messages_first(&s->messages, STATE_FINISHED);
		if (s->health.read_only)
			return USEC_NEVER;
		if (m == NULL)
			return s->messages.count[STATE_STUCK] > 0 ? s->stuck_at
								  : USEC_NEVER;
		if (s->now < s->finish_at)
			return s->finish_at;
		finish_one(s, m);
	}
	return s->now;
}
