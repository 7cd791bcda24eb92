#include "queue-send/road.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"
#include "queue-send/report_task.h"
#include "submit/submit.h"

#define TASKS_MAX   8
#define LOCKED_WAIT (100 * USEC_PER_MSEC) /* settled by another process */

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

bool
reports_is_wanting(const struct send *s, const struct message *m)
{
	return m->failed > 0 && !m->reported && told_to(s, m)[0] != '\0';
}

/* ---- tasks that are done ---- */

static void
leaves(struct send *s, struct message *m)
{
	m->reported = true;
	messages_put(&s->messages, m, LIST_FINISHED);
}

static void
say_made(const struct message *m, const struct report_task *t)
{
	char id[QUEUE_ID_SIZE], made[QUEUE_ID_SIZE];

	message_id(m, id);
	queue_id_format(&t->made, made);
	log_message(LOG_INFO_L, "notification", id,
	    "%s non-delivery notification: %s",
	    t->kind == REPORT_DOUBLE ? "postmaster" : "sender", made);
}

/* The next attempt tells of the failures. */
static void
put_off(struct send *s, struct message *m, int error)
{
	if (error != -ESHUTDOWN)
		disk_write_failed(s, m, "write a report", error);
	m->deferred++;
	leaves(s, m);
}

static void
failed(struct send *s, struct message *m, int error)
{
	if (error == -EAGAIN || disk_is_shortage(error)) {
		s->reports.not_before = s->now + LOCKED_WAIT;
		messages_put(&s->messages, m, LIST_UNREPORTED);
	} else if (error == -EBADMSG || error == -EPERM) {
		m->error = error;
		message_decide(m, FATE_DAMAGED);
		leaves(s, m);
	} else if (error == -ENOENT) { /* finish.c deals with that */
		leaves(s, m);
	} else {
		put_off(s, m, error);
	}
}

static bool
is_of(const struct message *m, const struct report_task *t)
{
	return m != NULL && m->list == LIST_REPORTING &&
	    message_is(m, t->id.arrival_wall, t->id.nonce);
}

static void
one_is_done(struct send *s, struct report_task *t)
{
	struct message *m = messages_find(&s->messages, t->id.inode);

	s->reports.tasks--;
	if (!is_of(m, t))
		return;
	if (t->task.error < 0) {
		failed(s, m, t->task.error);
		return;
	}
	if (t->count > 0) {
		say_made(m, t);
		s->want_scan = true; /* only qmailq may ring the bell */
	}
	leaves(s, m);
}

static void
on_done(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct send *s = arg;
	struct sync_task *task;

	send_read_clocks(s);
	while ((task = sync_pool_take(s->reports.pool)) != NULL) {
		one_is_done(s, (struct report_task *)(void *)task);
		sync_task_free(task);
	}
	send_wake(s);
}

/* ---- tasks to do ---- */

static struct report_task *
task_of(struct send *s, const struct message *m)
{
	struct report_task *t = calloc(1, sizeof(*t));
	int i;

	if (t == NULL)
		return NULL;
	for (i = 0; i < SYNC_JOB_FDS; i++)
		t->task.fds[i] = -1;
	t->task.inode = m->inode;
	t->task.work = report_task_work;
	t->sp = &s->sp;
	t->id = (struct queue_id){ .arrival_wall = m->file.arrival_wall,
		.nonce = m->file.nonce,
		.queue = m->file.queue,
		.inode = m->inode };
	t->kind = m->sender[0] == '\0' ? REPORT_DOUBLE : REPORT_FAILURE;
	t->opt = submit_accept_options(s->conf, SPOOL_PREPARED);
	t->opt.max_content = 0;
	t->opt.flags = t->kind == REPORT_DOUBLE ? QUEUE_FILE_FINAL : 0;
	t->size_limit = s->conf->bounce_size_limit;
	t->now_wall = s->now_wall;
	snprintf(t->sender, sizeof(t->sender), "%s", m->sender);
	snprintf(t->to, sizeof(t->to), "%s", told_to(s, m));
	conf_host(s->conf, t->host);
	conf_domain(s->conf, t->domain);
	return t;
}

static int
start_one(struct send *s, struct message *m)
{
	struct report_task *t = task_of(s, m);
	int r = t == NULL ? -ENOMEM : sync_pool_put(s->reports.pool, &t->task);

	if (r < 0) {
		free(t);
		return r;
	}
	s->reports.tasks++;
	messages_put(&s->messages, m, LIST_REPORTING);
	return 0;
}

usec_t
reports_work(struct send *s)
{
	struct message *m;

	if (s->now < s->reports.not_before)
		return s->reports.not_before;
	while (s->reports.tasks < TASKS_MAX &&
	    (m = messages_first(&s->messages, LIST_UNREPORTED)) != NULL) {
		if (start_one(s, m) == 0)
			continue;
		s->reports.not_before = s->now + LOCKED_WAIT;
		return s->reports.not_before;
	}
	return USEC_NEVER;
}

/* ---- start and end ---- */

int
reports_init(struct send *s)
{
	struct reports *p = &s->reports;

	p->pool = sync_pool_new(s->sp.sys, s->sync.threads);
	if (p->pool == NULL)
		return -ENOMEM;
	p->done = event_new(
	    s->base, sync_pool_fd(p->pool), EV_READ | EV_PERSIST, on_done, s);
	if (p->done == NULL || event_add(p->done, NULL) < 0)
		return -ENOMEM;
	return 0;
}

void
reports_done(struct send *s)
{
	if (s->reports.done != NULL)
		event_free(s->reports.done);
	s->reports.done = NULL;
	sync_pool_free(&s->reports.pool);
}
