/* A reload: the files may lie on a disk that does not answer, so a thread reads
 * them where the program says what it reads (ops->read). Only the loop logs. */
#include "daemon/daemon.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/executor.h"
#include "log/log.h"

#define OLD_STAYS "the old configuration stays in force"

struct reading {
	struct sync_task task; /* first */

	/* To be done. The old configuration is in force until it has ended. */
	const struct daemon_ops *ops;
	const char *path;
	const struct conf *old;

	/* Done. The error of the task is that of the configuration. */
	struct conf *fresh;
	struct buf frozen, error;
	void *made;
	int made_result;
	struct buf made_error;
};

/* ---- in the thread ---- */

static int
read_conf(struct reading *t)
{
	int r = -ENOMEM;

	t->fresh = calloc(1, sizeof(*t->fresh));
	if (t->fresh != NULL)
		r = conf_load(t->path, t->fresh, &t->error);
	if (r < 0)
		return r;
	if (conf_frozen_changes(t->old, t->fresh, &t->frozen) < 0)
		buf_reset(&t->frozen);
	/* Sizes and indexes that were built on these values stay right. */
	return conf_keep_frozen(t->old, t->fresh);
}

static int
read_all(struct sync_task *task)
{
	struct reading *t = (struct reading *)(void *)task;
	int r = read_conf(t);

	if (r == 0 && t->ops->read != NULL)
		t->made_result =
		    t->ops->read(t->fresh, &t->made, &t->made_error);
	return r;
}

static void
drop(struct sync_task *task)
{
	struct reading *t = (struct reading *)(void *)task;

	if (t->made != NULL)
		t->ops->drop(t->made);
	conf_free(&t->fresh);
	buf_done(&t->frozen);
	buf_done(&t->error);
	buf_done(&t->made_error);
}

/* ---- in the loop ---- */

static const char *
words_of(const struct buf *error, int r)
{
	return error->len > 0 ? buf_str(error) : strerror(-r);
}

/* The program takes what was made. */
static void
put_in_force(struct daemon *d, struct reading *t)
{
	daemon_open_log(t->fresh, d->log_name);
	if (t->made_result < 0)
		log_error("%s", words_of(&t->made_error, t->made_result));
	d->made = t->made;
	t->made = NULL;
	if (d->ops->reload != NULL)
		d->ops->reload(d, t->fresh);
	d->made = NULL;
	conf_free(&d->conf);
	d->conf = t->fresh;
	t->fresh = NULL;
	log_debug("configuration reloaded");
}

static void
ended(struct daemon *d, struct reading *t)
{
	const int r = t->task.error;

	if (!d->stopping && t->frozen.len > 0)
		log_warning("reload: changed, but needs a restart: %s",
		    buf_str(&t->frozen));
	if (!d->stopping && r < 0)
		log_error("reload: %s: " OLD_STAYS, words_of(&t->error, r));
	else if (!d->stopping)
		put_in_force(d, t);
	sync_task_free(&t->task);
}

/* Requests that came meanwhile. A flush is by what it was asked behind, or by
 * something later. */
static void
go_on(struct daemon *d)
{
	struct daemon_reload *p = &d->reload;

	if (p->again && !d->stopping) {
		p->again = false;
		daemon_reload(d);
	}
	if (p->flush && !p->away) {
		p->flush = false;
		daemon_flush(d);
	}
}

static void
on_ended(void *arg, struct sync_task *task)
{
	struct daemon *d = arg;

	d->reload.away = false;
	ended(d, (struct reading *)(void *)task);
	go_on(d);
}

static void
woken(void *arg UNUSED)
{
}

/* Once, with the first reload. Without read() the loop reads. */
static int
make_executor(struct daemon *d)
{
	const struct executor_owner owner = { d->base, &spool_sys_real, d,
		woken };
	const struct executor_kind kind = { .threads = d->ops->read != NULL,
		.share_least = 1,
		.share_most = 1 };

	return d->reload.executor != NULL
	    ? 0
	    : executor_new(&owner, &kind, 1, &d->reload.executor);
}

void
daemon_reload(struct daemon *d)
{
	struct reading *t;

	if (d->reload.away) {
		d->reload.again = true;
		return;
	}
	t = calloc(1, sizeof(*t));
	if (t == NULL) {
		log_error("reload: %s: " OLD_STAYS, strerror(ENOMEM));
		return;
	}
	sync_task_init(&t->task, read_all, drop, on_ended);
	t->ops = d->ops;
	t->path = d->conf_path;
	t->old = d->conf;
	d->reload.away = true;
	if (make_executor(d) == 0) {
		executor_do(d->reload.executor, 0, &t->task);
		return;
	}
	/* All programs of an instance have one configuration. */
	sync_task_run(&spool_sys_real, &t->task);
	on_ended(d, &t->task);
}

void
daemon_flush(struct daemon *d)
{
	if (d->reload.away)
		d->reload.flush = true;
	else if (d->ops->flush != NULL && !d->stopping)
		d->ops->flush(d);
}

bool
daemon_reload_done(struct daemon *d)
{
	return executor_free(&d->reload.executor);
}
