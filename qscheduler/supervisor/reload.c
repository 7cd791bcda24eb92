/* A worker reads and judges the operator's file, and puts what is right in
 * force on disk: any of these files may lie on a disk that does not answer. The
 * loop reads what is in force then. */
#include "qscheduler/supervisor/supervisor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "ipc/msg.h"
#include "log/log.h"

#define OLD_STAYS "the old configuration stays in force"

/* ---- in the worker ---- */

/* The first line of `more` names parameters that need a restart. The others are
 * for the log. */
static int
put_in_force(
    struct super *s, struct conf *fresh, struct buf *error, struct buf *more)
{
	int r = conf_frozen_changes(s->instance.conf, fresh, more);

	if (r == 0)
		r = buf_add_str(more, "\n");
	/* Sizes and indexes that are built on them go on. */
	if (r == 0)
		r = conf_keep_frozen(s->instance.conf, fresh);
	if (r == 0)
		r = files_check(fresh, &s->instance.users, error);
	if (r == 0)
		r = files_alias_complaints(
		    fresh, s->instance.users.private, more);
	if (r == 0)
		r = inforce_write(&s->base, fresh, error);
	return r;
}

static int
refuse_absent(const char *path, struct buf *error)
{
	int r = buf_printf(error,
	    "%s: %s, and was there before; put the file back, or restart "
	    "qscheduler to run with the defaults",
	    path, strerror(errno));

	return r < 0 ? r : -ENOENT;
}

static int
judge(const struct worker_call *call)
{
	struct super *s = call->ctx;
	struct conf fresh = { 0 };
	int r = conf_load(s->options.conf_path, &fresh, call->error);

	if (r < 0)
		return r;
	/* The defaults are no successor of a file that was moved away. */
	if (s->file_seen && access(conf_path(&fresh), F_OK) < 0)
		r = refuse_absent(conf_path(&fresh), call->error);
	if (r == 0)
		r = put_in_force(s, &fresh, call->error, call->more);
	conf_done(&fresh);
	return r;
}

/* ---- in the supervisor ---- */

static void
tell_children(struct super *s)
{
	const struct msg msg = { .type = MSG_RELOAD,
		.u.RELOAD = { .generation = s->reloads } };
	uint32_t i;

	for (i = 0; i < s->queues.nqueues; i++)
		group_send_all(&s->queues.queues[i]->group, &msg);
	group_send_all(&s->services.group, &msg);
}

/* The first line has the names of parameters. */
static void
tell_result(struct super *s, struct buf *lines)
{
	const size_t len = strcspn(buf_str(lines), "\n");

	snprintf(s->reload.restart, sizeof(s->reload.restart), "%.*s", (int)len,
	    buf_str(lines));
	if (len >= sizeof(s->reload.restart))
		snprintf(s->reload.restart, sizeof(s->reload.restart),
		    "see the log");
	if (len > 0)
		log_warning("reload: changed, but needs a restart: %.*s",
		    (int)len, buf_str(lines));
	memset(lines->data, '\n', len);
	publish_warnings(lines);
}

/* The worker has just written what is in force: it is in memory. */
static int
apply(struct super *s, struct buf *lines, struct buf *error)
{
	struct conf *fresh = calloc(1, sizeof(*fresh));
	int r = fresh == NULL ? -ENOMEM : inforce_load(&s->base, fresh, error);

	if (r < 0) {
		free(fresh);
		return r;
	}
	tell_result(s, lines);
	conf_free(&s->instance.conf);
	s->instance.conf = fresh;
	inforce_keep(&s->base, &s->in_force);
	s->reloads++;
	daemon_open_log(s->instance.conf, "qscheduler");
	tell_children(s);
	log_info("configuration reloaded");
	return 0;
}

void
reload_note(struct super *s, const char *error)
{
	struct buf clean = { 0 };
	char *out = s->reload.error;

	/* A line end in the status would be an assignment of its own. */
	if (error != NULL)
		(void)text_clean(
		    &clean, error, strlen(error), SCHED_CONF_ERROR_SIZE - 1);
	memset(out, 0, SCHED_CONF_ERROR_SIZE);
	memcpy(out, buf_str(&clean), clean.len);
	buf_done(&clean);
}

int
reload_ask(struct super *s, const struct asker *asker)
{
	struct reload *r = &s->reload;

	if (r->nwaiting == RELOAD_ASKERS)
		return -EBUSY;
	r->waiting[r->nwaiting].asker = *asker;
	r->waiting[r->nwaiting++].begun = false;
	s->reload_wanted = true;
	super_reload_if_wanted(s, clock_mono());
	return 0;
}

/* A command that asked while this reload was running waits for the next one,
 * which reads what the operator has changed meanwhile. all: none follows. */
static void
answer_askers(struct super *s, bool all)
{
	struct reload *r = &s->reload;
	const bool refused = r->error[0] != '\0';
	char done[SCHED_ANSWER_SIZE];
	size_t i, kept = 0;

	snprintf(done, sizeof(done), "configuration reloaded%s%s",
	    r->restart[0] != '\0' ? "; needs a restart: " : "", r->restart);
	for (i = 0; i < r->nwaiting; i++)
		if (r->waiting[i].begun || all)
			publish_answer(s, &r->waiting[i].asker,
			    refused ? -EBADMSG : 0,
			    refused ? "old configuration in force" : done);
		else
			r->waiting[kept++] = r->waiting[i];
	r->nwaiting = kept;
}

/* Children that failed are tried at once: the cause may have been put right. */
static void
over(struct super *s)
{
	const usec_t now = clock_mono();
	uint32_t i;

	/* The reason is there before a command reads it. */
	publish(s, now);
	answer_askers(s, false);
	for (i = 0; i < s->queues.nqueues; i++)
		(void)quarantine_release(s->queues.queues[i]);
	(void)group_release(&s->services.group);
	/* Without that the next tick finds and tells a new status. */
	if (s->reload_told) {
		status_make(s, now, s->status, sizeof(s->status));
		notify_ready(&s->notify, s->status);
	}
	s->reload_told = false;
}

static void
on_judged(void *ctx, uint32_t number UNUSED, const struct worker_result *result,
    struct buf *more)
{
	struct super *s = ctx;
	struct buf error = { 0 };
	const char *why = NULL;
	int r = result->r;

	if (s->stopping) {
		reload_note(s, "qscheduler is stopping");
		answer_askers(s, true);
		return;
	}
	if (r < 0)
		why = result->text;
	else if ((r = apply(s, more, &error)) < 0)
		why = error.len > 0 ? buf_str(&error) : strerror(-r);
	if (why != NULL)
		log_error(result->r == -ETIMEDOUT ? "reload: %s; " OLD_STAYS
						    " until it does"
						  : "reload: %s: " OLD_STAYS,
		    why);
	reload_note(s, why);
	buf_done(&error);
	over(s);
}

static const struct worker_task judging = { "read the configuration", judge,
	on_judged };

static void
begin(struct super *s)
{
	int r = worker_start(&s->workers, &judging, WORKER_CONF, s);
	size_t i;

	for (i = 0; i < s->reload.nwaiting; i++)
		s->reload.waiting[i].begun = true;
	if (r < 0) {
		log_error("reload: %s: " OLD_STAYS, strerror(-r));
		reload_note(s, strerror(-r));
		over(s);
		return;
	}
	/* A start that is not ready yet must not be told ready. */
	s->reload_told = s->ready;
	if (s->ready)
		notify_tell(&s->notify, "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
		    clock_mono());
}

void
super_reload_if_wanted(struct super *s, usec_t now)
{
	if (!s->reload_wanted || s->stopping || !s->queues.started ||
	    now - s->last_reload < EVERY_TICK ||
	    worker_runs(&s->workers, WORKER_CONF))
		return;
	s->reload_wanted = false;
	s->last_reload = now;
	/* Disks and queues are checked at once: the cause may have been put
	 * right. */
	s->next_health = s->queues.sweep_at = s->queues.days_at = now;
	begin(s);
}
