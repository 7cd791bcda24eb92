#include "queue-send/message/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/io.h"
#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/rules/rules.h"
#include "spool/reason.h"

#define TAKEN_PER_TURN 50

void
active_forget(struct send *s, struct message *m)
{
	s->active--;
	ages_remove(&s->ages, m->second, s->now_wall);
	claims_leave(s, m);
	messages_drop(&s->messages, m);
	s->pub.changed = true;
}

/* Rows of unknown transports are skipped: todo-proc may have read another
 * configuration. */
static int
tell_census(struct message *m, const char *census, size_t len)
{
	const char *row = census, *end = census + len;
	int r;

	for (; end - row >= MSG_CENSUS_ROW; row += MSG_CENSUS_ROW) {
		r = sched_message_expect(
		    m->sched, bytes_get_u32(row), bytes_get_u32(row + 12));
		if (r < 0 && r != -EINVAL)
			return r;
	}
	return 0;
}

static void
log_active(const struct message *m)
{
	char id[QUEUE_ID_SIZE];
	const struct log_field fields[] = {
		LOG_ADDR("from", m->sender),
		LOG_INT("size", m->file.content_len),
		LOG_INT("nrcpt", m->pending),
	};
	const struct log_event event = {
		.level = LOG_INFO_L,
		.name = "active",
		.id = id,
		.fields = fields,
		.nfields = ARRAY_LEN(fields),
		.text = "queue active",
	};

	message_id(m, id);
	log_write(&event);
}

/* Read the trailer, and compare it with the offer: the name may by now be that
 * of another message, since inode numbers are reused. */
static int
read_trailer(struct send *s, struct message *m, bool fresh)
{
	struct queue_file file;
	int fd = disk_open_to_read(s, m), r;

	if (fd < 0)
		return fd;
	r = queue_file_read(fd, &file);
	if (r == 0 && !message_is(m, file.arrival_wall, file.nonce)) {
		message_decide(m, FATE_REPLACED);
	} else if (r == 0) {
		message_set_file(m, &file);
		if (fresh)
			accepted_log(s, m->inode, fd, &file, m->sender);
	}
	if (fd != m->fd)
		io_close(&fd);
	return r;
}

/* The offer has all that the file would say. */
static void
log_offer(
    struct send *s, const struct message *m, const struct message_offer *offer)
{
	const char *message_id = offer->bytes + offer->census_len +
	    offer->names_len + offer->rcpts_len;
	struct queue_file file = m->file;

	file.uid = offer->uid;
	accepted_log_known(s, m->inode, &file, m->sender, message_id);
}

/* By the offer or by its file, and announce it to the scheduler. */
static int
enter(struct send *s, struct message *m, const struct message_offer *offer,
    bool known, bool fresh)
{
	int r = 0;

	if (known) {
		messages_keep_rcpts(&s->messages, m, offer);
		log_offer(s, m, offer);
	} else {
		r = read_trailer(s, m, fresh);
	}
	if (r < 0 || m->fate != FATE_OPEN)
		return r;
	r = sched_message_new(s->sched, m, s->now, &m->sched);
	if (r < 0)
		return r;
	if (m->verp)
		sched_message_single(m->sched);
	return tell_census(m, offer->bytes, offer->census_len);
}

/* Of a message in its first attempt nothing was written: reasons of others go
 * before its own come. It may have been parked. */
static bool
is_first(struct send *s, const struct message *m)
{
	return m->pending == m->file.rcpt_count &&
	    m->file.queue == s->sp.queue &&
	    m->file.arrival_wall >= s->began_wall &&
	    !accepted_is_noted(&s->accepted, m->inode, m->file.arrival_wall) &&
	    (message_dir(m) == SPOOL_INCOMING ||
		due_is_untouched(&s->due, m->inode));
}

static void
take_marks(struct message *m, int marks)
{
	m->expires = marks > 0 && (marks & REASON_GIVEN_UP) != 0;
	m->released = marks > 0 && (marks & REASON_RELEASED) != 0;
	/* Marks that cannot be read may say it: no warning by this attempt. */
	/* An operator's decision that a stop or a crash came before. */
	m->decided = marks > 0 && (marks & REASON_DECIDED) != 0;
	if (m->decided)
		message_decide(m,
		    (marks & REASON_TO_HOLD) != 0 ? FATE_HELD : FATE_DELETED);
	m->warned = marks < 0 ? marks != -ENOENT : (marks & REASON_WARNED) != 0;
}

/* The name that was moved is that of the message that was offered: no other
 * file has its inode while the one of the offer is open, or in memory.
 * Elsewhere the name may by now be that of another message. */
static bool
is_as_offered(const struct send *s, const struct message *m)
{
	return m->file.version > 0 && (s->in_memory || m->fd >= 0);
}

/* A file that came with the offer, or that the move has opened, rests as any.
 * Another one is opened here, where what is wrong with it is found. */
static void
take_file(struct send *s, struct message *m, struct move *mv)
{
	if (mv->t.fd >= 0) {
		m->fd = mv->t.fd;
		mv->t.fd = -1;
	}
	messages_rest(&s->messages, m, s->now);
}

/* The file that came with the offer stays open until the move has ended. */
static void
move_offered(struct send *s, struct message *m, struct move *mv)
{
	messages_use(&s->messages, m);
	move_begin(s, m, mv);
}

/* From here on finish.c says where a message goes that cannot be delivered. */
static void
start(struct send *s, struct message *m)
{
	if (m->fate != FATE_OPEN) {
		messages_put(&s->messages, m, STATE_FINISHED);
		send_wake(s);
		return;
	}
	log_active(m);
	messages_put(&s->messages, m, STATE_READING);
	recipients_read_few(s, m);
}

/* A message that comes from incoming/, or that was parked since. */
static bool
was_never_tried(const struct send *s, const struct message *m)
{
	const struct due *d = due_find(&s->due, m->inode);

	return message_dir(m) == SPOOL_INCOMING || (d != NULL && d->untried);
}

/* The message is in active/; from here on finish.c says where it goes. */
static void
begin(struct send *s, struct message *m, struct move *mv)
{
	struct due *d = due_find(&s->due, m->inode);
	const bool fresh = message_dir(m) == SPOOL_INCOMING;
	/* A message that was tried may have been marked since. */
	const bool known = !mv->t.look && is_as_offered(s, m);
	struct message_offer *offer;

	m->deaths = d == NULL ? 0 : (uint8_t)d->deaths;
	m->owed = d != NULL && d->owed;
	m->untried = was_never_tried(s, m);
	if (m->backlog == NULL)
		share_admit(s, m);
	deferred_forget(s, m->inode);
	m->first = !mv->t.look;
	if (!m->first)
		take_marks(m, mv->t.marks);
	take_file(s, m, mv);
	offer = messages_activate(&s->messages, m, s->now);
	s->active++;
	m->second = ages_add(&s->ages, m->file.arrival_wall, s->now_wall);
	s->pub.changed = true;
	message_fail(m, enter(s, m, offer, known, fresh));
	free(offer);
	start(s, m);
}

/* An offer that a queue takes no more holds up nothing: the file lies where it
 * lay. */
static void
put_back(struct send *s, struct message *m)
{
	if (send_is_evacuating(s)) {
		messages_drop(&s->messages, m);
		return;
	}
	messages_rest(&s->messages, m, s->now);
	messages_put(&s->messages, m,
	    message_dir(m) == SPOOL_INCOMING ? STATE_OFFERED_INCOMING
					     : STATE_OFFERED_DEFERRED);
}

/* The place of a file that was refused; NULL: the file was not. */
static uint64_t *
find_refused(struct send *s, uint64_t inode)
{
	size_t i;

	for (i = 0; i < REFUSED_FILES; i++)
		if (s->refused.inode[i] == inode)
			return &s->refused.inode[i];
	return NULL;
}

/* The inode number may come again with another file. */
static void
forget_refused(struct send *s, uint64_t inode)
{
	uint64_t *place = find_refused(s, inode);

	if (place != NULL)
		*place = 0;
}

/* The move failed, maybe for this message alone: todo-proc offers all that lies
 * in incoming/ again after a while. A few files that are refused again and
 * again are not a disk that fails. */
static void
refused_alone(struct send *s, const struct message *m, int error)
{
	const usec_t at = s->now + s->conf->error_interval;
	struct refused_files *f = &s->refused;

	if (find_refused(s, m->inode) != NULL) {
		disk_write_failed_again(s, m, "move to active", error);
	} else {
		disk_write_failed(s, m, "move to active", error);
		f->inode[f->next++ % REFUSED_FILES] = m->inode;
	}
	if (message_dir(m) == SPOOL_INCOMING && at < s->refused_at)
		s->refused_at = at;
}

/* The move failed, for this message alone or for any. */
static void
refused(struct send *s, struct message *m, int error)
{
	struct due *d = due_find(&s->due, m->inode);

	share_hold(s, m, NULL);
	if (health_is_general(error)) {
		disk_write_failed(s, m, "move to active", error);
		s->admission_blocked_until = s->now + s->conf->error_interval;
		put_back(s, m);
		return;
	}
	if (error == -ENOENT) {
		forget_refused(s, m->inode);
		/* A message that was offered twice, and parked, stays
		 * parked. */
		if (message_dir(m) != SPOOL_INCOMING)
			deferred_forget(s, m->inode);
		else if (d != NULL && d->asked) /* the answer met this offer */
			share_unask(s, d, s->now);
		found_gone(s, m->inode);
	} else {
		refused_alone(s, m, error);
		if (d != NULL && d->asked)
			share_unask(s, d, s->now + s->conf->error_interval);
	}
	messages_drop(&s->messages, m);
}

static void
count_new(struct send *s)
{
	s->counters.accepted++;
	rate_add(&s->rate_in, s->now);
}

/* ---- to active/ ---- */

static void
entered(struct send *s, struct message *m, struct move *mv)
{
	if (mv->t.task.error < 0) {
		refused(s, m, mv->t.task.error);
		return;
	}
	forget_refused(s, m->inode);
	if (message_dir(m) == SPOOL_INCOMING)
		count_new(s);
	begin(s, m, mv);
	if (send_is_evacuating(s)) /* that began meanwhile */
		settle_aside(s, m);
}

static void
enter_active(struct send *s, struct message *m)
{
	struct move mv = {
		.ended = entered,
		.t = { .to = SPOOL_ACTIVE,
		    .look = !is_first(s, m),
		    .clear_unmarked = m->pending == m->file.rcpt_count,
		    .open = disk_has_threads(s, DISK_MOVE) && m->fd < 0 },
	};

	/* A message that was asked for counts there until it has come. */
	if (!share_is_turn(s, m))
		share_admit(s, m);
	move_offered(s, m, &mv);
}

/* ---- to deferred/ ---- */

/* The place in the backlog is by its arrival, or by when it was due. The
 * destination may have room by now: then the message is due. */
static void
park(struct send *s, struct message *m)
{
	struct backlog *b = share_judge(s, m);

	if (b != NULL)
		share_park(s, b, m->inode);
	messages_drop(&s->messages, m);
}

static void
parked(struct send *s, struct message *m, struct move *mv)
{
	usec_t age = s->now_wall - m->file.arrival_wall;
	const bool first = is_as_offered(s, m) && is_first(s, m);

	if (mv->t.task.error < 0) {
		refused(s, m, mv->t.task.error);
		return;
	}
	forget_refused(s, m->inode);
	count_new(s);
	m->untried = was_never_tried(s, m);
	deferred_add(s, m, s->now - (age > 0 ? age : 0));
	due_set_untouched(&s->due, m->inode, first);
	if (is_as_offered(s, m))
		log_offer(s, m, m->offer);
	else
		accepted_log_parked(s, m->inode, mv->t.fd);
	park(s, m);
}

/* A due time that lies in defer/ would be another message's. */
static void
move_and_park(struct send *s, struct message *m)
{
	struct move mv = {
		.ended = parked,
		.t = { .to = SPOOL_DEFERRED,
		    .clear_after = SPOOL_DIR_BIT(SPOOL_DEFER),
		    .open = disk_has_threads(s, DISK_MOVE) &&
			!is_as_offered(s, m) },
	};

	move_offered(s, m, &mv);
}

static void
active_take(struct send *s, struct message *m)
{
	if (share_judge(s, m) == NULL)
		enter_active(s, m);
	else if (m->state == STATE_OFFERED_INCOMING)
		move_and_park(s, m);
	else
		park(s, m);
}

/* The next message; NULL: none may come now. A removal goes by the inode number
 * alone, so a message waits while an earlier message with its inode number is
 * being removed. */
static struct message *
choose(struct send *s)
{
	const uint32_t *count = s->messages.count;
	const uint32_t waiting[ADMISSION_NSIDES] = {
		[ADMISSION_INCOMING] = count[STATE_OFFERED_INCOMING],
		[ADMISSION_DEFERRED] = count[STATE_OFFERED_DEFERRED],
	};
	struct message *m;
	int side;

	if (s->active + count[STATE_ENTERING_INCOMING] +
		    count[STATE_ENTERING_DEFERRED] >=
		s->conf->sched.message_active_limit ||
	    removal_is_full(s))
		return NULL;
	side = admission_choose(&s->admission, waiting);
	if (side < 0)
		return NULL;
	m = messages_first(
	    &s->messages, (enum message_state)(STATE_OFFERED_INCOMING + side));
	return removal_is_under_way(s, m->inode) ? NULL : m;
}

usec_t
active_work(struct send *s)
{
	struct message *m;
	int n;

	if (s->stopping || send_is_evacuating(s))
		return USEC_NEVER;
	if (s->now < rules_wait(s))
		return rules_wait(s);
	for (n = 0; n < TAKEN_PER_TURN; n++) {
		if (s->now < s->admission_blocked_until)
			return s->admission_blocked_until;
		m = choose(s);
		if (m == NULL)
			return USEC_NEVER;
		active_take(s, m);
	}
	return s->now;
}
