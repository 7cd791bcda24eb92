#include "queue-send/finish.h"

#include <bsd/stdlib.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "log/log.h"
#include "queue-send/active.h"
#include "queue-send/deferred.h"
#include "queue-send/evacuate.h"
#include "queue-send/share.h"
#include "queue-send/sync.h"
#include "spool/reason.h"

#define FINISHED_PER_TURN 50

static void
say(const struct message *m, enum log_level level, const char *name,
    const char *text)
{
	char id[QUEUE_ID_SIZE];
	const struct log_event event = {
		.level = level,
		.name = name,
		.id = id,
		.text = text,
		.plain = true,
	};

	message_id(m, id);
	log_write(&event);
}

void
finish_count_error(struct send *s, enum health_write kind, int error)
{
	if (!health_failed(&s->health, kind, error, s->now))
		return;
	log_error("%s: %s: no delivery starts until marks can be written",
	    s->sp.path, strerror(-error));
	send_wake(s);
}

static void
write_failed(struct send *s, const struct message *m, const char *what,
    enum health_write kind, int error)
{
	char id[QUEUE_ID_SIZE];

	message_id(m, id);
	s->pub.changed = true;
	if (log_due(s->now, USEC_PER_SEC, &s->said_io))
		log_error("%s: cannot %s: %s", id, what, strerror(-error));
	finish_count_error(s, kind, error);
}

void
finish_mark_failed(
    struct send *s, const struct message *m, const char *what, int error)
{
	write_failed(s, m, what, HEALTH_MARK, error);
}

void
finish_write_failed(
    struct send *s, const struct message *m, const char *what, int error)
{
	write_failed(s, m, what, HEALTH_OTHER, error);
}

void
finish_clear_reasons(struct send *s, uint64_t inode)
{
	if (spool_has(&s->sp, inode))
		return;
	reason_clear(&s->sp, SPOOL_DEFER, inode);
	reason_clear(&s->sp, SPOOL_BOUNCE, inode);
}

static int
remove_message(struct send *s, struct message *m)
{
	int r;

	/* First the reasons: a new message may get the inode number (D22). */
	r = reason_clear(&s->sp, SPOOL_DEFER, m->inode);
	if (r == 0)
		r = reason_clear(&s->sp, SPOOL_BOUNCE, m->inode);
	if (r == 0)
		r = spool_remove(&s->sp, SPOOL_ACTIVE, m->inode);
	if (r < 0)
		return r;
	sync_changed(s);
	s->counters.finished++;
	rate_add(&s->rate_out, s->now);
	say(m, LOG_INFO_L, "removed", "removed");
	return 0;
}

static int
vanished(struct send *s, struct message *m)
{
	finish_clear_reasons(s, m->inode);
	say(m, LOG_WARNING_L, "vanished",
	    "status=removed (the file is gone from the active queue)");
	return 0;
}

static int
hold(struct send *s, struct message *m)
{
	char id[QUEUE_ID_SIZE], name[QUEUE_FILE_MAX];
	int r = spool_move(&s->sp, SPOOL_ACTIVE, SPOOL_HOLD, m->inode);

	if (r < 0)
		return r;
	reason_clear(&s->sp, SPOOL_DEFER, m->inode);
	s->walks[WALK_HOLD].count++;
	s->counters.finished++;
	message_id(m, id);
	queue_file_name(m->inode, name);
	log_warning("%s: held: recipients that failed for good: %u, the "
		    "reasons are in bounce/%u/%s",
	    id, m->failed, (uint32_t)(m->inode % s->sp.split), name);
	return 0;
}

/* P15, C7: its recipients stay pending, for whoever finds out why. */
static int
quarantine(struct send *s, struct message *m)
{
	char id[QUEUE_ID_SIZE], name[QUEUE_FILE_MAX];
	int r = spool_move(&s->sp, SPOOL_ACTIVE, SPOOL_HOLD, m->inode);

	if (r < 0)
		return r;
	reason_clear(&s->sp, SPOOL_DEFER, m->inode);
	s->walks[WALK_HOLD].count++;
	s->counters.finished++;
	message_id(m, id);
	queue_file_name(m->inode, name);
	log_error("%s: quarantined: %u agents died while delivering it: moved "
		  "to hold/%s",
	    id, m->deaths, name);
	return 0;
}

static int
corrupt(struct send *s, struct message *m)
{
	char id[QUEUE_ID_SIZE], name[QUEUE_FILE_MAX];
	int r;

	queue_file_name(m->inode, name);
	r = spool_move_corrupt(
	    &s->sp, SPOOL_ACTIVE, (uint32_t)(m->inode % s->sp.split), name);
	if (r < 0)
		return r;
	s->walks[WALK_CORRUPT].count++;
	message_id(m, id);
	log_error("%s: damaged (%s): moved to corrupt/", id,
	    m->why == NULL ? strerror(-m->error) : m->why);
	return 0;
}

/* What was moved here under a name of our message is another one (D22): back,
 * to be prepared as itself. */
static int
give_back(struct send *s, struct message *m)
{
	int r = spool_move(&s->sp, SPOOL_ACTIVE, SPOOL_INCOMING, m->inode);

	if (r == 0)
		s->want_scan = true;
	return r;
}

/* It stays in active/ for evacuate.c, or it is to be prepared again. */
static int
put_aside(struct send *s, struct message *m)
{
	return send_is_evacuating(s) ? 0 : give_back(s, m);
}

static usec_t
delay_of(struct send *s, const struct message *m)
{
	usec_t age = jumps_age(&s->jumps, m->file.arrival_wall, s->now_wall);
	usec_t soon;
	usec_t delay = retry_delay(&s->retry, age, arc4random());

	if (!m->agent_died)
		return delay;
	soon = retry_agent_delay(&s->retry, m->deaths);
	return soon < delay ? soon : delay;
}

static int
defer(struct send *s, struct message *m)
{
	usec_t delay = delay_of(s, m);
	char id[QUEUE_ID_SIZE];
	int r = spool_set_due(&s->sp, m->inode, s->now_wall + delay);

	/* Without it a restart tries early; the message counts more. */
	if (r < 0 && r != -ENOENT)
		finish_write_failed(s, m, "write the due time", r);
	r = spool_move(&s->sp, SPOOL_ACTIVE, SPOOL_DEFERRED, m->inode);
	if (r < 0)
		return r;
	if (m->error != 0 && m->error != -ECONNABORTED && !m->evicted) {
		message_id(m, id);
		log_error("%s: cannot be read: %s: deferred", id,
		    strerror(-m->error));
	}
	deferred_add(s, m, s->now + delay);
	return 0;
}

/* All that is left of it waits for destinations that have their share: in line
 * for one of them, if nothing of it has failed yet. */
static int
evict(struct send *s, struct message *m)
{
	int r;

	if (m->deferred > 0)
		return defer(s, m);
	r = spool_move(&s->sp, SPOOL_ACTIVE, SPOOL_DEFERRED, m->inode);
	if (r < 0)
		return r;
	deferred_add(s, m, m->active_mono);
	share_park(s, m->backlog, m->inode);
	return 0;
}

static int
leave(struct send *s, struct message *m)
{
	switch (-m->error) {
	case 0:
		break;
	case ENOENT:
		return vanished(s, m);
	case ESTALE:
		return give_back(s, m);
	case ECONNABORTED: /* a suspect */
		return defer(s, m);
	case EOWNERDEAD:
		return quarantine(s, m);
	case ECANCELED:
		return m->evicted && !send_is_evacuating(s) ? evict(s, m)
							    : put_aside(s, m);
	case EBADMSG:
	case EPERM:
		return corrupt(s, m);
	default:
		return defer(s, m);
	}
	if (m->deferred > 0)
		return defer(s, m);
	return m->failed > 0 ? hold(s, m) : remove_message(s, m);
}

/* A file that is removed takes its marks along; one that is not the message's
 * has none of it. Every other move may be on disk before the marks are. */
static bool
waits_for_sync(const struct send *s, const struct message *m)
{
	bool removed = m->error == 0 && m->deferred == 0 && m->failed == 0;

	return !removed && m->error != -ENOENT && m->error != -ESTALE &&
	    sync_is_wanting(s, m);
}

/* False: nothing can be moved now. One that alone cannot be holds up no other.
 */
static bool
finish_one(struct send *s, struct message *m)
{
	int r;

	if (waits_for_sync(s, m)) {
		messages_put(&s->messages, m, LIST_UNSYNCED);
		return true;
	}
	r = leave(s, m);
	if (r == -ENOENT)
		r = vanished(s, m);
	if (r == 0) {
		active_forget(s, m);
		return true;
	}
	finish_write_failed(s, m, "move out of active", r);
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
