#include "queue-send/message/leave.h"

#include <bsd/stdlib.h>
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "spool/act.h"

/* ---- away ---- */

static int
remove_it(struct send *s, const struct message *m, bool reported)
{
	int r = m->removed ? 0 : removal_begin(s, m, reported);

	if (r == 0)
		rate_add(&s->rate_out, s->now);
	return r;
}

static int
go_away(struct send *s, struct message *m)
{
	return remove_it(s, m, false);
}

static int
go_reported(struct send *s, struct message *m)
{
	return remove_it(s, m, true);
}

static int
go_nowhere(struct send *s, struct message *m)
{
	found_gone(s, m->inode);
	return 0;
}

/* ---- to another directory ---- */

static usec_t
delay_of(struct send *s, const struct message *m)
{
	usec_t age = jumps_age(&s->jumps, m->file.arrival_wall, s->now_wall);
	usec_t soon;
	usec_t delay = retry_delay(&s->retry, age, arc4random());

	/* Nothing is to be delivered: the message waits for its report. */
	if (m->wait_s > 0 && m->settled >= m->pending) {
		soon = (usec_t)m->wait_s * USEC_PER_SEC;
		return soon < s->retry.maximal ? soon : s->retry.maximal;
	}
	/* Recipients deferred before the act have their end soon. */
	if (m->expires && delay > s->retry.minimal)
		delay = s->retry.minimal;
	if (!m->agent_died)
		return delay;
	soon = retry_agent_delay(&s->retry, m->deaths);
	return soon < delay ? soon : delay;
}

/* Without a due time a restart tries early, and that is all. The end of its day
 * in deleted/ is on disk before the move. */
void
leave_prepare(struct send *s, const struct message *m, struct move *mv)
{
	const struct leave *l = &leave[mv->fate];
	const usec_t delay = l->due == MOVE_DUE_TRIED ? delay_of(s, m)
	    : l->to == SPOOL_DELETED                  ? ACT_DELETED_TIME
						      : 0;

	mv->t.to = l->to;
	mv->t.clear_after = l->clear_after;
	mv->t.due = l->due;
	mv->t.due_wall = s->now_wall + delay;
	mv->at_mono =
	    l->due == MOVE_WITHOUT_DUE ? m->active_mono : s->now + delay;
}

/* ---- memory follows the move ---- */

static void
in_hold(struct send *s, struct message *m, const struct move *mv UNUSED)
{
	s->walks[WALK_HOLD].count++;
	/* Deliveries may have lasted longer than the hold. */
	s->walks[WALK_HOLD].wanted |= m->held_for;
}

static void
in_corrupt(
    struct send *s, struct message *m UNUSED, const struct move *mv UNUSED)
{
	s->walks[WALK_CORRUPT].count++;
}

static void
in_incoming(struct send *s, struct message *m, const struct move *mv UNUSED)
{
	accepted_note(&s->accepted, m->inode, m->file.arrival_wall);
	s->want_scan = true;
}

static void
in_deferred(struct send *s, struct message *m, const struct move *mv)
{
	deferred_add(s, m, mv->at_mono);
}

static void
in_backlog(struct send *s, struct message *m, const struct move *mv)
{
	deferred_add(s, m, mv->at_mono);
	share_park(s, m->backlog, m->inode);
}

/* ---- lines of the log ---- */

static void
say(const char *id, enum log_level level, const char *name, const char *text)
{
	log_write(&(struct log_event){ .level = level,
	    .name = name,
	    .id = id,
	    .text = text,
	    .plain = true });
}

static void
say_vanished(const struct message *m UNUSED, const char *id)
{
	say(id, LOG_WARNING_L, "vanished",
	    "status=removed (the file is gone from the active queue)");
}

/* A message that nobody can be told of says so here. */
static void
say_failed(const struct message *m, const char *id)
{
	if (!m->reported)
		log_message(LOG_WARNING_L, "unreported", id,
		    "recipients that failed for good, without a report: %u "
		    "(the message has no sender)",
		    m->failed);
}

static void
say_put_aside(const struct message *m UNUSED, const char *id)
{
	say(id, LOG_INFO_L, "held-by-operator", "held by an operator");
}

static void
say_deleted(const struct message *m, const char *id)
{
	if (m->untold)
		log_message(LOG_WARNING_L, "unreported", id,
		    "recipients that failed for good, without a report: %u "
		    "(it could not be made now)",
		    m->failed);
	say(id, LOG_INFO_L, "deleted",
	    "deleted by an operator: in deleted/ for a day");
}

static void
say_quarantined(const struct message *m, const char *id)
{
	char name[QUEUE_FILE_MAX];

	queue_file_name(m->inode, name);
	log_message(LOG_ERROR_L, "quarantined", id,
	    "quarantined: %u agents died while delivering it: moved to "
	    "hold/%s",
	    m->deaths, name);
}

static void
say_damaged(const struct message *m, const char *id)
{
	if (m->error == -EIO) {
		log_message(LOG_ERROR_L, "damaged", id,
		    "ALERT: damaged (%s: %s, for longer than mail is kept): "
		    "moved to corrupt/",
		    m->why == NULL ? "cannot be read" : m->why,
		    strerror(-m->error));
		return;
	}
	log_message(LOG_ERROR_L, "damaged", id,
	    "ALERT: damaged (%s): moved to corrupt/; `qctl explain "
	    "state=corrupt' says what can be done",
	    m->why == NULL ? strerror(-m->error) : m->why);
}

static void
say_unreadable(const struct message *m, const char *id)
{
	log_message(LOG_ERROR_L, "unreadable", id,
	    "cannot be read: %s: deferred", strerror(-m->error));
}

/* ---- fates ---- */

const struct leave leave[NFATES] = {
	/* clang-format off */
	[FATE_DELIVERED]  = { .go = go_away,
	    .for_good = true },
	[FATE_TOLD]       = { .go = go_reported,
	    .for_good = true, .needs_marks = true, .tells = true },
	[FATE_DEFERRED]   = { .to = SPOOL_DEFERRED, .due = MOVE_DUE_TRIED,
	    .in = in_deferred, .needs_marks = true, .tells = true },
	[FATE_FAILED]     = { .go = go_reported, .say = say_failed,
	    .for_good = true, .needs_marks = true, .tells = true },
	[FATE_EVICTED]    = { .to = SPOOL_DEFERRED, .in = in_backlog,
	    .needs_marks = true },
	[FATE_ASIDE]      = { .to = SPOOL_INCOMING, .in = in_incoming,
	    .needs_marks = true },
	[FATE_SUSPECT]    = { .to = SPOOL_DEFERRED, .due = MOVE_DUE_TRIED,
	    .in = in_deferred, .needs_marks = true },
	[FATE_REQUEUED]   = { .to = SPOOL_DEFERRED, .due = MOVE_DUE_NEEDED,
	    .in = in_deferred, .needs_marks = true },
	/* Reasons stay: they say why the message was waiting. */
	[FATE_HELD]       = { .to = SPOOL_HOLD, .in = in_hold,
	    .say = say_put_aside, .needs_marks = true, .tells = true },
	[FATE_DELETED]    = { .to = SPOOL_DELETED, .due = MOVE_DUE_NEEDED,
	    .say = say_deleted,
	    .for_good = true, .needs_marks = true, .tells = true },
	[FATE_POISON]     = { .to = SPOOL_HOLD, .in = in_hold,
	    .clear_after = SPOOL_DIR_BIT(SPOOL_DEFER), .say = say_quarantined,
	    .for_good = true, .needs_marks = true, .tells = true },
	[FATE_UNREADABLE] = { .to = SPOOL_DEFERRED, .due = MOVE_DUE_TRIED,
	    .in = in_deferred, .say = say_unreadable, .needs_marks = true },
	[FATE_DAMAGED]    = { .to = SPOOL_CORRUPT, .in = in_corrupt,
	    .say = say_damaged, .needs_marks = true },
	[FATE_REPLACED]   = { .to = SPOOL_INCOMING, .in = in_incoming },
	[FATE_VANISHED]   = { .go = go_nowhere, .say = say_vanished },
	/* clang-format on */
};
