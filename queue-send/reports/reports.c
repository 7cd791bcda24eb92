#include "queue-send/reports/own.h"

#include <bsd/stdlib.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"
#include "queue-send/reports/report_task.h"
#include "queue-send/disk/work.h"
#include "spool/waiting.h"
#include "submit/submit.h"

#define TASKS_MAX    8
#define LOCKED_WAIT  (100 * USEC_PER_MSEC) /* settled by another process */
#define LOCKED_TRIES 100                   /* 10 s: no settling takes as long */

/* ---- to whom ---- */

static const char *
told_to(const struct send *s, const struct message *m)
{
	if (m->sender[0] != '\0')
		return m->sender;
	return (m->file.flags & QUEUE_FILE_FINAL) != 0
	    ? ""
	    : s->conf->double_bounce_recipient;
}

static struct told_to
rate_of(const struct send *s, const struct message *m)
{
	return (struct told_to){ waiting_account(m->file.uid), told_to(s, m) };
}

/* Late, with a recipient pending, of an attempt that nothing else has ended.
 * Mail that will have been given up by then is told of once. A VERP address is
 * read by a program, which takes all that comes there for a failure. */
static bool
is_to_warn(const struct send *s, const struct message *m)
{
	const usec_t after = s->conf->delay_warning_time;

	return after > 0 && after < s->retry.lifetime && !m->warned &&
	    !m->verp && !m->expires && m->sender[0] != '\0' &&
	    m->deferred > 0 &&
	    (m->fate == FATE_OPEN || m->fate == FATE_EVICTED) &&
	    jumps_age(&s->jumps, m->file.arrival_wall, s->now_wall) >= after;
}

bool
reports_is_wanting(const struct send *s, const struct message *m)
{
	return !m->reported &&
	    ((m->failed > 0 && told_to(s, m)[0] != '\0') || m->succeeded ||
		is_to_warn(s, m));
}

/* ---- a task ---- */

struct report_task *
report_task_new(struct send *s, const struct queue_id *id,
    void (*ended)(void *send, struct sync_task *task))
{
	struct report_task *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	sync_task_init(&t->task, report_task_work, NULL, ended);
	t->task.inode = id->inode;
	t->sp = &s->sp;
	t->id = *id;
	t->opt = submit_accept_options(s->conf, SPOOL_PREPARED, ROOM_SYSTEM);
	t->opt.max_content = 0;
	t->opt.flags = QUEUE_FILE_REPORT;
	t->size_limit = s->conf->bounce_size_limit;
	t->rcpts_limit = report_rcpts_limit(s->conf->bounce_size_limit);
	t->now_wall = s->now_wall;
	conf_host(s->conf, t->host);
	conf_domain(s->conf, t->domain);
	return t;
}

void
reports_say_waits(const struct queue_id *message, const struct told_to *to)
{
	char id[QUEUE_ID_SIZE];
	const struct log_field fields[] = {
		LOG_ADDR("report_to", to->address),
		LOG_INT("uid", to->uid),
	};
	const struct log_event event = {
		.level = LOG_INFO_L,
		.name = "report-waits",
		.id = id,
		.fields = fields,
		.nfields = ARRAY_LEN(fields),
		.text = "its report waits, since report_rate_limit is reached",
	};

	queue_id_format(message, id);
	log_write(&event);
}

/* One report was counted when the task began. Those of a VERP message count
 * for its stored sender, whatever the addresses that they go to. */
void
report_task_count(struct send *s, const struct report_task *t)
{
	const uint32_t limit = s->conf->report_rate_limit;
	const struct told_to to = { t->uid, t->to };
	struct told_rate *told = &s->reports->told;
	uint32_t i, n = t->nalone;

	s->reports->tasks--;
	if (t->look)
		return; /* none was counted */
	for (i = 0; i < REPORT_NKINDS; i++)
		n += t->made[i].count > 0;
	if (n == 0)
		told_take_back(told, &to, limit);
	for (i = 1; i < n; i++)
		told_count(told, &to, limit, s->now);
}

static void
say_one_made(struct send *s, const struct report_task *t, enum report_kind kind,
    const struct queue_id *made)
{
	static const char *const names[REPORT_NKINDS] = {
		[REPORT_FAILURE] = "sender non-delivery",
		[REPORT_DOUBLE] = "postmaster non-delivery",
		[REPORT_DELAY] = "sender delay",
		[REPORT_SUCCESS] = "sender delivery status",
	};
	char id[QUEUE_ID_SIZE], text[QUEUE_ID_SIZE];

	queue_id_format(&t->id, id);
	queue_id_format(made, text);
	log_message(LOG_INFO_L, "notification", id, "%s notification: %s",
	    names[kind], text);
	s->want_scan = true; /* only qmailq may ring the bell */
}

void
report_task_say_made(struct send *s, const struct report_task *t)
{
	uint32_t i;

	for (i = 0; i < REPORT_NKINDS; i++)
		if (t->made[i].count > 0)
			say_one_made(s, t, (enum report_kind)i, &t->made[i].id);
	for (i = 0; i < t->nalone; i++)
		say_one_made(s, t, t->made_alone[i].kind, &t->made_alone[i].id);
}

/* ---- tasks that are done ---- */

static void
leaves(struct send *s, struct message *m)
{
	m->reported = true;
	messages_put(&s->messages, m, STATE_FINISHED);
}

/* Said when the message has no recipient left. */
static void
say_unwanted(const struct message *m, uint32_t count)
{
	char id[QUEUE_ID_SIZE];

	if (count == 0 || m->deferred > 0)
		return;
	message_id(m, id);
	log_message(LOG_INFO_L, "unreported", id,
	    "recipients that failed for good, without a report: %u (the sender "
	    "asked for none)",
	    count);
}

/* The next attempt tells of the failures. */
static void
put_off(struct send *s, struct message *m)
{
	m->deferred++;
	m->untold = m->failed > 0;
	leaves(s, m);
}

/* A message that cannot be read, and could not for longer than mail is kept, is
 * put where an operator finds it. */
static void
give_up(struct send *s, struct message *m, int error)
{
	m->error = error;
	m->why = "it or its reasons cannot be read to report its failures";
	message_decide(m, FATE_DAMAGED);
	leaves(s, m);
}

static void
not_made(struct send *s, struct message *m, const struct report_task *t)
{
	const int error = t->task.error;

	if (t->trouble == REPORT_READING && message_is_hopeless(s, m)) {
		give_up(s, m, error);
		return;
	}
	if (error != -ESHUTDOWN)
		disk_write_failed(s, m,
		    t->trouble == REPORT_READING ? "read what is to be reported"
						 : "write a report",
		    error);
	put_off(s, m);
}

/* Settling takes moments. A lock that is held for longer is not of ours, and
 * holds up this report alone. */
static void
is_locked(struct send *s, struct message *m)
{
	char id[QUEUE_ID_SIZE];

	if (m->locked++ < LOCKED_TRIES) {
		messages_put(&s->messages, m, STATE_UNREPORTED);
		return;
	}
	message_id(m, id);
	log_message(LOG_WARNING_L, "report-waits", id,
	    "the report of its failures waits for the next attempt: another "
	    "process holds a lock on active/%llu",
	    (unsigned long long)m->inode);
	m->locked = 0;
	put_off(s, m);
}

static void
failed(struct send *s, struct message *m, const struct report_task *t)
{
	const int error = t->task.error;

	if (error == -EAGAIN) {
		s->reports->not_before = s->now + LOCKED_WAIT;
		is_locked(s, m);
	} else if (disk_is_shortage(error)) {
		s->reports->not_before = s->now + LOCKED_WAIT;
		messages_put(&s->messages, m, STATE_UNREPORTED);
	} else if (error == -EBADMSG || error == -EPERM) {
		m->error = error;
		message_decide(m, FATE_DAMAGED);
		leaves(s, m);
	} else if (error == -ENOENT) { /* finish.c deals with that */
		leaves(s, m);
	} else {
		not_made(s, m, t);
	}
}

/* An address that has had its reports gets the others later. */
static void
has_to_wait(struct send *s, struct message *m)
{
	const struct told_to to = rate_of(s, m);
	const usec_t wait = told_wait(
	    &s->reports->told, &to, s->conf->report_rate_limit, s->now);
	const struct queue_id id = message_queue_id(m);

	if (wait == 0) { /* by now */
		messages_put(&s->messages, m, STATE_UNREPORTED);
		return;
	}
	reports_say_waits(&id, &to);
	m->wait_s = (uint32_t)(wait / USEC_PER_SEC) + 1;
	put_off(s, m);
}

static bool
is_of(const struct message *m, const struct report_task *t)
{
	return m != NULL && m->state == STATE_REPORTING &&
	    message_is(m, t->id.arrival_wall, t->id.nonce);
}

static void
one_is_done(struct send *s, struct report_task *t)
{
	struct message *m = messages_find(&s->messages, t->id.inode);

	report_task_count(s, t);
	if (!is_of(m, t))
		return;
	report_task_say_made(s, t);
	if (t->task.error < 0) {
		failed(s, m, t);
		return;
	}
	if (t->wanting) {
		has_to_wait(s, m);
		return;
	}
	if (t->left) {
		messages_put(&s->messages, m, STATE_UNREPORTED);
		return;
	}
	say_unwanted(m, t->unwanted);
	leaves(s, m);
}

static void
ended(void *send, struct sync_task *task)
{
	one_is_done(send, (struct report_task *)(void *)task);
	send_wake(send);
	sync_task_free(task);
}

/* ---- tasks to do ---- */

/* The end of the attempts. */
static usec_t
until_of(const struct send *s, const struct message *m)
{
	return s->now_wall + s->retry.lifetime -
	    jumps_age(&s->jumps, m->file.arrival_wall, s->now_wall);
}

static struct report_task *
task_of(struct send *s, const struct message *m)
{
	const struct queue_id id = message_queue_id(m);
	const struct told_to to = rate_of(s, m);
	struct report_task *t = report_task_new(s, &id, ended);

	if (t == NULL)
		return NULL;
	t->kind = m->sender[0] == '\0' ? REPORT_DOUBLE : REPORT_FAILURE;
	t->warn = is_to_warn(s, m);
	t->alone = m->verp;
	t->look = told_is_above(
	    &s->reports->told, &to, s->conf->report_rate_limit, s->now);
	t->until_wall = until_of(s, m);
	if (t->kind == REPORT_DOUBLE)
		t->opt.flags |= QUEUE_FILE_FINAL;
	snprintf(t->sender, sizeof(t->sender), "%s", m->sender);
	snprintf(t->to, sizeof(t->to), "%s", to.address);
	t->uid = to.uid;
	return t;
}

static int
start_one(struct send *s, struct message *m)
{
	struct report_task *t = task_of(s, m);

	if (t == NULL)
		return -ENOMEM;
	t->begins = m->first && !m->bounce_begun;
	m->bounce_begun = true;
	s->reports->tasks++;
	if (!t->look)
		told_count(&s->reports->told,
		    &(struct told_to){ t->uid, t->to },
		    s->conf->report_rate_limit, s->now);
	messages_put(&s->messages, m, STATE_REPORTING);
	disk_do(s, DISK_REPORT, &t->task);
	return 0;
}

usec_t
reports_work(struct send *s)
{
	struct reports *p = s->reports;
	struct message *m;

	while (s->now >= p->not_before && p->tasks < TASKS_MAX &&
	    (m = messages_first(&s->messages, STATE_UNREPORTED)) != NULL)
		if (start_one(s, m) < 0)
			p->not_before = s->now + LOCKED_WAIT;
	return s->now < p->not_before ? p->not_before : USEC_NEVER;
}

/* ---- start and end ---- */

int
reports_init(struct send *s)
{
	s->reports = calloc(1, sizeof(*s->reports));
	if (s->reports == NULL)
		return -ENOMEM;
	arc4random_buf(&s->reports->told.seed, sizeof(s->reports->told.seed));
	return 0;
}

void
reports_done(struct send *s)
{
	free(s->reports);
	s->reports = NULL;
}
