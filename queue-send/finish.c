#include "queue-send/road.h"

#include <bsd/stdlib.h>
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "queue-send/backlog.h"
#include "spool/act.h"
#include "spool/reason.h"

#define FINISHED_PER_TURN 50

/* ---- where its file goes ---- */

static int
go_away(struct send *s, struct message *m)
{
	int r = removal_begin(s, m, false);

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
	reasons_clear(s, m->inode);
	return 0;
}

static int
go_to_hold(struct send *s, struct message *m)
{
	int r = spool_move(&s->sp, SPOOL_ACTIVE, SPOOL_HOLD, m->inode);

	if (r < 0)
		return r;
	reason_clear(&s->sp, SPOOL_DEFER, m->inode);
	s->walks[WALK_HOLD].count++;
	return 0;
}

/* Reasons stay: they say why the message was waiting. */
static int
go_to_rest(struct send *s, struct message *m)
{
	int r = spool_move(&s->sp, SPOOL_ACTIVE, SPOOL_HOLD, m->inode);

	if (r < 0)
		return r;
	s->walks[WALK_HOLD].count++;
	/* Deliveries may have lasted longer than the hold. */
	s->walks[WALK_HOLD].wanted |= m->held_for;
	return 0;
}

/* The end of its day is on disk before the move. */
static int
go_to_deleted(struct send *s, struct message *m)
{
	int r = spool_set_due(&s->sp, m->inode, s->now_wall + ACT_DELETED_TIME);

	return r < 0
	    ? r
	    : spool_move(&s->sp, SPOOL_ACTIVE, SPOOL_DELETED, m->inode);
}

static int
go_to_corrupt(struct send *s, struct message *m)
{
	char name[QUEUE_FILE_MAX];
	int r;

	queue_file_name(m->inode, name);
	r = spool_move_corrupt(
	    &s->sp, SPOOL_ACTIVE, (uint32_t)(m->inode % s->sp.split), name);
	if (r == 0)
		s->walks[WALK_CORRUPT].count++;
	return r;
}

static int
go_back(struct send *s, struct message *m)
{
	int r = spool_move(&s->sp, SPOOL_ACTIVE, SPOOL_INCOMING, m->inode);

	if (r < 0)
		return r;
	accepted_note(&s->accepted, m->inode, m->file.arrival_wall);
	s->want_scan = true;
	return 0;
}

/* While the mail of the queue is moved to others, evacuate.c takes it from
 * active/. */
static int
go_aside(struct send *s, struct message *m)
{
	return send_is_evacuating(s) ? 0 : go_back(s, m);
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

static int
go_to_deferred(struct send *s, struct message *m)
{
	usec_t delay = delay_of(s, m);
	int r = spool_set_due(&s->sp, m->inode, s->now_wall + delay);

	/* Without a due time a restart tries early, and that is all. */
	if (r < 0 && r != -ENOENT)
		disk_write_failed(s, m, "write the due time", r);
	r = spool_move(&s->sp, SPOOL_ACTIVE, SPOOL_DEFERRED, m->inode);
	if (r == 0)
		deferred_add(s, m, s->now + delay);
	return r;
}

static int
go_to_due(struct send *s, struct message *m)
{
	int r = spool_set_due(&s->sp, m->inode, s->now_wall);

	if (r == 0)
		r = spool_move(&s->sp, SPOOL_ACTIVE, SPOOL_DEFERRED, m->inode);
	if (r == 0)
		deferred_add(s, m, s->now);
	return r;
}

static int
go_to_backlog(struct send *s, struct message *m)
{
	int r = spool_move(&s->sp, SPOOL_ACTIVE, SPOOL_DEFERRED, m->inode);

	if (r < 0)
		return r;
	deferred_add(s, m, m->active_mono);
	share_park(s, m->backlog, m->inode);
	return 0;
}

/* ---- lines of the log ---- */

struct names {
	char id[QUEUE_ID_SIZE], file[QUEUE_FILE_MAX];
};

static struct names
names_of(const struct message *m)
{
	struct names n;

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
		    "damaged (%s: %s, for longer than mail is kept): moved to "
		    "corrupt/",
		    m->why == NULL ? "cannot be read" : m->why,
		    strerror(-m->error));
		return;
	}
	log_message(LOG_ERROR_L, "damaged", n.id,
	    "damaged (%s): moved to corrupt/",
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

/* needs_marks: the marks are on disk before the file moves, since a power cut
 * may keep the move and lose them. A file that is removed takes its marks
 * along; one that is gone or another message's has none of this one.
 * tells: failures are reported before it moves. Where it does not, the next
 * attempt is soon and tells of them, or nothing can be told. */
static const struct {
	int (*go)(struct send *s, struct message *m);
	void (*say)(const struct send *s, const struct message *m);
	bool for_good; /* counted as finished */
	bool needs_marks;
	bool tells;
} leave[NFATES] = {
	/* clang-format off */
	[FATE_DELIVERED]  = { go_away, NULL, true, false, false },
	[FATE_TOLD]       = { go_reported, NULL, true, true, true },
	[FATE_DEFERRED]   = { go_to_deferred, NULL, false, true, true },
	[FATE_FAILED]     = { go_reported, say_failed, true, true, true },
	[FATE_EVICTED]    = { go_to_backlog, NULL, false, true, false },
	[FATE_ASIDE]      = { go_aside, NULL, false, true, false },
	[FATE_SUSPECT]    = { go_to_deferred, NULL, false, true, false },
	[FATE_REQUEUED]   = { go_to_due, NULL, false, true, false },
	[FATE_HELD]       = { go_to_rest, say_put_aside, false, true, true },
	[FATE_DELETED]    = { go_to_deleted, say_deleted, true, true, true },
	[FATE_POISON]     = { go_to_hold, say_quarantined, true, true, true },
	[FATE_UNREADABLE] = { go_to_deferred, say_unreadable, false, true, false },
	[FATE_DAMAGED]    = { go_to_corrupt, say_damaged, false, true, false },
	[FATE_REPLACED]   = { go_back, NULL, false, false, false },
	[FATE_VANISHED]   = { go_nowhere, say_vanished, false, false, false },
	/* clang-format on */
};

static int
leave_as(struct send *s, struct message *m, enum message_fate fate)
{
	int r;

	if (fate != FATE_DELIVERED && fate != FATE_FAILED)
		reasons_settle(s, m);
	r = leave[fate].go(s, m);
	if (r < 0)
		return r;
	s->counters.finished += leave[fate].for_good;
	if (leave[fate].say != NULL)
		leave[fate].say(s, m);
	return 0;
}

/* There is nothing left to hold or to delete: all of it is delivered or has
 * failed. */
static bool
came_too_late(const struct message *m)
{
	return m->fate >= FATE_REQUEUED && m->fate <= FATE_DELETED &&
	    m->settled >= m->pending;
}

bool
message_is_hopeless(const struct send *s, const struct message *m)
{
	const usec_t age =
	    jumps_age(&s->jumps, m->file.arrival_wall, s->now_wall);

	return s->now >= s->expire_after &&
	    retry_is_hopeless(&s->retry, age, m->sender[0] == '\0');
}

/* The recipients decide the fate, unless it was decided before. */
static enum message_fate
fate_of(const struct send *s, const struct message *m)
{
	if (m->fate == FATE_EVICTED && send_is_evacuating(s))
		return FATE_ASIDE;
	if (m->fate == FATE_UNREADABLE && m->error == -EIO &&
	    message_is_hopeless(s, m))
		return FATE_DAMAGED;
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

/* False: nothing can be moved now. A message that alone cannot be moved holds
 * up no other. */
static bool
finish_one(struct send *s, struct message *m)
{
	const enum message_fate fate = fate_of(s, m);
	int r;

	if (leave[fate].needs_marks && sync_is_wanting(s, m)) {
		messages_put(&s->messages, m, LIST_UNSYNCED);
		return true;
	}
	if (is_to_report(s, m, fate)) {
		messages_put(&s->messages, m, LIST_UNREPORTED);
		return true;
	}
	r = leave_as(s, m, fate);
	if (r == -ENOENT)
		r = leave_as(s, m, FATE_VANISHED);
	if (r == 0) {
		active_forget(s, m);
		return true;
	}
	disk_write_failed(s, m, "move out of active", r);
	if (health_is_general(r)) {
		messages_put(&s->messages, m, LIST_FINISHED);
		s->finish_at = s->now + s->conf->error_interval;
		return false;
	}
	if (s->messages.count[LIST_STUCK] == 0)
		s->stuck_at = s->now + s->conf->error_interval;
	messages_put(&s->messages, m, LIST_STUCK);
	return true;
}

static void
try_stuck(struct send *s)
{
	uint32_t n = s->messages.count[LIST_STUCK];

	if (s->now < s->stuck_at)
		return;
	for (; n > 0; n--)
		messages_put(&s->messages,
		    messages_first(&s->messages, LIST_STUCK), LIST_FINISHED);
}

usec_t
finish_work(struct send *s)
{
	struct message *m;
	int n;

	try_stuck(s);
	for (n = 0; n < FINISHED_PER_TURN; n++) {
		m = messages_first(&s->messages, LIST_FINISHED);
		if (s->health.read_only)
			return USEC_NEVER;
		if (m == NULL)
			return s->messages.count[LIST_STUCK] > 0 ? s->stuck_at
								 : USEC_NEVER;
		if (s->now < s->finish_at)
			return s->finish_at;
		if (!finish_one(s, m))
			return s->health.read_only ? USEC_NEVER : s->finish_at;
	}
	return s->now;
}
