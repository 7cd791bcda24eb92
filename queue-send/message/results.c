#include "queue-send/message/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "log/log.h"

#define EXPIRED_DSN  "4.4.7"
#define EXPIRED_TEXT "delivery time expired"
#define GIVEN_UP     "expired by an operator"

/* Deliveries whose marks a death of the process would lose. */
#define RECORDS_MAX  1024

/* Marks wait behind at most so many reasons of what nobody delivers now. */
#define REASONS_MAX  64

/* ---- one recipient ---- */

/* The mark is on disk: the result is logged and counted. */
static void
tell(struct send *s, struct message *m, const struct report *r)
{
	delivery_log(s, m, r);
	switch (r->outcome) {
	case AGENT_SENT:
		m->settled++;
		s->counters.delivered++;
		s->counters.bytes_delivered += m->file.content_len;
		break;
	case AGENT_FAILED:
		m->settled++;
		m->failed++;
		if (r->expired)
			s->counters.expired++;
		else
			s->counters.failed++;
		break;
	case AGENT_DEFERRED:
	case AGENT_NOUTCOMES:
		m->deferred++;
		s->counters.deferred++;
		break;
	}
	s->pub.changed = true;
}

static void add_reason(struct send *s, struct message *m,
    const struct report *report, enum spool_dir dir); /* below */

static void
defer(struct send *s, struct message *m, struct report *r)
{
	r->outcome = AGENT_DEFERRED;
	add_reason(s, m, r, SPOOL_DEFER);
	tell(s, m, r);
}

static void
put_off(struct send *s, struct message *m, struct report *r, const char *text)
{
	r->dsn = "4.3.0";
	r->text = text;
	r->expired = false;
	defer(s, m, r);
}

/* No recipient fails without its reason on disk. */
static void
without_reason(struct send *s, struct message *m, struct record *r)
{
	char text[128];

	disk_write_failed(s, m, "write a reason", r->reason_error);
	snprintf(text, sizeof(text), "cannot write down why it failed: %s",
	    strerror(-r->reason_error));
	put_off(s, m, &r->report, text);
}

/* A file that takes no reason is one fault of the disk, however many recipients
 * have one. */
static void
reason_failed(struct send *s, struct message *m, int error)
{
	static const char what[] = "write a reason";

	if (m->reason_failed || disk_is_shortage(error))
		disk_write_failed_again(s, m, what, error);
	else
		disk_write_failed(s, m, what, error);
	m->reason_failed = true;
}

/* The record has ended. False: its mark is to be written later. */
static bool
conclude(struct send *s, struct message *m, struct record *r)
{
	m->succeeded |= r->succeeded;
	if (r->unmarked) {
		if (r->reason_error < 0)
			reason_failed(s, m, r->reason_error);
		return true;
	}
	if (r->is_locked) {
		put_off(s, m, &r->report,
		    "the expansion of the alias has not ended");
		return true;
	}
	if (r->reason_error < 0 && r->report.outcome == AGENT_FAILED) {
		without_reason(s, m, r);
		return true;
	}
	if (r->reason_error < 0)
		disk_write_failed(
		    s, m, "write down a delivery", r->reason_error);
	if (r->error < 0) {
		disk_mark_failed(
		    s, m, "record a delivery (it is kept in memory)", r->error);
		return false;
	}
	sync_marked(s, m);
	tell(s, m, &r->report);
	return true;
}

/* ---- by a thread, or here ---- */

static void
ended(void *send, struct sync_task *task)
{
	struct send *s = send;
	struct record *r = (struct record *)(void *)task;
	struct message *m = r->message;

	s->records--;
	s->reasons -= r->unmarked;
	if (!conclude(s, m, r)) {
		STAILQ_INSERT_TAIL(&s->unrecorded, task, link);
		s->record_at = s->now + s->conf->error_interval;
		return;
	}
	m->nunrecorded--;
	sync_task_free(task);
	settle_message(s, m);
}

/* The file stays open until the record has ended. */
static void
begin_task(struct send *s, struct record *r, enum disk_kind kind)
{
	const usec_t began = clock_mono();

	if (disk_has_threads(s, kind))
		messages_use(&s->messages, r->message);
	r->fd = r->message->fd;
	s->records++;
	s->reasons += r->unmarked;
	disk_do(s, kind, &r->task);
	if (kind == DISK_MARK)
		disk_waited(s, began);
}

bool
results_are_full(const struct send *s)
{
	return s->records >= RECORDS_MAX;
}

bool
reasons_are_full(const struct send *s)
{
	return s->reasons >= REASONS_MAX || results_are_full(s);
}

/* ---- one record ---- */

/* The mark was not written, and the copy could not be had: deferred, and
 * perhaps delivered twice. */
static void
no_memory(struct message *m)
{
	log_error("out of memory for a delivery that is not recorded");
	message_fail(m, -ENOMEM);
}

/* In its first attempt a message has no reasons: what lies in bounce/ is
 * another one's, and goes before the first that is written. Of a success only
 * the thread knows whether a line is wanted. */
static bool
writes_bounce(const struct record *r)
{
	return r->report.outcome == AGENT_FAILED ||
	    (r->file.version > QUEUE_FILE_PLAIN && r->has_sender);
}

static bool
file_is_begun(const struct message *m, enum spool_dir dir)
{
	return dir == SPOOL_DEFER ? m->reasons_begun
				  : !m->first || m->bounce_begun;
}

static void
file_begins(struct message *m, enum spool_dir dir)
{
	if (dir == SPOOL_DEFER)
		m->reasons_begun = true;
	else
		m->bounce_begun = true;
}

/* Without memory the loop writes, unless a thread has another record. */
static void
begin_record(struct send *s, struct message *m, struct record *r, bool writes)
{
	struct record *copy;

	r->begins = writes && !file_is_begun(m, r->dir);
	copy = record_copy(r, ended);
	if (copy == NULL && m->nunrecorded > 0 && r->unmarked) {
		log_error("out of memory for the reason of a recipient");
		return;
	}
	if (writes && (copy != NULL || m->nunrecorded == 0))
		file_begins(m, r->dir);
	if (copy != NULL) {
		m->nunrecorded++;
		begin_task(s, copy, disk_kind_of_mark(s, m, writes));
		return;
	}
	if (m->nunrecorded == 0)
		record_work(r);
	if (m->nunrecorded > 0 || !conclude(s, m, r))
		no_memory(m);
}

/* Nothing of it is to be delivered, tried again or told, but for this one: by
 * the count of the file as well, which an offer may have got wrong. An
 * expansion marks its recipient by itself, and looks at the mark. */
static bool
is_last(const struct message *m, const struct record *r)
{
	return r->report.outcome == AGENT_SENT &&
	    r->report.kind != AGENT_ALIAS && m->fate == FATE_OPEN &&
	    m->settled + 1 == m->pending && m->pending == m->file.rcpt_count &&
	    m->failed == 0 && m->nunrecorded == 0 && !m->succeeded &&
	    !message_has_unread(m);
}

static struct record
record_of(struct send *s, struct message *m, const struct report *report)
{
	return (struct record){
		.message = m,
		.sp = &s->sp,
		.report = *report,
		.file = m->file,
		.inode = m->inode,
		.when_wall = s->now_wall,
		.fd = m->fd,
		.dir = SPOOL_BOUNCE,
		.first = m->first,
		.locks = report->kind == AGENT_ALIAS && report->expired,
		.has_sender = m->sender[0] != '\0',
	};
}

static void
record(struct send *s, struct message *m, const struct report *report)
{
	struct record r = record_of(s, m, report);
	const bool writes = writes_bounce(&r);

	if (!writes && is_last(m, &r) && removal_in_place_of_mark(s, m) == 0) {
		tell(s, m, report);
		removal_tell(s, m);
		return;
	}
	begin_record(s, m, &r, writes);
}

static void
add_reason(struct send *s, struct message *m, const struct report *report,
    enum spool_dir dir)
{
	struct record r = record_of(s, m, report);

	r.unmarked = true;
	r.dir = dir;
	begin_record(s, m, &r, true);
}

void
results_add_reason(
    struct send *s, struct message *m, const struct report *report)
{
	add_reason(s, m, report, SPOOL_BOUNCE);
}

static void
fail(struct send *s, struct message *m, struct report *r)
{
	r->outcome = AGENT_FAILED;
	record(s, m, r);
}

/* A message that was on hold is tried before it expires: a destination that is
 * dead does not end it. */
static bool
is_over(
    const struct send *s, const struct message *m, const struct report *report)
{
	const usec_t age =
	    jumps_age(&s->jumps, m->file.arrival_wall, s->now_wall);

	if (m->expires)
		return true;
	return s->now >= s->expire_after && !(report->untried && m->owed) &&
	    retry_expired(&s->retry, age, m->sender[0] == '\0');
}

void
results_apply(struct send *s, struct message *m, const struct report *report)
{
	char text[AGENT_TEXT_MAX + sizeof(GIVEN_UP) + 32];
	struct report r = *report;

	m->tried |= !r.untried && !r.ours;
	m->passed_over |= r.untried;
	if (r.outcome == AGENT_DEFERRED && !r.ours && is_over(s, m, &r)) {
		snprintf(text, sizeof(text), "%s: %s %s",
		    m->expires ? GIVEN_UP : EXPIRED_TEXT, r.dsn, r.text);
		r.dsn = EXPIRED_DSN;
		r.text = text;
		r.expired = true;
		fail(s, m, &r);
	} else if (r.outcome == AGENT_FAILED) {
		fail(s, m, &r);
	} else if (r.outcome == AGENT_SENT) {
		record(s, m, &r);
	} else {
		defer(s, m, &r);
	}
}

/* ---- results without their marks ---- */

static void
retry_unrecorded(struct send *s)
{
	struct sync_tasks again = STAILQ_HEAD_INITIALIZER(again);
	struct sync_task *task;

	STAILQ_CONCAT(&again, &s->unrecorded);
	while ((task = STAILQ_FIRST(&again)) != NULL) {
		STAILQ_REMOVE_HEAD(&again, link);
		begin_task(s, (struct record *)(void *)task, DISK_RECORD);
	}
	s->record_at = s->now + s->conf->error_interval;
}

void
results_done(struct send *s)
{
	struct sync_task *task;

	while ((task = STAILQ_FIRST(&s->unrecorded)) != NULL) {
		STAILQ_REMOVE_HEAD(&s->unrecorded, link);
		sync_task_free(task);
	}
}

void
results_init(struct send *s)
{
	STAILQ_INIT(&s->unrecorded);
}

usec_t
results_work(struct send *s)
{
	if (s->health.read_only || STAILQ_EMPTY(&s->unrecorded))
		return USEC_NEVER;
	if (s->now >= s->record_at)
		retry_unrecorded(s);
	return s->record_at;
}
