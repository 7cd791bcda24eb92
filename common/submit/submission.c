#include "submit/parts.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE    ((uint64_t)1 << 20)
/* A message of this length is in the memory of its submitter. */
#define KEPT     ((uint64_t)64 << 10)
/* So many queues are left for a late disk; then the message waits. */
#define LEFT_MAX 2

struct submission {
	struct submit *submit;
	struct submit_queue *queue; /* that is written to; NULL: none */
	uint64_t incoming;          /* of that queue, when it was chosen */
	bool is_run;                /* a supervisor ran that queue then */
	struct accept accept;
	bool by_door; /* `door` takes the message instead of `accept` */
	struct through_door door;
	uint64_t content_len; /* of the submitter, without added fields */
	unsigned left;        /* queues that were too late for the message */
	char reason[ROOM_TEXT_SIZE];
};

/* ---- begin ---- */

/* A look at the queue is believed as long as the facts; not for a large
 * message. */
static bool
is_looked(const struct submission *m, const struct submit_origin *origin)
{
	const usec_t at = m->queue->looked_at;

	return at != 0 && m->submit->now_mono - at < SUBMIT_FACTS_AGE &&
	    origin->announced < LARGE;
}

static int
begin_accept(struct submission *m, const struct submit_origin *origin)
{
	struct accept_options opt = submit_accept_options(
	    m->submit->conf, SPOOL_INCOMING, submit_writer(origin->uid));
	const struct spool *sp = &m->queue->spool;
	int r;

	if (sp->dir[SPOOL_INCOMING] < 0)
		return -EACCES;
	opt.announced = origin->announced;
	opt.looked = is_looked(m, origin);
	r = accept_begin(&m->accept, sp, &opt, clock_wall(), origin->uid);
	if (r < 0) {
		accept_describe(&m->accept, r, m->reason);
		accept_end(&m->accept);
	}
	if (r < 0 || !opt.looked)
		m->queue->looked_at =
		    r == 0 && m->accept.ample ? m->submit->now_mono : 0;
	return r;
}

static int
put_received(struct submission *m, const struct submit_origin *origin)
{
	char line[SUBMIT_RECEIVED_MAX];
	int n = submit_received(&m->accept, origin->host, origin->eol, line);

	return n < 0 ? n : submission_added(m, line, (size_t)n);
}

static bool
is_too_late(void *submission)
{
	struct submission *m = submission;

	return submit_is_late(m->submit, m->queue->spool.queue);
}

/* For a queue that this process may not write to. */
static int
begin_door(struct submission *m)
{
	int r;

	m->door.arg = m;
	m->door.give_up = m->left < LEFT_MAX && m->submit->facts.count > 1
	    ? is_too_late
	    : NULL;
	r = through_door_begin(
	    &m->door, m->submit->conf, m->queue->spool.queue);

	m->by_door = true;
	return r == -ENOENT ? -EACCES : r;
}

static void
drop_message(struct submission *m)
{
	if (m->by_door) {
		snprintf(m->reason, sizeof(m->reason), "%s", m->door.reason);
		through_door_end(&m->door);
	} else {
		accept_end(&m->accept);
	}
	m->by_door = false;
	submit_release(&m->queue);
}

/* queue_failed() undoes all that is done after the queue is open. */
static int
begin_in(struct submission *m, const struct queue_fact *fact,
    const struct submit_origin *origin)
{
	int r = submit_open_queue(m->submit, fact->queue, &m->queue);

	if (r < 0) {
		snprintf(m->reason, sizeof(m->reason), "queue%u: %s",
		    fact->queue, spool_error(r));
		return r;
	}
	m->incoming = fact->incoming;
	m->is_run = fact->rank <= RANK_BLIND;
	m->content_len = 0;
	r = begin_accept(m, origin);
	if (r == 0)
		return put_received(m, origin);
	if (r == -EACCES || r == -EPERM)
		return begin_door(m);
	submit_release(&m->queue);
	return r;
}

static void
queue_failed(struct submission *m, uint32_t queue, int error)
{
	if (m->queue != NULL && !m->by_door)
		accept_describe(&m->accept, error, m->reason);
	if (m->queue != NULL)
		drop_message(m);
	submit_queue_failed(m->submit, queue);
}

/* When shared memory names no queue that takes the message: the directories. */
static bool
add_disk(struct submission *m)
{
	int n = submit_judge_disk(m->submit);

	if (n < 0)
		snprintf(m->reason, sizeof(m->reason), "%s: %s",
		    m->submit->conf->queue_base,
		    n == -ESHUTDOWN ? "the queues are being closed"
				    : strerror(-n));
	return n > 0;
}

/* Queues in turn until one can be begun. */
static int
begin_somewhere(
    struct submission *m, const struct submit_origin *origin, int error)
{
	struct queue_facts *facts = &m->submit->facts;

	for (;;) {
		int i = choose_queue(facts, m->submit->turn);

		if (i < 0 && add_disk(m))
			continue;
		if (i < 0)
			return facts->shut && error == -ENOENT ? -EAGAIN
							       : error;
		error = begin_in(m, &facts->rows[i], origin);
		if (error == 0)
			return 0;
		queue_failed(m, facts->rows[i].queue, error);
	}
}

int
submission_begin(struct submission *m, const struct submit_origin *origin)
{
	struct submit *s = m->submit;
	int r;

	ASSERT(m->queue == NULL);
	submit_judge(s);
	s->turn++;
	m->left = 0;
	snprintf(m->reason, sizeof(m->reason), "no queue in %s",
	    s->conf->queue_base);
	if (s->facts.shut)
		snprintf(m->reason, sizeof(m->reason),
		    "all queues are closing or disabled");
	r = begin_somewhere(m, origin, -ENOENT);
	/* A queue that failed now may be well the next time. */
	if (r < 0)
		s->judged = false;
	return r;
}

int
submission_again(
    struct submission *m, int error, const struct submit_origin *origin)
{
	static const int elsewhere[] = { -ENOSPC, -EDQUOT, -EROFS, -ENOENT,
		-EACCES, -EPERM, -ESHUTDOWN };
	size_t i;

	if (error == -ETIMEDOUT) {
		m->left++;
		submit_judge(m->submit);
		return begin_somewhere(m, origin, error);
	}
	for (i = 0; i < ARRAY_LEN(elsewhere); i++)
		if (error == elsewhere[i])
			return begin_somewhere(m, origin, error);
	return error;
}

/* ---- content and envelope ---- */

int
submission_content(struct submission *m, const void *data, size_t len)
{
	uint64_t limit = m->submit->conf->message_size_limit;

	if (limit != 0 && len > limit - m->content_len)
		return -EFBIG;
	m->content_len += len;
	if (m->content_len > KEPT)
		submission_stay(m);
	return submission_added(m, data, len);
}

int
submission_added(struct submission *m, const void *data, size_t len)
{
	if (m->by_door)
		return through_door_content(&m->door, data, len);
	return accept_content(&m->accept, data, len);
}

void
submission_stay(struct submission *m)
{
	m->door.give_up = NULL;
}

int
submission_sender(struct submission *m, const char *address, size_t len)
{
	if (m->by_door)
		return through_door_sender(&m->door, address, len);
	return queue_file_add_sender(&m->accept.writer, address, len);
}

int
submission_rcpt(struct submission *m, const char *address, size_t len)
{
	if (m->by_door)
		return through_door_rcpt(&m->door, address, len);
	return queue_file_add_rcpt(&m->accept.writer, address, len);
}

int
submission_dsn(struct submission *m, const struct dsn_mail *dsn)
{
	if (m->by_door)
		return through_door_dsn(&m->door, dsn);
	return queue_file_add_dsn(&m->accept.writer, dsn);
}

int
submission_rcpt_dsn(struct submission *m, const struct dsn_rcpt *dsn)
{
	if (m->by_door)
		return through_door_rcpt_dsn(&m->door, dsn);
	return queue_file_add_rcpt_dsn(&m->accept.writer, dsn);
}

/* ---- commit and abort ---- */

/* A process that cannot ring goes by the page: so many are too many. */
#define FLOW_LONG 1000

static void
pause_until(usec_t until, int stop_fd)
{
	struct pollfd stop = { .fd = stop_fd, .events = POLLIN };
	usec_t now;

	for (now = clock_mono(); now < until; now = clock_mono())
		if (poll(&stop, 1, (int)((until - now) / USEC_PER_MSEC) + 1) >
		    0)
			return;
}

/* A ring is a hint: the message is found without it. todo-proc leaves rings in
 * a full doorbell while mail waits in incoming/, so the wait for room is the
 * wait for progress of the queue. */
static void
ring(const struct submission *m, const struct queue_id *id, int stop_fd)
{
	const struct conf *conf = m->submit->conf;
	const struct bell bell = {
		.pid = m->submit->pid,
		.split = (uint32_t)(id->inode % m->queue->spool.split),
		.inode = id->inode,
	};
	struct bell_rope *rope = &m->queue->bell;
	usec_t now = clock_mono();
	const usec_t until = now + (m->is_run ? conf->in_flow_delay : 0);
	int r;

	for (;; now = clock_mono()) {
		r = bell_pull(rope, conf->instance, id->queue, &bell, now);
		if (r != -EAGAIN || now >= until ||
		    !bell_wait(rope, until - now, stop_fd))
			break;
	}
	if (r < 0 && r != -EAGAIN && m->incoming >= FLOW_LONG)
		pause_until(until, stop_fd);
}

int
submission_commit(struct submission *m, int stop_fd, struct queue_id *ret_id)
{
	const uint32_t queue = m->queue->spool.queue;
	struct queue_fact *fact;
	int r;

	if (m->by_door) {
		r = through_door_commit(&m->door, ret_id);
	} else {
		r = accept_commit(&m->accept, ret_id);
		if (r == -ETIMEDOUT) /* of the disk, which may have it */
			r = -EIO;
		if (r == 0)
			accept_end(&m->accept);
		if (r == 0)
			ring(m, ret_id, stop_fd);
	}
	if (r < 0)
		return r;
	if (m->by_door)
		drop_message(m);
	else
		submit_release(&m->queue);
	fact = choose_find(&m->submit->facts, queue);
	if (fact != NULL)
		fact->backlog++;
	return 0;
}

void
submission_abort(struct submission *m, int error)
{
	if (m->queue == NULL)
		return;
	if (error == 0) {
		drop_message(m);
		return;
	}
	queue_failed(m, m->queue->spool.queue, error);
	m->submit->judged = false;
}

const char *
submission_reason(const struct submission *m)
{
	return m->reason;
}

/* ---- the beginning and the end ---- */

int
submission_new(struct submit *submit, struct submission **ret_submission)
{
	struct submission *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return -ENOMEM;
	m->submit = submit;
	*ret_submission = m;
	return 0;
}

void
submission_free(struct submission **submission)
{
	struct submission *m = *submission;

	*submission = NULL;
	if (m == NULL)
		return;
	submission_abort(m, 0);
	free(m);
}
