#include "queue-send/schedule/own.h"

#include <bsd/stdlib.h>
#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "log/log.h"
#include "queue-send/state/agent.h"
#include "site/shared.h"

#define TELL_EVERY (60 * USEC_PER_SEC)
#define LOST_EVERY (5 * USEC_PER_SEC)

/* ---- parameters of destinations ---- */

struct site_table_params {
	struct site_params sites[CONF_TRANSPORTS_MAX];
	const char *names[CONF_TRANSPORTS_MAX];
};

static struct shared_params
site_params_fill(const struct send *s, struct site_table_params *p)
{
	const struct conf *conf = s->conf;
	struct shared_params shared = {
		.sites = p->sites,
		.names = p->names,
		.count = conf->ntransports,
		.backoff = conf->backoff,
	};
	uint32_t i;

	for (i = 0; i < conf->ntransports; i++) {
		conf_site_params(conf, i, &p->sites[i]);
		p->names[i] = conf->transports[i].name;
	}
	return shared;
}

static uint64_t
random_seed(void)
{
	uint64_t seed;

	arc4random_buf(&seed, sizeof(seed));
	return seed;
}

static void
on_wake(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	send_wake(arg);
}

static int
schedule_log_wake(struct send *s)
{
	struct event *wake = event_new(s->base, shared_wake_fd(s->sites),
	    EV_READ | EV_PERSIST, on_wake, s);

	if (wake == NULL)
		return -ENOMEM;
	s->schedule->wake = wake;
	return event_add(wake, NULL) < 0 ? -ENOMEM : 0;
}

static int
site_table_init(struct send *s)
{
	struct site_table_params p;
	struct shared_params params;
	int r;

	params = site_params_fill(s, &p);
	r = shared_new(&params, random_seed(), &s->sites);
	return r < 0 ? r : schedule_log_wake(s);
}

static int
site_table_configure(struct send *s)
{
	struct site_table_params p;
	const struct shared_params params = site_params_fill(s, &p);

	return shared_configure(s->sites, &params);
}

static void
site_table_done(struct send *s)
{
	if (s->schedule->wake != NULL)
		event_free(s->schedule->wake);
	s->schedule->wake = NULL;
	shared_free(&s->sites);
}

void
site_table_abandon(struct send *s)
{
	shared_abandon(s->sites);
}

/* ---- the segment ---- */

int
site_table_linked(void *send, int fd)
{
	struct send *s = send;
	struct schedule *p = s->schedule;
	const bool first = !shared_is_attached(s->sites);
	int r = shared_attach(s->sites, fd, s->sp.queue, s->generation, s->now);

	io_close(&fd);
	if (r < 0)
		log_error("ALERT: the common table of destinations: %s%s: "
			  "this queue starts no delivery until it has one",
		    strerror(-r), r == -EAGAIN ? "; " EXECUTOR_REMEDY : "");
	else if (!first)
		log_info("a new common table of destinations, number %" PRIu32,
		    shared_number(s->sites));
	p->lost = r < 0;
	p->lost_told_at = r < 0 ? s->now : 0;
	return 0;
}

void
site_table_forget(struct send *s, uint32_t queue, uint32_t generation)
{
	shared_forget(s->sites, queue, generation, s->now);
	send_wake(s);
}

/* ---- while it runs ---- */

static void
on_ready(void *arg, void *destination)
{
	struct send *s = arg;

	sched_site_ready(s->sched, destination, s->now);
}

/* Events that should be rare are told, so that an operator can ask why. */
static void
tell_trouble(struct send *s)
{
	struct schedule *p = s->schedule;
	struct shared_figures f;

	shared_figures(s->sites, &f);
	if (f.recovered + f.stuck + f.crowded == p->told ||
	    !log_due(s->now, TELL_EVERY, &p->told_at))
		return;
	p->told = f.recovered + f.stuck + f.crowded;
	log_warning("table of destinations: since the start, %" PRIu64
		    " locks were taken from processes that died, %" PRIu64
		    " were held by processes that are stopped; %" PRIu64
		    " times there was no room for another destination "
		    "(raise destination_table_size)",
	    f.recovered, f.stuck, f.crowded);
}

/* No delivery starts until there is a table; those that run go on. The
 * supervisor links the first one when it has it. */
static usec_t
wait_for_table(struct send *s)
{
	const char *why = shared_lost_why(s->sites);
	const struct msg msg = { .type = MSG_SITES_LOST,
		.u.SITES_LOST = { .number = shared_number(s->sites),
		    .why = { why, (uint32_t)strlen(why) } } };

	if (!shared_is_attached(s->sites) && !s->schedule->lost)
		return USEC_NEVER;
	if (!s->schedule->lost)
		log_error("ALERT: the common table of destinations is lost: "
			  "%s: this queue waits for another one",
		    why);
	s->schedule->lost = true;
	if (!s->stopping &&
	    log_due(s->now, LOST_EVERY, &s->schedule->lost_told_at))
		daemon_tell(s->d, &msg);
	return s->now + LOST_EVERY;
}

static void
tell_counted(struct send *s)
{
	struct schedule *p = s->schedule;
	const uint32_t number = shared_number(s->sites);
	const struct msg msg = { .type = MSG_SITES_COUNTED,
		.u.SITES_COUNTED = { .number = number } };

	if (!shared_is_counted(s->sites) ||
	    (p->has_told && p->counted == number))
		return;
	p->has_told = true;
	p->counted = number;
	daemon_tell(s->d, &msg);
}

usec_t
site_table_work(struct send *s)
{
	const usec_t next = shared_work(s->sites, s->now, on_ready, s);

	if (shared_is_lost(s->sites))
		return wait_for_table(s);
	tell_counted(s);
	tell_trouble(s);
	return next;
}

void
site_table_tell(const struct send *s)
{
	struct shared_figures f;

	if (!shared_is_attached(s->sites))
		return;
	shared_figures(s->sites, &f);
	log_debug("table of destinations: %" PRIu64
		  " delivery slots granted, %" PRIu64
		  " refused because the destination was at its limit, %" PRIu64
		  " waits for a slot, %" PRIu64
		  " queues woken for a free slot, %" PRIu64
		  " slots found without being woken, %" PRIu64
		  " destinations removed to make room",
	    f.takes, f.full, f.waits, f.wakes, f.wakes_lost, f.evicted);
}

/* ---- the scheduler ---- */

struct parameters {
	struct sched_transport_params transports[CONF_TRANSPORTS_MAX];
};

static bool
has_agent(const struct send *s, const struct conf_transport *t)
{
	const struct agent_link *agent = s->agent[agent_kinds[t->kind].program];

	return agent != NULL && !agent->full && !s->schedule->starts_nothing;
}

static void
fill(const struct send *s, struct parameters *p)
{
	const struct conf *conf = s->conf;
	uint32_t i;

	for (i = 0; i < conf->ntransports; i++) {
		p->transports[i] = conf->transports[i].sched;
		if (!has_agent(s, &conf->transports[i]))
			p->transports[i].process_limit = 0;
	}
}

int
schedule_init(struct send *s)
{
	struct parameters p;
	uint32_t count = s->conf->ntransports;
	int r;

	s->schedule = calloc(1, sizeof(*s->schedule));
	if (s->schedule == NULL)
		return -ENOMEM;
	TAILQ_INIT(&s->schedule->rollup.used);
	fill(s, &p);
	r = site_table_init(s);
	if (r == 0)
		r = sched_new(
		    &s->conf->sched, p.transports, count, s->sites, &s->sched);
	ungreeted_init(s);
	if (r == 0)
		schedule_log_set(s);
	return r;
}

void
schedule_done(struct send *s)
{
	if (s->schedule == NULL)
		return;
	sched_free(&s->sched);
	ungreeted_done(s);
	rollup_forget_all(s);
	site_table_done(s);
	(void)schedule_log_flushed(s);
	free(s->schedule);
	s->schedule = NULL;
}

void
schedule_configure(struct send *s)
{
	struct parameters p;
	uint32_t count = s->conf->ntransports;
	int r;

	fill(s, &p);
	r = site_table_configure(s);
	if (r == 0)
		r = sched_configure(
		    s->sched, &s->conf->sched, p.transports, count, s->now);
	ASSERT(r == 0); /* the list of transports needs a restart */
	schedule_log_set(s);
	s->pub.changed = true;
	send_wake(s);
}

void
schedule_pause(struct send *s, bool pause)
{
	if (s->schedule->starts_nothing == pause)
		return;
	s->schedule->starts_nothing = pause;
	schedule_limits(s);
}

bool
schedule_is_paused(const struct send *s)
{
	return s->schedule->starts_nothing;
}

void
schedule_limits(struct send *s)
{
	const struct conf_transport *t = s->conf->transports;
	uint32_t i;

	for (i = 0; i < s->conf->ntransports; i++, t++)
		sched_set_process_limit(
		    s->sched, i, has_agent(s, t) ? t->sched.process_limit : 0);
	s->pub.changed = true;
	send_wake(s);
}
