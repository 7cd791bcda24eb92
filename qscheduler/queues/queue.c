#include "qscheduler/supervisor/super.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/io.h"
#include "ipc/bell.h"
#include "ipc/names.h"
#include "log/log.h"

/* The disk of a queue that runs is asked so often, and so soon when a process
 * of the queue sleeps in the kernel. */
#define CHECK_EVERY   (20 * USEC_PER_SEC)
#define SUSPECT_AFTER (2 * USEC_PER_SEC)

/* ---- a queue ---- */

/* Not one that processes of an earlier supervisor may have. */
static uint32_t
first_generation(void)
{
	uint32_t number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = (uint32_t)clock_wall();
	return number / 2 + 1;
}

struct queue *
queue_new(struct super *s, uint32_t number, enum queue_state want)
{
	struct queue *q = calloc(1, sizeof(*q));
	int role, r = 0;

	if (q == NULL)
		return NULL;
	q->super = s;
	q->number = number;
	q->want = want;
	q->generation = q->group = first_generation();
	q->page_fd = -1;
	q->bell = -1;
	for (role = 0; role < NROLES && r == 0; role++)
		r = child_init(&q->children[role], q, (enum role)role);
	if (r < 0)
		queue_free(&q);
	return q;
}

struct queue *
queue_find(const struct super *s, uint64_t number)
{
	uint32_t i;

	for (i = 0; i < s->nqueues; i++)
		if (s->queues[i]->number == number)
			return s->queues[i];
	return NULL;
}

int
queue_insert(struct queue *q)
{
	struct super *s = q->super;
	uint32_t i;

	if (s->nqueues == PAGE_QUEUES_MAX)
		return -ENOSPC;
	for (i = s->nqueues; i > 0 && s->queues[i - 1]->number > q->number; i--)
		s->queues[i] = s->queues[i - 1];
	s->queues[i] = q;
	s->nqueues++;
	return 0;
}

void
queue_remove(struct queue *q)
{
	struct super *s = q->super;
	uint32_t i;

	for (i = 0; s->queues[i] != q; i++)
		;
	for (s->nqueues--; i < s->nqueues; i++)
		s->queues[i] = s->queues[i + 1];
	queue_free(&q);
}

void
queue_note_disk(struct super *s, uint32_t number)
{
	s->nqueues_disk += !s->on_disk[number];
	s->on_disk[number] = true;
}

bool
queue_is_usable(const struct queue *q, usec_t now)
{
	return q->retire.step == RETIRE_NO &&
	    queue_state(q, now) == QUEUE_STATE_OPEN;
}

void
queue_free(struct queue **q)
{
	int role;

	for (role = 0; role < NROLES; role++)
		child_done(&(*q)->children[role]);
	objects_close(*q);
	hand_gone(*q);
	free(*q);
	*q = NULL;
}

static void
want_all(struct queue *q, enum proc_event event)
{
	int role;

	for (role = 0; role < NROLES; role++)
		child_event(&q->children[role], event);
}

void
queue_start(struct queue *q)
{
	q->disabled = false;
	q->reason[0] = '\0';
	objects_open(q);
	want_all(q, PROC_EV_WANT_UP);
}

/* Agents end last (queue_progress()), so that queue-send hears of what they
 * deliver. */
static void
leave(struct queue *q)
{
	child_event(&q->children[ROLE_TODO_PROC], PROC_EV_WANT_DOWN);
	child_event(&q->children[ROLE_QUEUE_SEND], PROC_EV_WANT_DOWN);
}

void
queue_disable(struct queue *q, const char *reason)
{
	q->disabled = true;
	snprintf(q->reason, sizeof(q->reason), "%.*s",
	    (int)sizeof(q->reason) - 1, reason);
	log_error("ALERT: queue %" PRIu32 " is disabled: %s; it comes back by "
		  "itself when that is over",
	    q->number, reason);
	leave(q);
}

void
queue_close(struct queue *q)
{
	q->closing = true;
	leave(q);
}

bool
queue_is_leaving(const struct queue *q)
{
	return q->closing || q->disabled;
}

bool
queue_is_down(const struct queue *q)
{
	int role;

	for (role = 0; role < NROLES; role++)
		if (q->children[role].proc.state != PROC_DOWN)
			return false;
	return true;
}

void
queue_progress(struct queue *q)
{
	int role;

	if (!queue_is_leaving(q) ||
	    q->children[ROLE_QUEUE_SEND].proc.state != PROC_DOWN)
		return;
	for (role = 0; role < NROLES; role++)
		if (q->children[role].proc.wanted)
			child_event(&q->children[role], PROC_EV_WANT_DOWN);
	retire_progress(q);
}

bool
queue_has_processes(const struct queue *q)
{
	int role;

	for (role = 0; role < NROLES; role++)
		if (proc_is_there(&q->children[role].proc))
			return true;
	return false;
}

bool
queue_is_clear(const struct queue *q)
{
	return !q->group_going && !orphans_of(q->super, q->number);
}

void
queue_orphans_gone(struct super *s, uint32_t number)
{
	struct queue *q = queue_find(s, number);

	if (q != NULL && queue_is_clear(q))
		want_all(q, PROC_EV_CLEAR);
}

static void
begin_group(struct queue *q)
{
	q->group_going = false;
	sites_group_gone(q);
	q->group = ++q->generation;
	want_all(q, PROC_EV_CLEAR);
}

/* What a group held in the table of destinations is free only when nobody of
 * it can have a connection any more, so nobody of the next one is started
 * before. */
void
queue_child_ended(struct queue *q, enum role role, int status)
{
	int other;

	q->last_status = status;
	if (role == ROLE_QUEUE_SEND) {
		q->group_going = true;
		for (other = 0; other < NROLES; other++)
			if (other != ROLE_QUEUE_SEND) {
				child_event(
				    &q->children[other], PROC_EV_WANT_AGAIN);
				child_judge(&q->children[other]);
			}
	}
	if (q->group_going && !queue_has_processes(q))
		begin_group(q);
}

/* ---- health ---- */

bool
queue_is_faulty(const struct queue *q)
{
	return q->disabled || q->unanswered;
}

const char *
queue_reason(const struct queue *q)
{
	return q->unanswered ? "its disk does not answer" : q->reason;
}

/* The first look has failed: why was not said yet. Later ones fail for the
 * reason that is shown. */
static void
not_made(struct queue *q, const char *why)
{
	if (q->first_look == FIRST_DONE)
		return;
	q->first_look = FIRST_DONE;
	queue_disable(q, why);
}

void
queue_on_made(struct super *s, uint32_t number,
    const struct look_result *result, struct buf *more UNUSED)
{
	struct queue *q = queue_find(s, number);
	const bool first = q != NULL && q->first_look != FIRST_DONE;

	if (q == NULL || !q->disabled || q->closing)
		return;
	q->unanswered = result->r == -ETIMEDOUT;
	if (q->unanswered)
		return;
	if (result->r < 0) {
		not_made(q, result->text);
		return;
	}
	q->first_look = FIRST_DONE;
	queue_note_disk(s, number);
	if (!first || s->started)
		log_info("queue %" PRIu32 " is enabled again", number);
	if (s->started)
		queue_start(q);
	else
		q->disabled = false;
}

static void
on_check(struct super *s, uint32_t number, const struct look_result *result,
    struct buf *more UNUSED)
{
	struct queue *q = queue_find(s, number);
	const int r = result->r;
	char why[100];

	if (r == 1)
		log_warning("queue %" PRIu32 ": it is open, and was marked "
			    "closed on disk: the mark is taken away",
		    number);
	if (q == NULL || q->closing)
		return;
	q->unanswered = r == -ETIMEDOUT;
	if (q->disabled || (r != -ENOENT && r != -ENOTDIR && r != -ELOOP))
		return;
	snprintf(why, sizeof(why),
	    "its directory is gone (%s): is a file system not mounted?",
	    strerror(-r));
	queue_disable(q, why);
}

/* So many are looked at together that those behind them wait for a tick in
 * which there is room; one that is still busy with the last look says nothing
 * new. */
static void
look_at_directory(struct queue *q)
{
	int r = 0;

	if (q->closing) {
		q->unchecked = false;
		return;
	}
	if (q->first_look != FIRST_DONE) {
		inventory_look(q);
		return;
	}
	r = look_start(q->super, q->disabled ? LOOK_MAKE : LOOK_CHECK,
	    q->number, q->disabled ? queue_on_made : on_check);
	q->unchecked = r == -EAGAIN;
}

void
queue_suspect(struct queue *q, usec_t now)
{
	if (q->check_at > now + SUSPECT_AFTER)
		q->check_at = now + SUSPECT_AFTER;
}

/* Whether the disk of a queue that runs answers. Those that do not run are
 * looked at by queue_health(). */
static void
check_disk(struct queue *q, usec_t now)
{
	if (q->disabled || now < q->check_at)
		return;
	/* Not all in one tick. */
	if (q->check_at == 0) {
		q->check_at =
		    now + (q->number % (CHECK_EVERY / SUPER_TICK)) * SUPER_TICK;
		return;
	}
	q->check_at = now + CHECK_EVERY;
	look_at_directory(q);
}

void
queue_health(struct queue *q)
{
	if (q->closing)
		return;
	if (!q->disabled)
		objects_health(q);
	look_at_directory(q);
}

void
queue_tick(struct queue *q, usec_t now)
{
	enum queue_state state;
	int role;

	for (role = 0; role < NROLES; role++)
		child_tick(&q->children[role]);
	objects_tick(q);
	hand_tick(q, now);
	quarantine_tick(q, now);
	retire_tick(q, now);
	check_disk(q, now);
	if (q->unchecked)
		look_at_directory(q);
	state = queue_state(q, now);
	if (state != q->shown) {
		q->shown = state;
		q->changes++;
	}
}

/* ---- what is shown ---- */

enum queue_state
queue_state(const struct queue *q, usec_t now)
{
	if (queue_is_faulty(q))
		return QUEUE_STATE_DISABLED;
	/* Whatever else: nobody is to choose it. */
	if (q->want == QUEUE_STATE_CLOSING)
		return QUEUE_STATE_CLOSING;
	if (hand_is_disabled(q, now))
		return QUEUE_STATE_DISABLED;
	return quarantine_of(q, now) != NULL ? QUEUE_STATE_QUARANTINED
					     : q->want;
}

/* Or not to be waited for. */
bool
queue_is_ready(const struct queue *q)
{
	const struct child *send = &q->children[ROLE_QUEUE_SEND];
	const struct child *todo = &q->children[ROLE_TODO_PROC];

	if (q->first_look != FIRST_DONE && !q->unanswered)
		return false;
	if (queue_is_faulty(q) || child_is_failing(send) ||
	    child_is_failing(todo))
		return true;
	return send->proc.state == PROC_UP && todo->proc.state == PROC_UP;
}

void
queue_send_all(struct queue *q, const struct msg *msg)
{
	int role;

	for (role = 0; role < NROLES; role++)
		if (child_is_joinable(&q->children[role]))
			(void)child_send(&q->children[role], msg, -1);
}

void
queue_dump(const struct queue *q)
{
	int role;

	log_info("dump: queue %" PRIu32 ": %s%s%s, generation %" PRIu32
		 ", shared memory %s, message queue %s",
	    q->number, queue_state_name(queue_state(q, clock_mono())),
	    queue_reason(q)[0] == '\0' ? "" : ": ", queue_reason(q),
	    q->generation, q->page_fd < 0 ? "missing" : "there",
	    q->bell < 0 ? "missing" : "there");
	for (role = 0; role < NROLES; role++) {
		const struct child *c = &q->children[role];
		char what[CHILD_END_SIZE] = "never ended";

		if (c->proc.restarts > 0 || c->proc.state == PROC_BACKOFF)
			child_describe_end(c->last_status, what, sizeof(what));
		log_info("dump: %s/%" PRIu32 ": %s, pid %ld, %" PRIu32
			 " restarts, %" PRIu32 " failures, last %s%s%s",
		    role_names[role], q->number, proc_state_name(c->proc.state),
		    (long)c->process.pid, c->proc.restarts, c->proc.failures,
		    what, c->text[0] == '\0' ? "" : ": ", c->text);
	}
}
