#include "queue-send/message/leave.h"

#include <bsd/stdlib.h>
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "spool/act.h"

/* ---- away ---- */

static int
go_away(struct send *s, struct message *m)
{
	int r = m->removed ? 0 : removal_begin(s, m, false);

	if (r == 0)
		rate_add(&s->rate_out, s->now);
	return r;
}

static int
go_reported(struct send *s, struct message *m)
{
	int r = removal_begin(s, m, true);

	if (r == 0)
		rate_add(&s->rate_out, s->now);
	return r;
}

static int
go_nowhere(struct send *s, struct message *m)
{
	found_gone(s, m->inode);
	return 0;
}

/* ---- to another directory: the move, and what follows it in memory ---- */

static void
to_hold(struct send *s UNUSED, const struct message *m UNUSED, struct move *mv)
{
	mv->t.to = SPOOL_HOLD;
	mv->t.clear_after = SPOOL_DIR_BIT(SPOOL_DEFER);
}

static void
in_hold(struct send *s, struct message *m, const struct move *mv UNUSED)
{
	s->walks[WALK_HOLD].count++;
	/* Deliveries may have lasted longer than the hold. */
	s->walks[WALK_HOLD].wanted |= m->held_for;
}

/* Reasons stay: they say why the message was waiting. */
static void
to_rest(struct send *s UNUSED, const struct message *m UNUSED, struct move *mv)
{
	mv->t.to = SPOOL_HOLD;
}

/* The end of its day is on disk before the move. */
static void
to_deleted(struct send *s, const struct message *m UNUSED, struct move *mv)
{
	mv->t.to = SPOOL_DELETED;
	mv->t.due = MOVE_DUE_NEEDED;
	mv->t.due_wall = s->now_wall + ACT_DELETED_TIME;
}

static void
to_corrupt(
    struct send *s UNUSED, const struct message *m UNUSED, struct move *mv)
{
	mv->t.to = SPOOL_CORRUPT;
}

static void
in_corrupt(
    struct send *s, struct message *m UNUSED, const struct move *mv UNUSED)
{
	s->walks[WALK_CORRUPT].count++;
}

static void
to_incoming(
    struct send *s UNUSED, const struct message *m UNUSED, struct move *mv)
{
	mv->t.to = SPOOL_INCOMING;
}

static void
in_incoming(struct send *s, struct message *m, const struct move *mv UNUSED)
{
	accepted_note(&s->accepted, m->inode, m->file.arrival_wall);
	s->want_scan = true;
}

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

/* Without a due time a restart tries early, and that is all. */
static void
to_deferred(struct send *s, const struct message *m, struct move *mv)
{
	usec_t delay = delay_of(s, m);

	mv->t.to = SPOOL_DEFERRED;
	mv->t.due = MOVE_DUE_TRIED;
	mv->t.due_wall = s->now_wall + delay;
	mv->at_mono = s->now + delay;
}

static void
to_due(struct send *s, const struct message *m UNUSED, struct move *mv)
{
	mv->t.to = SPOOL_DEFERRED;
	mv->t.due = MOVE_DUE_NEEDED;
	mv->t.due_wall = s->now_wall;
	mv->at_mono = s->now;
}

static void
to_backlog(struct send *s UNUSED, const struct message *m, struct move *mv)
{
	mv->t.to = SPOOL_DEFERRED;
	mv->at_mono = m->active_mono;
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

struct names {
	char id[QUEUE_ID_SIZE], file[QUEUE_FILE_MAX];
};

static struct names
names_of(const struct message *m)
{
	struct names n = { 0 };

	message_id(m, n.id);
	queue_file_name(m->inode, n.file);
	return n;
}

static void
say(const struct message *m, enum log_level level, const char *name,
    const char *text)
{
	const struct names n = names_of(m);
	const struct log_event event = {
		.level = level,
		.name = name,
		.id = n.id,
		.text = text,
		.plain = true,
	};

	log_write(&event);
}

static void
say_vanished(const struct send *s UNUSED, const struct message *m)
{
	say(m, LOG_WARNING_L, "vanished",
	    "status=removed (the file is gone from the active queue)");
}

/* A message that nobody can be told of says so here. */
static void
say_failed(const struct send *s UNUSED, const struct message *m)
{
	const struct names n = names_of(m);

	if (!m->reported)
		log_message(LOG_WARNING_L, "unreported", n.id,
		    "recipients that failed for good, without a report: %u "
		    "(the message has no sender)",
		    m->failed);
}

static void
say_put_aside(const struct send *s UNUSED, const struct message *m)
{
	say(m, LOG_INFO_L, "held-by-operator", "held by an operator");
}

static void
say_deleted(const struct send *s UNUSED, const struct message *m)
{
	const struct names n = names_of(m);

	if (m->untold)
		log_message(LOG_WARNING_L, "unreported", n.id,
		    "recipients that failed for good, without a report: %u "
		    "(it could not be made now)",
		    m->failed);
	say(m, LOG_INFO_L, "deleted",
	    "deleted by an operator: in deleted/ for a day");
}

static void
say_quarantined(const struct send *s UNUSED, const struct message *m)
{
	const struct names n = names_of(m);

	log_message(LOG_ERROR_L, "quarantined", n.id,
	    "quarantined: %u agents died while delivering it: moved to "
	    "hold/%s",
	    m->deaths, n.file);
}

static void
say_damaged(const struct send *s UNUSED, const struct message *m)
{
	const struct names n = names_of(m);

	if (m->error == -EIO) {
		log_message(LOG_ERROR_L, "damaged", n.id,
		    "ALERT: damaged (%s: %s, for longer than mail is kept): "
		    "moved to corrupt/",
		    m->why == NULL ? "cannot be read" : m->why,
		    strerror(-m->error));
		return;
	}
	log_message(LOG_ERROR_L, "damaged", n.id,
	    "ALERT: damaged (%s): moved to corrupt/; `qctl explain "
	    "state=corrupt' says what can be done",
	    m->why == NULL ? strerror(-m->error) : m->why);
}

static void
say_unreadable(const struct send *s UNUSED, const struct message *m)
{
	const struct names n = names_of(m);

	log_message(LOG_ERROR_L, "unreadable", n.id,
	    "cannot be read: %s: deferred", strerror(-m->error));
}

/* ---- fates ---- */

const struct leave leave[NFATES] = {
	/* clang-format off */
	[FATE_DELIVERED]  = { .go = go_away,
	    .for_good = true },
	[FATE_TOLD]       = { .go = go_reported,
	    .for_good = true, .needs_marks = true, .tells = true },
	[FATE_DEFERRED]   = { .to = to_deferred, .in = in_deferred,
	    .needs_marks = true, .tells = true },
	[FATE_FAILED]     = { .go = go_reported, .say = say_failed,
	    .for_good = true, .needs_marks = true, .tells = true },
	[FATE_EVICTED]    = { .to = to_backlog, .in = in_backlog,
	    .needs_marks = true },
	[FATE_ASIDE]      = { .to = to_incoming, .in = in_incoming,
	    .needs_marks = true },
	[FATE_SUSPECT]    = { .to = to_deferred, .in = in_deferred,
	    .needs_marks = true },
	[FATE_REQUEUED]   = { .to = to_due, .in = in_deferred,
	    .needs_marks = true },
	[FATE_HELD]       = { .to = to_rest, .in = in_hold,
	    .say = say_put_aside, .needs_marks = true, .tells = true },
	[FATE_DELETED]    = { .to = to_deleted, .say = say_deleted,
	    .for_good = true, .needs_marks = true, .tells = true },
	[FATE_POISON]     = { .to = to_hold, .in = in_hold,
	    .say = say_quarantined,
	    .for_good = true, .needs_marks = true, .tells = true },
	[FATE_UNREADABLE] = { .to = to_deferred, .in = in_deferred,
	    .say = say_unreadable, .needs_marks = true },
	[FATE_DAMAGED]    = { .to = to_corrupt, .in = in_corrupt,
	    .say = say_damaged, .needs_marks = true },
	[FATE_REPLACED]   = { .to = to_incoming, .in = in_incoming },
	[FATE_VANISHED]   = { .go = go_nowhere, .say = say_vanished },
	/* clang-format on */
};
