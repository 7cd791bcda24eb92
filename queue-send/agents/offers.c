#include "queue-send/agents/own.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/header.h"
#include "base/io.h"
#include "ipc/wire.h"
#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/message/path.h"
#include "queue-send/disk/act_task.h"

#define SCAN_EVERY    USEC_PER_SEC
#define PREPARE_WAIT  USEC_PER_SEC /* after the link did not take one */
#define SUSPECT_WAIT  USEC_PER_SEC
#define HELD_PER_TURN 1000 /* due, and parked in their backlogs */

/* ---- in ---- */

/* None of them is marked. */
static bool
rcpts_are_right(
    struct send *s, const struct msg_MESSAGE *f, const struct queue_file *file)
{
	struct queue_rcpt rcpt;
	int r;

	if (f->rcpts.len == 0)
		return true;
	if (f->rcpts.len != f->rcpt_len || f->rcpts.len > MSG_FEW_BYTES ||
	    f->recipients > MSG_FEW_RCPTS || f->pending != f->recipients)
		return false;
	queue_rcpt_begin(&s->cursor, file);
	queue_rcpt_give(
	    &s->cursor, file->rcpt_off, f->rcpts.data, f->rcpts.len);
	do
		r = queue_rcpt_next(&s->cursor, -1, &rcpt);
	while (r == 1 && rcpt.mark == RCPT_PENDING);
	return r == 0;
}

static bool
facts_are_right(struct send *s, const struct msg_MESSAGE *f)
{
	const struct queue_file file = message_told_file(f);

	if (f->version == 0)
		return f->rcpts.len == 0 && f->message_id.len == 0;
	return f->dir == SPOOL_INCOMING && queue_file_is_possible(&file) &&
	    f->message_id.len < HEADER_MESSAGE_ID_MAX &&
	    rcpts_are_right(s, f, &file);
}

static bool
is_right(struct send *s, const struct msg_MESSAGE *f)
{
	bool deferred = f->dir == SPOOL_DEFERRED;

	return (deferred ||
		   (f->dir == SPOOL_INCOMING && s->links->credit > 0)) &&
	    f->inode > 0 && f->queue <= QUEUE_NUM_MAX && f->arrival_wall >= 0 &&
	    f->arrival_wall <= QUEUE_ID_ARRIVAL_MAX &&
	    f->sender.len <= ADDRESS_MAX &&
	    f->census.len % MSG_CENSUS_ROW == 0 &&
	    f->census.len <= CONF_TRANSPORTS_MAX * MSG_CENSUS_ROW &&
	    share_names_are_right(&f->destinations) && facts_are_right(s, f);
}

/* False: the message is known. An offer of another message with its inode means
 * that the file of the known one is gone, since inode numbers are reused. */
static bool
is_new(struct send *s, const struct msg_MESSAGE *f)
{
	struct message *m = messages_find(&s->messages, f->inode);
	char id[QUEUE_ID_SIZE];

	if (m == NULL)
		return true;
	if (message_is(m, f->arrival_wall, f->nonce))
		return false;
	/* The file of this offer lies in active/, and goes back first. */
	if (message_is_active(m) && m->fate == FATE_REPLACED) {
		s->want_scan = true;
		return false;
	}
	if (m->state == STATE_OFFERED_INCOMING ||
	    m->state == STATE_OFFERED_DEFERRED) {
		messages_drop(&s->messages, m);
		return true;
	}
	if (move_is_under_way(m)) { /* the end of that says what lies there */
		s->want_scan = true;
		return false;
	}
	if (m->fd >= 0 &&
	    m->rested_at == 0) /* in use, so no other has its inode */
		return false;
	/* Deliveries end first; results are not recorded yet; a thread opens
	 * the file. */
	if ((m->sched != NULL && sched_message_running(m->sched) > 0) ||
	    m->nunrecorded > 0 || m->fetching) {
		s->want_scan = true;
		return false;
	}
	message_id(m, id);
	log_message(LOG_WARNING_L, "vanished", id,
	    "status=removed (another message has its inode)");
	active_forget(s, m);
	return true;
}

/* The descriptor is one of a file of that inode, or the frame is wrong. A file
 * that is no queue file any more is opened by its name, which finds out why. */
static bool
descriptor_is_right(const struct send *s, const struct msg_MESSAGE *f, int *fd)
{
	struct stat st;

	if (*fd < 0)
		return true;
	if (f->version == 0 || fstat(*fd, &st) < 0 ||
	    (uint64_t)st.st_ino != f->inode)
		return false;
	if (spool_judge_file(&s->sp, f->inode, &st) < 0 ||
	    (uint64_t)st.st_size != f->size)
		io_close(fd);
	return true;
}

/* The file rests as any other. */
static void
take_descriptor(struct send *s, struct message *m, int *fd)
{
	m->fd = *fd;
	*fd = -1;
	messages_rest(&s->messages, m, s->now);
}

int
offers_on_message(struct send *s, const struct msg_MESSAGE *f, int *fd)
{
	struct due *d = due_find(&s->due, f->inode);
	struct message *m;

	if (!is_right(s, f) || !descriptor_is_right(s, f, fd))
		return -EBADMSG;
	if (f->dir == SPOOL_INCOMING)
		s->links->credit--;
	else if (d == NULL || !d->asked)
		return 0; /* not asked for, or not any more */
	send_wake(s);
	if (act_meets_offer(s, f->inode)) {
		/* The scan after the act finds no deferred message. */
		if (f->dir == SPOOL_DEFERRED)
			share_unask(s, d, s->now + SUSPECT_WAIT);
		return 0;
	}
	if (send_is_evacuating(s) || !is_new(s, f))
		return 0;
	m = messages_add(&s->messages, f);
	if (m != NULL) {
		take_descriptor(s, m, fd);
	} else if (f->dir == SPOOL_INCOMING) {
		s->want_scan = true;
	} else {
		share_unask(s, d, s->now + s->retry.minimal);
	}
	return 0;
}

int
offers_on_gone(struct send *s, const struct msg_GONE *f)
{
	struct due *d = due_find(&s->due, f->inode);
	struct message *m = messages_find(&s->messages, f->inode);

	if (d == NULL || !d->asked || m != NULL)
		return 0;
	switch (-f->error) {
	case ENOENT:
		found_gone(s, f->inode);
		deferred_forget(s, f->inode);
		break;
	case EBADMSG: /* moved to corrupt/ */
	case EPERM:
		deferred_forget(s, f->inode);
		break;
	case EIO:
		share_unask(s, d, s->now + s->retry.minimal);
		found_unreadable(s, f->inode);
		break;
	default:
		share_unask(s, d, s->now + s->retry.minimal);
	}
	s->pub.changed = true;
	send_wake(s);
	return 0;
}

int
offers_on_counts(struct send *s, const struct msg_COUNTS *f)
{
	if (f->corrupt != s->todo_counts.corrupt)
		s->walks[WALK_CORRUPT].wanted = true;
	s->todo_counts = *f;
	s->pub.changed = true;
	send_wake(s);
	return 0;
}

/* Messages that are on their way to active/ were answered for, and stay. */
static void
unask_all(struct send *s)
{
	const struct message *m;
	struct due *d;

	due_unask_all(&s->due, s->now);
	TAILQ_FOREACH (m, &s->messages.list[STATE_ENTERING_DEFERRED], on) {
		d = due_find(&s->due, m->inode);
		if (d != NULL)
			due_ask_again(&s->due, d);
	}
}

void
offers_drop(struct send *s)
{
	enum message_state state;
	struct message *m;

	for (state = STATE_OFFERED_INCOMING; state <= STATE_OFFERED_DEFERRED;
	     state++)
		while ((m = messages_first(&s->messages, state)) != NULL)
			messages_drop(&s->messages, m);
	unask_all(s);
	share_all_changed(s);
}

void
offers_reset(struct send *s)
{
	offers_drop(s);
	s->links->credit = 0;
}

/* ---- out ---- */

static int
put(struct send *s, const struct msg *msg)
{
	int r = wire_send(s->links->todo, msg, -1);

	/* links.c hears of the end of the link (-EPIPE). */
	if (r < 0 && r != -EPIPE &&
	    log_due(s->now, USEC_PER_SEC, &s->said_offer))
		log_warning("%s to todo-proc: not sent", msg_name(msg->type));
	return r;
}

/* todo-proc offers a message once, until it is asked for a scan. */
static usec_t
ask_for_scan(struct send *s)
{
	if (s->now >= s->refused_at) {
		s->refused_at = USEC_NEVER;
		s->want_scan = true;
	}
	if (!s->want_scan)
		return s->refused_at;
	if (s->now < s->links->scan_at)
		return s->links->scan_at;
	s->links->scan_at = s->now + SCAN_EVERY;
	s->want_scan = put(s, &(struct msg){ .type = MSG_SCAN }) < 0;
	return s->want_scan ? s->links->scan_at : s->refused_at;
}

static void
give_credit(struct send *s, uint32_t window)
{
	const uint32_t *count = s->messages.count;
	uint32_t n = admission_grant(window, s->links->credit,
	    count[STATE_OFFERED_INCOMING] + count[STATE_ENTERING_INCOMING]);

	if (n > 0 &&
	    put(s,
		&(struct msg){
		    .type = MSG_CREDIT, .u.CREDIT = { .messages = n } }) == 0)
		s->links->credit += n;
}

uint64_t
offers_suspect(const struct send *s)
{
	return s->links->suspect;
}

/* Is the last suspect still on its way, offered or in the active queue? */
static bool
has_suspect(struct send *s)
{
	const struct due *d = due_find(&s->due, s->links->suspect);

	return (d != NULL && d->asked) ||
	    messages_find(&s->messages, s->links->suspect) != NULL;
}

/* One suspect at a time is in the active queue; others are due again later. So
 * is a message that an operator acts on. */
static bool
must_wait(struct send *s, struct due *d)
{
	if (act_is_under_way(s, d->inode)) {
		share_unask(s, d, s->now + SUSPECT_WAIT);
		return true;
	}
	if (d->deaths < RETRY_SUSPECT_DEATHS)
		return false;
	/* d is asked for by now, and may be the last suspect itself. */
	if (s->links->suspect != d->inode && has_suspect(s)) {
		share_unask(s, d, s->now + SUSPECT_WAIT);
		return true;
	}
	s->links->suspect = d->inode;
	return false;
}

/* The next by its due time. Messages whose destination has its share are parked
 * on the way, a bounded number in a turn. */
static struct due *
next_by_time(struct send *s, uint32_t *held)
{
	struct due *d;

	while (
	    *held < HELD_PER_TURN && (d = due_ask(&s->due, s->now)) != NULL) {
		if (!share_holds_back(s, d))
			return d;
		++*held;
	}
	return NULL;
}

/* Parked messages and messages that are due take turns. */
static struct due *
next_due(struct send *s, uint32_t *held)
{
	bool first = s->links->parked_turn;
	struct due *d = first ? share_ask(s) : next_by_time(s, held);

	s->links->parked_turn = !first;
	if (d == NULL && first)
		d = next_by_time(s, held);
	/* A message that was parked on the way may have room by now. */
	return d != NULL ? d : share_ask(s);
}

static usec_t
ask_for_due(struct send *s, uint32_t window)
{
	struct due *d;
	struct msg msg = { .type = MSG_PREPARE };
	uint32_t held = 0;
	usec_t at;

	while (s->due.asked < window) {
		d = next_due(s, &held);
		if (d == NULL) {
			at = share_next(s);
			return at < due_next(&s->due) ? at : due_next(&s->due);
		}
		if (must_wait(s, d))
			continue;
		msg.u.PREPARE.inode = d->inode;
		if (put(s, &msg) == 0)
			continue;
		share_unask(s, d, s->now + PREPARE_WAIT);
		return s->now + PREPARE_WAIT;
	}
	return USEC_NEVER;
}

usec_t
offers_work(struct send *s)
{
	uint32_t window = admission_window(s->conf->sched.message_active_limit);
	usec_t scan, due;

	if (s->links->todo == NULL || s->stopping || send_is_evacuating(s))
		return USEC_NEVER;
	scan = ask_for_scan(s);
	give_credit(s, window);
	due = ask_for_due(s, window);
	return scan < due ? scan : due;
}
