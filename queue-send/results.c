#include "queue-send/road.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/io.h"
#include "log/log.h"
#include "queue-send/peers.h"
#include "spool/prepared.h"
#include "spool/reason.h"

#define EXPIRED_DSN  "4.4.7"
#define EXPIRED_TEXT "delivery time expired"
#define GIVEN_UP     "expired by an operator"

/* ---- one recipient ---- */

static int
write_mark(struct send *s, struct message *m, const struct report *r)
{
	int error;

	if (r->outcome == AGENT_DEFERRED)
		return 0;
	error = disk_open(s, m);
	if (error == -ENOENT) /* removed by hand: there is nothing to mark */
		return 0;
	if (error < 0)
		return error;
	error = r->outcome == AGENT_SENT
	    ? success_mark(s, m, r)
	    : queue_file_mark(s->sp.sys, m->fd, r->offset, RCPT_FAILED);
	if (error == 0)
		sync_marked(s, m);
	return error;
}

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

static char *
keep_string(char **at, const char *string)
{
	size_t size = strlen(string) + 1;
	char *copy = *at;

	memcpy(copy, string, size);
	*at += size;
	return copy;
}

static void
keep_unrecorded(struct send *s, struct message *m, const struct report *r)
{
	size_t strings = strlen(r->address) + strlen(r->dsn) +
	    strlen(r->relay) + strlen(r->text) + 4;
	struct unrecorded *p =
	    malloc(sizeof(*p) + sizeof(struct report) + strings);
	char *at;

	if (p == NULL) { /* deferred, and perhaps delivered twice */
		log_error("out of memory for a delivery that is not recorded");
		message_fail(m, -ENOMEM);
		return;
	}
	p->message = m;
	p->report = (struct report *)(void *)(p + 1);
	at = (char *)(p->report + 1);
	*p->report = *r;
	p->report->address = keep_string(&at, r->address);
	p->report->dsn = keep_string(&at, r->dsn);
	p->report->relay = keep_string(&at, r->relay);
	p->report->text = keep_string(&at, r->text);
	STAILQ_INSERT_TAIL(&s->unrecorded, p, link);
	m->nunrecorded++;
	s->record_at = s->now + s->conf->error_interval;
}

static void
record(struct send *s, struct message *m, const struct report *r)
{
	int error = write_mark(s, m, r);

	if (error < 0) {
		disk_mark_failed(
		    s, m, "record a delivery (it is kept in memory)", error);
		keep_unrecorded(s, m, r);
		return;
	}
	tell(s, m, r);
}

static void
defer(struct send *s, struct message *m, struct report *r)
{
	int error = reasons_add(s, m, SPOOL_DEFER, r);

	r->outcome = AGENT_DEFERRED;
	if (error < 0)
		disk_write_failed(s, m, "write a reason", error);
	record(s, m, r);
}

/* An expansion marks its recipient by itself, and may die before it says so:
 * its messages are on their way, whatever is reported. */
static bool
is_marked_done(struct send *s, struct message *m, const struct report *r)
{
	const struct queue_file file = message_queue_file(m);
	struct queue_rcpt rcpt;

	return disk_open(s, m) == 0 &&
	    queue_file_rcpt(m->fd, &file, r->offset, r->index, &rcpt) == 0 &&
	    rcpt.mark == RCPT_DONE;
}

static void
pass_as_sent(struct send *s, struct message *m, struct report *r)
{
	r->outcome = AGENT_SENT;
	r->dsn = "2.0.0";
	r->text = "expanded by an agent that died before it said so";
	r->expired = false;
	record(s, m, r);
}

/* The lock of the message: no expansion marks it meanwhile. A child that was
 * killed may live on for a while, in a call that nothing ends. */
static bool
take_lock(struct send *s, struct message *m)
{
	return disk_open(s, m) < 0 || prepared_lock(m->fd) != -EAGAIN;
}

static void
give_lock(struct send *s, const struct message *m)
{
	if (m->fd >= 0)
		(void)s->sp.sys->flock(m->fd, LOCK_UN);
}

static void
fail_now(struct send *s, struct message *m, struct report *r)
{
	char text[128];
	int error;

	if (is_marked_done(s, m, r)) {
		pass_as_sent(s, m, r);
		return;
	}
	error = reasons_add(s, m, SPOOL_BOUNCE, r);
	if (error == 0) {
		r->outcome = AGENT_FAILED;
		record(s, m, r);
		return;
	}
	/* No recipient fails without its reason on disk. */
	disk_write_failed(s, m, "write a reason", error);
	snprintf(text, sizeof(text), "cannot write down why it failed: %s",
	    strerror(-error));
	r->dsn = "4.3.0";
	r->text = text;
	r->expired = false;
	defer(s, m, r);
}

static void
fail(struct send *s, struct message *m, struct report *r)
{
	const bool may_be_marked = r->kind == AGENT_ALIAS && r->expired;

	if (may_be_marked && !take_lock(s, m)) {
		r->dsn = "4.3.0";
		r->text = "the expansion of the alias has not ended";
		r->expired = false;
		defer(s, m, r);
		return;
	}
	fail_now(s, m, r);
	if (may_be_marked)
		give_lock(s, m);
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
record_late(struct send *s, struct unrecorded *p)
{
	struct message *m = p->message;

	m->nunrecorded--;
	tell(s, m, p->report);
	free(p);
	settle_message(s, m);
}

static void
retry_unrecorded(struct send *s)
{
	struct unrecorded_list again = STAILQ_HEAD_INITIALIZER(again);
	struct unrecorded *p;

	STAILQ_CONCAT(&again, &s->unrecorded);
	while ((p = STAILQ_FIRST(&again)) != NULL) {
		STAILQ_REMOVE_HEAD(&again, link);
		if (write_mark(s, p->message, p->report) < 0)
			STAILQ_INSERT_TAIL(&s->unrecorded, p, link);
		else
			record_late(s, p);
	}
	s->record_at = s->now + s->conf->error_interval;
}

void
results_drop_unrecorded(struct send *s)
{
	struct unrecorded *p;

	while ((p = STAILQ_FIRST(&s->unrecorded)) != NULL) {
		STAILQ_REMOVE_HEAD(&s->unrecorded, link);
		p->message->nunrecorded--;
		free(p);
	}
}

/* Write one byte in place, as a mark, in the file of our lock. That is open
 * for writing only here, and keeps no file system from being remounted read-
 * only. */
static int
write_probe(struct send *s)
{
	const struct spool_sys *sys = s->sp.sys;
	int fd = sys->openat(s->sp.dir[SPOOL_LOCK], SEND_LOCK,
	    O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return -errno;
	r = queue_file_mark(sys, fd, 0, RCPT_PENDING);
	sys->close(fd);
	return r;
}

static void
probe(struct send *s)
{
	int r = write_probe(s);

	if (!health_probed(&s->health, r, s->now))
		return;
	log_warning("%s: can be written again: deliveries go on", s->sp.path);
	s->admission_blocked_until = s->finish_at = s->stuck_at = 0;
	removal_probed(s);
	s->record_at = s->now;
	s->pub.changed = true;
	send_wake(s);
}

usec_t
results_work(struct send *s)
{
	usec_t next = USEC_NEVER;

	if (health_probe_due(&s->health, s->now))
		probe(s);
	if (s->health.read_only)
		return s->health.probe_at;
	if (!STAILQ_EMPTY(&s->unrecorded)) {
		if (s->now >= s->record_at)
			retry_unrecorded(s);
		if (!STAILQ_EMPTY(&s->unrecorded))
			next = s->record_at;
	}
	return next;
}
