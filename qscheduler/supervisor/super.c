#include "qscheduler/supervisor/super.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "log/log.h"
#include "qscheduler/supervisor/env.h"
#include "qscheduler/supervisor/files.h"

/* For agents whose queue-send is gone, and todo-proc. */
#define ORPHAN_LIMIT (2 * USEC_PER_SEC)
/* STARTING includes the wait for the lock of a queue-send of before, which may
 * take as long as a stop, and the look at what a crash left. */
#define READY_LIMIT  (60 * USEC_PER_SEC)
/* A process that not even SIGKILL ends is left behind after this. */
#define STOP_GRACE   (5 * USEC_PER_SEC)

void
super_limits(const struct super *s, bool orphan, struct proc_limits *ret)
{
	const usec_t stop = s->conf->stop_time_limit;

	*ret = (struct proc_limits){
		.ready_limit = stop + READY_LIMIT,
		.stop_limit =
		    orphan && stop > ORPHAN_LIMIT ? ORPHAN_LIMIT : stop,
		.delay_max = s->conf->restart_delay_max,
		.quarantine_max = s->conf->quarantine_delay_max,
	};
}

/* ---- the loop ---- */

static void
end_loop(struct super *s, int status)
{
	s->done = true;
	s->exit_status = status;
	event_base_loopbreak(s->loop);
}

static void
describe(struct super *s, usec_t now, char *out, size_t size)
{
	unsigned counts[QUEUE_STATE_QUARANTINED + 1] = { 0 };
	uint32_t i;

	for (i = 0; i < s->nqueues; i++)
		counts[queue_state(s->queues[i], now)]++;
	snprintf(out, size,
	    "%s%u queues open, %u closing, %u disabled, %u quarantined",
	    s->stopping ? "stopping: " : "", counts[QUEUE_STATE_OPEN],
	    counts[QUEUE_STATE_CLOSING], counts[QUEUE_STATE_DISABLED],
	    counts[QUEUE_STATE_QUARANTINED]);
}

static bool
all_ready(const struct super *s)
{
	uint32_t i;

	for (i = 0; i < s->nqueues; i++)
		if (!queue_is_ready(s->queues[i]))
			return false;
	return true;
}

static bool
all_down(const struct super *s)
{
	uint32_t i;

	for (i = 0; i < s->nqueues; i++)
		if (!queue_is_down(s->queues[i]))
			return false;
	return true;
}

static void
be_ready(struct super *s, usec_t now)
{
	s->ready = true;
	describe(s, now, s->status, sizeof(s->status));
	publish(s, now);
	notify_ready(&s->notify, s->status);
	log_info("ready: %s", s->status);
}

void
super_progress(struct super *s)
{
	if (s->stopping) {
		if (!s->done && all_down(s))
			end_loop(s, 0);
	} else if (!s->ready && s->started && all_ready(s)) {
		be_ready(s, clock_mono());
	}
}

static void
tell_status(struct super *s, usec_t now)
{
	char status[sizeof(s->status)];

	describe(s, now, status, sizeof(status));
	if (strcmp(status, s->status) != 0) {
		memcpy(s->status, status, sizeof(status));
		notify_status(&s->notify, status);
	}
}

static void
look_at_health(struct super *s, usec_t now)
{
	uint32_t i;

	if (now < s->next_health || s->stopping)
		return;
	s->next_health = now + SUPER_HEALTH;
	publish_health(s);
	requests_health(s);
	sites_collect(s);
	for (i = 0; i < s->nqueues; i++)
		queue_health(s->queues[i]);
}

/* Looks wait where no signal reaches them, and end when the disk answers.
 */
static void
tell_left(const struct super *s)
{
	uint32_t i;
	int role;

	for (i = 0; i < s->nqueues; i++)
		for (role = 0; role < NROLES; role++) {
			const struct child *c = &s->queues[i]->children[role];

			if (proc_is_there(&c->proc))
				log_error("%s/%" PRIu32 " (pid %ld) does not "
					  "end: left behind%s%s",
				    role_names[role], c->queue->number,
				    (long)c->process.pid,
				    c->queue->unanswered ? ": " : "",
				    c->queue->unanswered
					? queue_reason(c->queue)
					: "");
		}
}

static void
on_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct super *s = arg;
	const usec_t now = clock_mono();
	uint32_t i;

	children_reap(s); /* a net: SIGCHLD may be lost (P9) */
	super_reload_if_wanted(s, now);
	for (i = 0; i < s->nqueues; i++)
		queue_tick(s->queues[i], now);
	orphans_tick(s, now);
	sites_tick(s);
	retire_tick_all(s, now);
	grow_tick(s, now);
	look_at_health(s, now);
	store_tick(s, now);
	publish_tick(s);
	requests_tick(s);
	publish(s, now);
	notify_alive(&s->notify, now);
	if (!s->ready && !s->stopping && now - s->started_at >= SUPER_READY)
		be_ready(s, now);
	if (s->ready)
		tell_status(s, now);
	if (s->stopping && now >= s->stop_deadline && !s->done) {
		tell_left(s);
		end_loop(s, EXIT_TEMPORARY);
	}
}

void
super_stop(struct super *s)
{
	const usec_t now = clock_mono();
	uint32_t i;

	if (s->stopping)
		return;
	s->stopping = true;
	s->stop_deadline =
	    now + s->conf->stop_time_limit + ORPHAN_LIMIT + STOP_GRACE;
	log_info("stopping");
	notify_stopping(&s->notify, s->stop_deadline - now + STOP_GRACE);
	for (i = 0; i < s->nqueues; i++)
		queue_close(s->queues[i]);
	super_progress(s);
}

/* ---- start ---- */

/* A configuration as it was read, with what it names. */
static int
judge_conf(struct super *s, struct buf *error)
{
	int r = daemon_users(s->conf, &s->users, error);

	return r == 0 ? files_check(s->conf, &s->users, error) : r;
}

/* The one that was last in force, so that an error in the operator's file does
 * not keep the supervisor from coming back. */
static int
load_last(struct super *s, const struct buf *wrong)
{
	struct buf error = { 0 };
	int r = conf_load_last(s->options.conf_path, s->conf);

	if (r == 0) {
		daemon_open_log(s->conf, "qscheduler");
		r = judge_conf(s, &error);
		if (r < 0)
			conf_done(s->conf);
	}
	if (r == 0)
		log_error("ALERT: %s: the configuration that was in force, %s, "
			  "is used until that is put right and HUP is sent",
		    buf_str(wrong), conf_path(s->conf));
	buf_done(&error);
	return r;
}

static int
load_file(struct super *s, struct buf *error)
{
	int r = conf_load(s->options.conf_path, s->conf, error);

	if (r < 0)
		return r;
	daemon_open_log(s->conf, "qscheduler");
	r = judge_conf(s, error);
	if (r < 0)
		conf_done(s->conf);
	return r;
}

static int
load_conf(struct super *s)
{
	struct buf error = { 0 };
	int r;

	s->conf = calloc(1, sizeof(*s->conf));
	r = s->conf == NULL ? -ENOMEM : load_file(s, &error);
	if (r < 0 && r != -ENOMEM && load_last(s, &error) == 0)
		r = 0;
	if (r < 0)
		fprintf(stderr, "qscheduler: %s\n",
		    error.len > 0 ? buf_str(&error) : strerror(-r));
	buf_done(&error);
	return r;
}

/* Beside our own program unless the configuration says otherwise. */
static char *
find_programs(const struct conf *conf)
{
	char self[PATH_MAX];
	ssize_t n;

	if (conf->program_dir[0] != '\0')
		return strdup(conf->program_dir);
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return NULL;
	self[n] = '\0';
	return strdup(dirname(self));
}

/* What must not differ between children that were started before and after a
 * change of the file. */
static int
make_env(struct super *s, bool in_force)
{
	char *pins[4] = { NULL };
	size_t i;

	if (asprintf(&pins[0], "QUEUE_BASE=%s", s->base.path) < 0)
		pins[0] = NULL;
	else if (asprintf(&pins[1], "QSCHED_INSTANCE=%s", s->instance) < 0)
		pins[1] = NULL;
	else if (!in_force || (pins[2] = inforce_variable(&s->base)) != NULL)
		s->child_env = env_make(environ, s->users.private, pins);
	for (i = 0; i < ARRAY_LEN(pins); i++)
		free(pins[i]);
	return s->child_env == NULL ? -ENOMEM : 0;
}

static int
open_env(struct super *s)
{
	struct buf error = { 0 };
	int r = inforce_write(&s->base, s->conf, &error);

	if (r < 0)
		log_warning("%s: children read the configuration themselves",
		    buf_str(&error));
	else
		inforce_keep(&s->base, &s->in_force);
	buf_done(&error);
	return make_env(s, r == 0);
}

static int
freeze(struct super *s)
{
	s->instance = strdup(s->conf->instance);
	s->program_dir = find_programs(s->conf);
	s->queue_start = s->conf->queue_start;
	s->queue_count = s->conf->queue_count;
	s->queue_max = s->conf->queue_max;
	return s->instance == NULL || s->program_dir == NULL ? -ENOMEM : 0;
}

static int
open_loop(struct super *s)
{
	s->loop = daemon_loop_new();
	if (s->loop == NULL)
		return -ENOMEM;
	s->tick = event_new(s->loop, -1, EV_PERSIST, on_tick, s);
	if (s->tick == NULL)
		return -ENOMEM;
	return super_signals_open(s);
}

static int
take_base(struct super *s)
{
	struct buf error = { 0 };
	int r = base_open(&s->base, s->conf->queue_base, &s->users, &error);

	if (r < 0)
		log_error("%s", buf_str(&error));
	buf_done(&error);
	s->base.largest_drop = spool_largest(
	    s->conf->message_size_limit, s->conf->message_recipient_limit);
	return r;
}

static int
take_instance(struct super *s)
{
	uint32_t pid = 0;
	int r = publish_open(s, &pid);

	if (r == -EBUSY)
		log_error("instance \"%s\": another qscheduler runs it, pid "
			  "%" PRIu32,
		    s->instance, pid);
	else if (r < 0)
		log_error("instance \"%s\": %s", s->instance, strerror(-r));
	return r;
}

static int
open_all(struct super *s)
{
	int r = freeze(s);

	if (r == 0) {
		store_await(s->conf->queue_base, s->conf->disk_time_limit);
		r = open_loop(s);
	}
	if (r < 0) {
		log_error("start: %s", strerror(-r));
		return r;
	}
	r = take_base(s);
	if (r == 0)
		r = take_instance(s);
	if (r == 0)
		orphans_open(s);
	if (r == 0)
		r = open_env(s);
	if (r == 0)
		r = inventory(s);
	if (r == 0) {
		hand_restore(s, clock_mono());
		requests_open(s);
		sites_open(s);
	}
	return r;
}

static void
close_all(struct super *s)
{
	uint32_t i;

	looks_close(s);
	grow_stop(s);
	sites_close(s);
	orphans_close(s, !all_down(s));
	for (i = 0; i < s->nqueues; i++)
		queue_free(&s->queues[i]);
	requests_close(s);
	inforce_let_go(&s->in_force);
	publish_close(s);
	base_close(&s->base);
	super_signals_close(s);
	if (s->tick != NULL)
		event_free(s->tick);
	if (s->loop != NULL)
		event_base_free(s->loop);
	notify_done(&s->notify);
	env_free(&s->child_env);
	free(s->program_dir);
	free(s->instance);
	conf_free(&s->conf);
}

static void
start_queues(struct super *s)
{
	const struct timeval second = { SUPER_TICK / USEC_PER_SEC, 0 };
	const usec_t now = clock_mono();
	uint32_t i;

	s->started_at = now;
	s->last_reload = now - SUPER_TICK;
	s->next_health = now + SUPER_HEALTH;
	s->sweep_at = now + SUPER_HEALTH;
	scale_init(&s->grow.scale);
	publish(s, now);
	for (i = 0; i < s->nqueues; i++)
		if (!s->queues[i]->disabled)
			queue_start(s->queues[i]);
	if (event_add(s->tick, &second) < 0)
		log_error("no timer: nothing is published");
	s->started = true;
	super_progress(s);
}

int
super_run(const struct options *options)
{
	struct super s = { .options = *options,
		.page_fd = -1,
		.requests = -1,
		.reports = -1,
		.sites.fd = -1,
		.orphans.fd = -1 };
	int r;

	s.base.fd = s.base.lock = -1;
	daemon_sane_process();
	super_signals_hold();
	env_raise_limits();
	notify_init(&s.notify, options->ready_fd);
	r = load_conf(&s);
	if (r == 0)
		r = open_all(&s);
	if (r == 0) {
		if (!s.stopping)
			start_queues(&s);
		while (!s.done)
			if (event_base_dispatch(s.loop) != 0 && !s.done) {
				log_error("event loop ended by itself");
				s.exit_status = EXIT_TEMPORARY;
				break;
			}
		log_info("stopped");
	}
	close_all(&s);
	return r < 0 ? daemon_exit_code(r) : s.exit_status;
}
