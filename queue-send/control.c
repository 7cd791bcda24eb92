#include "queue-send/control.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "log/log.h"
#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/operators.h"
#include "queue-send/disk/other_queue.h"
#include "queue-send/agents/agents.h"
#include "queue-send/reports/reports.h"
#include "queue-send/message/fetch.h"
#include "queue-send/message/path.h"
#include "queue-send/rules/rules.h"
#include "queue-send/schedule/schedule.h"
#include "queue-send/evacuation/evacuation.h"
#include "spool/waiting.h"

/* ---- start ---- */

/* Descriptors are needed for each message that is delivered, for each that is
 * on its way to an agent, and for files that rest: the limit is raised as far
 * as it goes. */
static void
raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static uint32_t
rest_max(void)
{
	struct rlimit limit;

	return messages_rest_max(
	    getrlimit(RLIMIT_NOFILE, &limit) < 0 ? 0 : limit.rlim_cur);
}

/* The rate of reports is that of an account. */
static void
read_accounts(const struct send *s)
{
	const int r =
	    s->subuid_file == NULL ? 0 : waiting_accounts_read(s->subuid_file);

	if (r < 0)
		log_warning("cannot read %s: %s; report_rate_limit counts "
			    "each subordinate uid by itself until a reload "
			    "reads the file",
		    s->subuid_file, strerror(-r));
}

static const struct send_ops ops = {
	.traced = operators_traced,
	.smtp_linked = operators_trace_again,
};

static int
init_routes(struct send *s)
{
	return daemon_routes(s->conf, &s->routes);
}

static int (*const inits[])(struct send *s) = {
	disk_start,
	init_routes,
	links_init,
	share_init,
	reports_init,
	schedule_init,
};

int
send_init(struct send *s)
{
	size_t i;
	int r;

	s->ops = &ops;
	s->retry = retry_params(s->conf);
	read_accounts(s);
	messages_init(&s->messages, rest_max());
	due_init(&s->due);
	sync_init(s);
	fetch_init(s);
	results_init(s);
	removal_init(s);
	acts_init(s);
	s->stop_at = s->stray_at = s->rescan_at = USEC_NEVER;
	s->refused_at = s->operators_at = USEC_NEVER;
	s->health.probe_every = s->conf->error_interval;
	r = turn_init(&s->turn, s->base, send_turn, s);
	for (i = 0; r == 0 && i < ARRAY_LEN(inits); i++)
		r = inits[i](s);
	if (r == 0) {
		clock_file_load(s);
		send_read_clocks(s);
		s->began_wall = s->now_wall;
		s->expire_after = s->now + retry_grace(&s->retry);
		r = rules_init(s);
	}
	if (r == 0)
		deferred_walk(s);
	else
		send_done(s);
	return r;
}

/* A thread that was left behind may use their files. */
static void
keep_open(struct send *s)
{
	struct message *m = messages_after(&s->messages, 0);

	for (; s->hung && m != NULL; m = messages_after(&s->messages, m->inode))
		m->fd = -1;
}

void
send_done(struct send *s)
{
	struct message *m;
	enum message_state state;

	s->stopping = true;
	fetch_done(s);
	if (s->sched != NULL &&
	    (sched_figures(s->sched).running > 0 || kept_count(s) > 0))
		site_table_abandon(s);
	links_done(s);
	s->hung |= !disk_end(s);
	removal_done(s);
	acts_done(s);
	results_done(s);
	keep_open(s);
	for (state = STATE_OFFERED_INCOMING; state < NSTATES; state++)
		while ((m = messages_first(&s->messages, state)) != NULL) {
			claims_leave(s, m);
			messages_drop(&s->messages, m);
		}
	evacuate_done(s);
	accepted_done(&s->accepted);
	share_done(s);
	deferred_done(s);
	publish_done(s);
	turn_done(&s->turn);
	schedule_done(s);
	route_free(&s->routes);
	reports_done(s);
	rules_done(s);
}

/* Deal with files that the last run left in active/. */
static void
recover(struct send *s)
{
	struct recovered done = { .accepted = &s->accepted, .behind = s };

	recover_active(&s->sp, &done);
	s->want_scan = done.returned > 0;
	if (done.unmarked > 0)
		log_warning("%llu recipients that had failed lost their "
			    "reasons in a power cut: they are tried again",
		    (unsigned long long)done.unmarked);
	if (done.returned + done.removed > 0)
		log_info("active queue of the last run: %llu back to incoming, "
			 "%llu done",
		    (unsigned long long)done.returned,
		    (unsigned long long)done.removed);
}

static int
start(struct daemon *d)
{
	struct send *s = d->state;
	int r;

	s->d = d;
	s->base = d->base;
	s->conf = d->conf;
	raise_descriptors();
	s->lock = daemon_take_queue(d, &s->sp);
	if (s->lock < 0)
		return s->lock;
	s->in_memory = spool_is_in_memory(&s->sp);
	disk_set_kinds(s);
	r = send_init(s);
	if (r < 0) {
		log_error("cannot start: %s",
		    r == -EAGAIN ? "no thread: " EXECUTOR_REMEDY
				 : strerror(-r));
		daemon_leave_queue(&s->lock, &s->sp);
		return r;
	}
	recover(s);
	operators_init(s);
	send_wake(s);
	daemon_ready(d);
	return 0;
}

static void
done(struct daemon *d)
{
	struct send *s = d->state;

	operators_done(s);
	send_done(s);
	/* A call of such a thread ends before the lock is given, with the
	 * process. */
	if (!s->hung)
		daemon_leave_queue(&s->lock, &s->sp);
}

/* ---- while it runs ---- */

static const struct daemon_link links[] = {
	{ "page", publish_linked },
	{ "qscheduler", publish_requests_linked },
	{ "sites", site_table_linked },
	{ "todo-proc", links_todo },
	{ "deliver-local", links_local },
	{ "deliver-smtp", links_smtp },
};

void
links_linked(struct send *s, const char *name, int fd)
{
	send_read_clocks(s);
	daemon_take_link(links, ARRAY_LEN(links), s, name, fd);
	send_wake(s);
}

static void
linked(struct daemon *d, const char *name, int fd)
{
	struct send *s = d->state;

	s->generation = d->generation;
	links_linked(s, name, fd);
}

static int
told_forget(struct send *s, const struct msg *msg)
{
	site_table_forget(s, msg->u.FORGET.queue, msg->u.FORGET.generation);
	return 0;
}

static int
told_rescan(struct send *s, const struct msg *msg UNUSED)
{
	deferred_rescan(s);
	return 0;
}

static const struct {
	enum msg_type type;
	int (*handle)(struct send *s, const struct msg *msg);
} told_rows[] = {
	{ MSG_HAND_OVER, evacuate_told },
	{ MSG_RESCAN, told_rescan },
	{ MSG_FORGET, told_forget },
};

static int
told(struct daemon *d, const struct msg *msg)
{
	struct send *s = d->state;
	size_t i;

	send_read_clocks(s);
	for (i = 0; i < ARRAY_LEN(told_rows); i++)
		if (told_rows[i].type == msg->type)
			return told_rows[i].handle(s, msg);
	return -ENOENT;
}

static bool
same_transports(const struct conf *a, const struct conf *b)
{
	uint32_t i;

	if (a->ntransports != b->ntransports)
		return false;
	for (i = 0; i < a->ntransports; i++)
		if (a->transports[i].kind != b->transports[i].kind ||
		    strcmp(a->transports[i].name, b->transports[i].name) != 0)
			return false;
	return true;
}

static int
read_routes(const struct conf *fresh, void **ret_made, struct buf *ret_error)
{
	struct route_table *routes = NULL;
	int r = daemon_routes_read(fresh, &routes, ret_error);

	*ret_made = routes;
	return r;
}

static void
drop_routes(void *made)
{
	struct route_table *routes = made;

	route_free(&routes);
}

static void
take_routes(struct send *s, struct route_table *routes)
{
	if (routes == NULL) {
		log_error("reload: the old routing and aliases stay in force");
		return;
	}
	route_free(&s->routes);
	s->routes = routes;
	share_reroute(s);
}

/* An operator may have put the disk right. */
static void
try_disk(struct send *s)
{
	s->health.probe_at = s->now;
	if (s->refused_at != USEC_NEVER)
		s->refused_at = s->now;
	if (s->stray_at != USEC_NEVER)
		s->stray_at = s->now;
	evacuate_try_again(s);
	probe_try_all(s);
}

/* The same by a reload and a flush: all that a disk refused, or that could not
 * be made at the start. */
static void
try_again(struct send *s)
{
	try_disk(s);
	rules_try_again(s);
	operators_try_again(s);
}

static void
reload(struct daemon *d, const struct conf *fresh)
{
	struct send *s = d->state;

	send_read_clocks(s);
	if (!same_transports(s->conf, fresh))
		log_warning("reload: other transports need a restart; until "
			    "then mail for them is deferred");
	take_routes(s, d->made);
	s->conf = fresh;
	s->retry = retry_params(fresh);
	read_accounts(s);
	s->health.probe_every = fresh->error_interval;
	schedule_configure(s);
	rollup_forget_all(s);
	try_again(s);
}

static void
flush(struct daemon *d)
{
	struct send *s = d->state;

	send_read_clocks(s);
	sched_flush(s->sched, s->now);
	log_info("flush: %llu deferred messages are due now, %u dead "
		 "destinations are open",
	    (unsigned long long)s->due.count, schedule_log_flushed(s));
	deferred_flush(s);
	share_flush(s);
	try_again(s);
}

/* ---- stop ---- */

static void
stop(struct daemon *d, usec_t limit)
{
	struct send *s = d->state;

	send_read_clocks(s);
	s->stopping = true;
	s->stop_at = s->now + limit;
	log_info(
	    "stopping: %u deliveries to end", sched_figures(s->sched).running);
	delivery_cancel(s, NULL, AGENT_NOT_BEGUN);
	send_wake(s);
}

const struct daemon_ops control_ops = {
	.name = "queue-send",
	.user = DAEMON_AS_QMAILS,
	.start = start,
	.linked = linked,
	.told = told,
	.read = read_routes,
	.drop = drop_routes,
	.reload = reload,
	.flush = flush,
	.stop = stop,
	.done = done,
};
