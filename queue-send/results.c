#include "queue-send/results.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"
#include "queue-send/delivery_log.h"
#include "queue-send/dispatch.h"
#include "queue-send/disk.h"
#include "queue-send/links.h"
#include "queue-send/recipients.h"
#include "queue-send/sync.h"
#include "spool/reason.h"

#define EXPIRED_DSN  "4.4.7"
#define EXPIRED_TEXT "delivery time expired"
#define PHASE_MAX    (86400 * USEC_PER_SEC)

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
	error = queue_file_mark(s->sp.sys, m->fd, r->offset,
	    r->outcome == AGENT_SENT ? RCPT_DONE : RCPT_FAILED);
	if (error == 0)
		sync_marked(s, m);
	return error;
}

/* It is on disk: now it may be told. */
static void
tell(struct send *s, struct message *m, const struct report *r)
{
	delivery_log(s, m, r);
	switch (r->outcome) {
	case AGENT_SENT:
		s->counters.delivered++;
		s->counters.bytes_delivered += m->file.content_len;
		break;
	case AGENT_FAILED:
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

	if (p == NULL) { /* it stays, and may be delivered twice */
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

static void
fail(struct send *s, struct message *m, struct report *r)
{
	char text[128];
	int error = reasons_add(s, m, SPOOL_BOUNCE, r);

	if (error == 0) {
		r->outcome = AGENT_FAILED;
		record(s, m, r);
		return;
	}
	/* D3: without its reason on disk no recipient fails. */
	disk_write_failed(s, m, "write a reason", error);
	snprintf(text, sizeof(text), "cannot write down why it failed: %s",
	    strerror(-error));
	r->dsn = "4.3.0";
	r->text = text;
	r->expired = false;
	defer(s, m, r);
}

void
results_apply(struct send *s, struct message *m, const struct report *report)
{
	char text[AGENT_TEXT_MAX + sizeof(EXPIRED_TEXT) + 32];
	usec_t age = jumps_age(&s->jumps, m->file.arrival_wall, s->now_wall);
	struct report r = *report;

	if (r.outcome == AGENT_DEFERRED && !r.ours &&
	    s->now >= s->expire_after &&
	    retry_expired(&s->retry, age, m->sender[0] == '\0')) {
		snprintf(
		    text, sizeof(text), EXPIRED_TEXT ": %s %s", r.dsn, r.text);
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

/* ---- what could not be recorded ---- */

static void
record_late(struct send *s, struct unrecorded *p)
{
	struct message *m = p->message;

	m->nunrecorded--;
	tell(s, m, p->report);
	free(p);
	recipients_settle(s, m);
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

/* One byte written in place, as a mark is, in the file of our lock. It is open
 * for that long only: nothing here keeps a file system from going read-only. */
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

/* ---- what agents say ---- */

static bool
copy_string(char *out, size_t size, const struct msg_str *from)
{
	if (from->len >= size)
		return false;
	memcpy(out, from->data, from->len);
	out[from->len] = '\0';
	return true;
}

/* "4.4.1": the class fits the outcome, the rest are numbers. */
static bool
dsn_fits(const char *dsn, char class)
{
	size_t subject, detail;

	if (dsn[0] != class || dsn[1] != '.')
		return false;
	subject = strspn(dsn + 2, "0123456789");
	if (subject < 1 || subject > 3 || dsn[2 + subject] != '.')
		return false;
	detail = strspn(dsn + 3 + subject, "0123456789");
	return detail >= 1 && detail <= 3 && dsn[3 + subject + detail] == '\0';
}

static const struct {
	char class;
	const char *dsn;
} outcomes[AGENT_NOUTCOMES] = {
	[AGENT_SENT] = { '2', "2.0.0" },
	[AGENT_DEFERRED] = { '4', "4.0.0" },
	[AGENT_FAILED] = { '5', "5.0.0" },
};

static const char *
dsn_for(const char *dsn, enum agent_outcome outcome)
{
	return dsn_fits(dsn, outcomes[outcome].class) ? dsn
						      : outcomes[outcome].dsn;
}

static usec_t
phase(usec_t t)
{
	return t < 0 ? 0 : t > PHASE_MAX ? PHASE_MAX : t;
}

static int
compare_rcpt(const void *key, const void *element)
{
	const uint32_t *index = key;
	const struct delivery_rcpt *rcpt = element;

	return (*index > rcpt->index) - (*index < rcpt->index);
}

static struct delivery_rcpt *
find_rcpt(struct delivery *d, uint32_t index)
{
	return bsearch(
	    &index, d->rcpts, d->nrcpts, sizeof(d->rcpts[0]), compare_rcpt);
}

int
results_on_result(
    struct send *s, struct agent_link *agent, const struct msg_RESULT *f)
{
	char dsn[AGENT_DSN_MAX + 1], relay[AGENT_RELAY_MAX + 1],
	    text[AGENT_TEXT_MAX + 1];
	struct delivery *d = delivery_find(s, f->job);
	struct delivery_rcpt *rcpt;

	if (d == NULL || d->agent != agent || f->outcome >= AGENT_NOUTCOMES)
		return -EBADMSG;
	rcpt = find_rcpt(d, f->rcpt);
	if (rcpt == NULL || rcpt->reported ||
	    !copy_string(dsn, sizeof(dsn), &f->dsn) ||
	    !copy_string(relay, sizeof(relay), &f->relay) ||
	    !copy_string(text, sizeof(text), &f->text))
		return -EBADMSG;
	rcpt->reported = true;
	results_apply(s, d->message,
	    &(struct report){
		.index = rcpt->index,
		.offset = rcpt->offset,
		.address = rcpt->address,
		.outcome = (enum agent_outcome)f->outcome,
		.dsn = dsn_for(dsn, (enum agent_outcome)f->outcome),
		.relay = relay[0] == '\0' ? "none" : relay,
		.text = text,
		.conn = phase(f->conn_usec),
		.xfer = phase(f->xfer_usec),
		.selected_at = d->selected_at,
	    });
	return 0;
}

void
results_defer_rest(struct send *s, struct delivery *d, const char *dsn,
    const char *text, bool ours)
{
	struct delivery_rcpt *rcpt;

	for (rcpt = d->rcpts; rcpt < d->rcpts + d->nrcpts; rcpt++) {
		if (rcpt->reported)
			continue;
		rcpt->reported = true;
		results_apply(s, d->message,
		    &(struct report){
			.index = rcpt->index,
			.offset = rcpt->offset,
			.address = rcpt->address,
			.outcome = AGENT_DEFERRED,
			.dsn = dsn,
			.relay = "none",
			.text = text,
			.selected_at = d->selected_at,
			.ours = ours,
		    });
	}
}

/* A reason without site_failed is trouble of the agent's own. */
static enum site_result
site_result(const struct msg_DONE *f)
{
	if (f->site_failed)
		return SITE_FAILED;
	return f->dsn.len > 0 ? SITE_AGENT_DIED : SITE_DELIVERED;
}

int
results_on_done(
    struct send *s, struct agent_link *agent, const struct msg_DONE *f)
{
	char dsn[AGENT_DSN_MAX + 1], text[AGENT_TEXT_MAX + 1];
	char why[sizeof(dsn) + sizeof(text)];
	struct delivery *d = delivery_find(s, f->job);

	if (d == NULL || d->agent != agent || f->site_failed > 1 ||
	    !copy_string(dsn, sizeof(dsn), &f->dsn) ||
	    !copy_string(text, sizeof(text), &f->text))
		return -EBADMSG;
	results_defer_rest(s, d, dsn_for(dsn, AGENT_DEFERRED),
	    text[0] == '\0' ? "the agent gave no result" : text, false);
	snprintf(why, sizeof(why), "%s %s", dsn_for(dsn, AGENT_DEFERRED), text);
	delivery_end(s, d, site_result(f), why);
	return 0;
}
