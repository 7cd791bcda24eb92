#include "qscheduler/supervisor/supervisor.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "log/log.h"

#define READY_AFTER    (10 * USEC_PER_SEC) /* at the latest, from the start */
/* A process that not even SIGKILL ends is left behind after this. */
#define STOP_GRACE     (5 * USEC_PER_SEC)
/* Queues are asked to end when the services have, and after this in any case:
 * a service may still put mail into them. */
#define SERVICES_FIRST (2 * USEC_PER_SEC)

static void
end_loop(struct super *s, int status)
{
	s->done = true;
	s->exit_status = status;
	event_base_loopbreak(s->instance.loop);
}

static void
warn_host(const struct super *s)
{
	struct buf lines = { 0 };

	(void)file_systems_warn(s->instance.conf, &lines);
	(void)start_warn_programs(s->instance.conf, &s->instance.users, &lines);
	publish_warnings(&lines);
}

static void
be_ready(struct super *s, usec_t now)
{
	s->ready = true;
	status_make(s, now, s->status, sizeof(s->status));
	publish(s, now);
	notify_ready(&s->notify, s->status);
	log_info("ready: %s", s->status);
	warn_host(s);
}

/* ---- the stop ---- */

static void
stop_queues(struct super *s)
{
	uint32_t i;

	s->stop_queues_at = 0;
	for (i = 0; i < s->queues.nqueues; i++)
		queue_stop(s->queues.queues[i]);
}

static void
stop_progress(struct super *s)
{
	const bool services = group_is_down(&s->services.group);

	if (s->stop_queues_at != 0 && services)
		stop_queues(s);
	if (!s->done && s->stop_queues_at == 0 && services &&
	    queues_are_down(&s->queues))
		end_loop(s, 0);
}

/* A child has changed: is all there, or gone, now? */
static void
on_progress(void *ctx)
{
	struct super *s = ctx;

	if (s->stopping)
		stop_progress(s);
	else if (!s->ready && s->queues.started &&
	    queues_are_ready(&s->queues) && services_are_ready(s))
		be_ready(s, clock_mono());
}

void
super_stop(struct super *s)
{
	const usec_t now = clock_mono();
	const bool services = !group_is_down(&s->services.group);

	if (s->stopping)
		return;
	s->stopping = s->queues.stopping = true;
	s->stop_queues_at = now + SERVICES_FIRST;
	s->stop_deadline = now + s->instance.conf->stop_time_limit +
	    (services ? SERVICES_FIRST : 0) + FOLLOW_LIMIT + STOP_GRACE;
	log_info("stopping");
	notify_tell(&s->notify, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRId64,
	    s->stop_deadline - now + STOP_GRACE);
	group_leave(&s->services.group);
	stop_progress(s);
}

static void
tell_left(const struct group *g, const char *why)
{
	unsigned i;

	for (i = 0; i < g->n; i++)
		if (proc_is_there(&g->child[i].proc))
			log_error("%s (pid %ld) does not end: left behind%s%s",
			    g->child[i].name, (long)g->child[i].process.pid,
			    why[0] == '\0' ? "" : ": ", why);
}

/* Workers wait where no signal reaches them, and end when the disk answers. */
static void
tell_all_left(const struct super *s)
{
	uint32_t i;

	tell_left(&s->services.group, "");
	for (i = 0; i < s->queues.nqueues; i++) {
		const struct queue *q = s->queues.queues[i];

		tell_left(&q->group, q->unanswered ? queue_reason(q) : "");
	}
}

static void
stop_tick(struct super *s, usec_t now)
{
	if (s->stop_queues_at != 0 && now >= s->stop_queues_at) {
		stop_queues(s);
		stop_progress(s);
	}
	if (now >= s->stop_deadline && !s->done) {
		tell_all_left(s);
		end_loop(s, EXIT_TEMPORARY);
	}
}

/* ---- each tick ---- */

static void
tell_status(struct super *s, usec_t now)
{
	char status[sizeof(s->status)];

	status_make(s, now, status, sizeof(status));
	if (strcmp(status, s->status) != 0) {
		memcpy(s->status, status, sizeof(status));
		notify_tell(&s->notify, "STATUS=%s", status);
	}
}

static void
check_health(struct super *s, usec_t now)
{
	uint32_t i;

	if (now < s->next_health || s->stopping)
		return;
	s->next_health = now + EVERY_HEALTH;
	publish_health(s);
	requests_health(s);
	sites_collect(&s->queues);
	for (i = 0; i < s->queues.nqueues; i++)
		queue_health(s->queues.queues[i]);
}

static void
tick_floors(struct super *s, usec_t now)
{
	uint32_t i;

	children_reap(&s->children); /* SIGCHLD may be lost */
	super_reload_if_wanted(s, now);
	services_tick(s, now);
	override_tick(&s->queues, now);
	for (i = 0; i < s->queues.nqueues; i++)
		queue_tick(s->queues.queues[i], now);
	orphans_tick(&s->children, now);
	sites_tick(&s->queues);
	retirement_tick_all(&s->queues, now);
	days_tick(&s->queues, now);
}

void
super_tick(struct super *s)
{
	const usec_t now = clock_mono();

	tick_floors(s, now);
	grow_tick(s, now);
	check_health(s, now);
	store_tick(s, now);
	publish_tick(s);
	requests_tick(s);
	publish(s, now);
	notify_alive(&s->notify, now);
	if (!s->ready && !s->stopping && now - s->started_at >= READY_AFTER)
		be_ready(s, now);
	if (s->ready)
		tell_status(s, now);
	if (s->stopping && !s->done)
		stop_tick(s, now);
}

/* ---- the floors ---- */

static void
on_show(void *ctx, usec_t now)
{
	publish(ctx, now);
}

static void
on_overrides_changed(void *ctx)
{
	store_changed(ctx);
}

static const struct queue_events queue_events = {
	.show = on_show,
	.progress = on_progress,
	.overrides_changed = on_overrides_changed,
};

void
super_init(struct super *s, const struct options *options)
{
	memset(s, 0, sizeof(*s));
	s->options = *options;
	s->instance.conf_path = options->conf_path;
	s->base.fd = s->base.lock = -1;
	s->workers.instance = &s->instance;
	s->workers.keep = s->workers.lock = -1;
	s->children.instance = &s->instance;
	s->children.orphans_gone = queues_orphans_gone;
	s->children.ctx = &s->queues;
	s->children.orphans.fd = -1;
	s->queues.instance = &s->instance;
	s->queues.workers = &s->workers;
	s->queues.children = &s->children;
	s->queues.base = &s->base;
	s->queues.child_events = &queue_child_events;
	s->queues.events = &queue_events;
	s->queues.ctx = s;
	s->queues.reports = s->requests.mq = -1;
	s->requests.socket.fd = s->requests.socket.base = -1;
	s->queues.sites.fd = -1;
	s->publisher.fd = -1;
}

void
super_start(struct super *s)
{
	const struct timeval second = { EVERY_TICK / USEC_PER_SEC, 0 };
	const usec_t now = clock_mono();
	uint32_t i;

	s->started_at = now;
	s->last_reload = now - EVERY_TICK;
	s->next_health = s->queues.sweep_at = now + EVERY_HEALTH;
	s->queues.days_at = now + EVERY_HEALTH;
	scale_init(&s->grow.scale);
	publish(s, now);
	for (i = 0; i < s->queues.nqueues; i++)
		if (!s->queues.queues[i]->faulty)
			queue_start(s->queues.queues[i]);
	group_start(&s->services.group);
	if (event_add(s->tick, &second) < 0)
		log_error("no timer: nothing is published");
	s->queues.started = true;
	on_progress(s);
}
