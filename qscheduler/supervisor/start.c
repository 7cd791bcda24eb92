#include "qscheduler/supervisor/supervisor.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "log/log.h"

/* For what the start does beside the wait for disks. */
#define START_GRACE (30 * USEC_PER_SEC)

/* The configuration that was read, with the users and files that it names. */
static int
judge_conf(struct super *s, struct buf *error)
{
	int r = daemon_users(s->instance.conf, &s->instance.users, error);

	return r == 0 ? files_check(s->instance.conf, &s->instance.users, error)
		      : r;
}

/* The configuration that was last in force, so that an error in the operator's
 * file does not keep the supervisor from coming back. */
static int
load_last(struct super *s, const struct buf *wrong)
{
	struct buf error = { 0 };
	int r = conf_load_last(s->options.conf_path, s->instance.conf);

	if (r == 0) {
		daemon_open_log(s->instance.conf, "qscheduler");
		r = judge_conf(s, &error);
		if (r < 0)
			conf_done(s->instance.conf);
	}
	if (r == 0) {
		log_error("ALERT: %s: the configuration that was in force, %s, "
			  "is used until that is put right and HUP is sent",
		    buf_str(wrong), conf_path(s->instance.conf));
		reload_note(s, buf_str(wrong));
	}
	buf_done(&error);
	return r;
}

static int
load_file(struct super *s, struct buf *error)
{
	int r = conf_load(s->options.conf_path, s->instance.conf, error);

	if (r < 0)
		return r;
	s->file_seen = access(conf_path(s->instance.conf), F_OK) == 0;
	daemon_open_log(s->instance.conf, "qscheduler");
	r = judge_conf(s, error);
	if (r < 0)
		conf_done(s->instance.conf);
	return r;
}

static int
load_conf(struct super *s)
{
	struct buf error = { 0 };
	int r;

	s->instance.conf = calloc(1, sizeof(*s->instance.conf));
	r = s->instance.conf == NULL ? -ENOMEM : load_file(s, &error);
	if (r < 0 && r != -ENOMEM && load_last(s, &error) == 0)
		r = 0;
	if (r < 0)
		fprintf(stderr, "qscheduler: %s\n",
		    error.len > 0 ? buf_str(&error) : strerror(-r));
	buf_done(&error);
	return r;
}

/* Programs lie beside ours unless the configuration says otherwise. */
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

/* Settings that must not differ between children that were started before and
 * after a change of the file. */
static int
make_env(struct super *s, bool in_force)
{
	char *pins[4] = { NULL };
	size_t i;

	if (asprintf(&pins[0], "QUEUE_BASE=%s", s->base.path) < 0)
		pins[0] = NULL;
	else if (asprintf(&pins[1], "QSCHED_INSTANCE=%s", s->instance.name) < 0)
		pins[1] = NULL;
	else if (!in_force || (pins[2] = inforce_variable(&s->base)) != NULL)
		s->children.env =
		    env_make(environ, s->instance.users.private, pins);
	for (i = 0; i < ARRAY_LEN(pins); i++)
		free(pins[i]);
	return s->children.env == NULL ? -ENOMEM : 0;
}

static int
open_env(struct super *s)
{
	struct buf error = { 0 };
	int r = inforce_write(&s->base, s->instance.conf, &error);

	if (r < 0)
		log_warning("%s: children read the configuration themselves",
		    buf_str(&error));
	else
		inforce_keep(&s->base, &s->in_force);
	buf_done(&error);
	return make_env(s, r == 0);
}

/* Mail for root that no one is known to read. */
static void
warn_aliases(const struct conf *conf, bool private)
{
	struct buf lines = { 0 }, error = { 0 };

	(void)files_alias_complaints(conf, private, &lines);
	(void)files_warn_administrators(conf, &lines, &error);
	publish_warnings(&lines);
	buf_done(&error);
}

static int
freeze(struct super *s)
{
	s->instance.name = strdup(s->instance.conf->instance);
	s->children.program_dir = find_programs(s->instance.conf);
	if (s->options.mode == MODE_CONF)
		s->options.mode =
		    strcmp(s->instance.conf->queue_mode, "dynamic") == 0
		    ? MODE_DYNAMIC
		    : MODE_FIXED;
	s->queues.dynamic = s->options.mode == MODE_DYNAMIC;
	s->queues.keep = s->options.mode == MODE_KEEP;
	s->queues.start = s->instance.conf->queue_start;
	s->queues.count = s->instance.conf->queue_count;
	s->queues.max = s->instance.conf->queue_max;
	return s->instance.name == NULL || s->children.program_dir == NULL
	    ? -ENOMEM
	    : 0;
}

static void
on_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	super_tick(arg);
}

static int
open_loop(struct super *s)
{
	s->instance.loop = daemon_loop_new(true);
	if (s->instance.loop == NULL)
		return -ENOMEM;
	s->tick = event_new(s->instance.loop, -1, EV_PERSIST, on_tick, s);
	if (s->tick == NULL)
		return -ENOMEM;
	return super_signals_open(s);
}

static int
take_base(struct super *s)
{
	struct buf error = { 0 };
	int r = base_open(
	    &s->base, s->instance.conf->queue_base, &s->instance.users, &error);

	if (r < 0)
		log_error("%s", buf_str(&error));
	buf_done(&error);
	s->workers.path = s->base.path;
	s->workers.keep = s->base.fd;
	s->workers.lock = s->base.lock;
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
		    s->instance.name, pid);
	else if (r < 0)
		log_error(
		    "instance \"%s\": %s", s->instance.name, strerror(-r));
	return r;
}

static int
open_all(struct super *s)
{
	int r = freeze(s);

	if (r == 0) {
		store_await(s->instance.conf->queue_base,
		    s->instance.conf->disk_time_limit);
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
		orphans_open(&s->children, s->base.fd);
	if (r == 0)
		r = open_env(s);
	if (r == 0)
		warn_aliases(s->instance.conf, s->instance.users.private);
	if (r == 0)
		r = services_open(s);
	if (r == 0) {
		notify_tell(&s->notify, "EXTEND_TIMEOUT_USEC=%" PRId64,
		    2 * s->instance.conf->disk_time_limit + START_GRACE);
		r = inventory(&s->queues);
	}
	if (r == 0) {
		store_restore(s, clock_mono());
		requests_open(s);
		sites_open(&s->queues);
	}
	return r;
}

static void
close_all(struct super *s)
{
	uint32_t i;

	workers_close(&s->workers);
	grow_stop(s);
	sites_close(&s->queues);
	orphans_close(&s->children);
	for (i = 0; i < s->queues.nqueues; i++)
		queue_free(&s->queues.queues[i]);
	group_done(&s->services.group);
	requests_close(s);
	inforce_let_go(&s->in_force);
	publish_close(s);
	base_close(&s->base);
	super_signals_close(s);
	if (s->tick != NULL)
		event_free(s->tick);
	if (s->instance.loop != NULL)
		event_base_free(s->instance.loop);
	notify_done(&s->notify);
	env_free(&s->children.env);
	free(s->children.program_dir);
	free(s->instance.name);
	conf_free(&s->instance.conf);
}

int
super_run(const struct options *options)
{
	static struct super s; /* too large for the stack */
	int r;

	super_init(&s, options);
	daemon_sane_process();
	super_signals_hold();
	env_raise_limits();
	notify_init(&s.notify, options->ready_fd);
	r = load_conf(&s);
	if (r == 0)
		r = open_all(&s);
	if (r == 0) {
		if (!s.stopping)
			super_start(&s);
		while (!s.done)
			if (event_base_dispatch(s.instance.loop) != 0 &&
			    !s.done) {
				log_error("event loop ended by itself");
				s.exit_status = EXIT_TEMPORARY;
				break;
			}
		log_info("stopped");
	}
	close_all(&s);
	return r < 0 ? daemon_exit_code(r) : s.exit_status;
}
