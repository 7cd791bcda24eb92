#include "queue-send/site_table.h"

#include <bsd/stdlib.h>
#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "limits/limits.h"
#include "log/log.h"
#include "queue-send/schedule.h"
#include "site/shared.h"

#define COUNT_EVERY                                              \
	(10 * USEC_PER_SEC) /* queues, while windows are divided \
			     */
#define TELL_EVERY (60 * USEC_PER_SEC)
#define LOST_EVERY (5 * USEC_PER_SEC)

/* ---- parameters ---- */

struct parameters {
	struct site_params sites[CONF_TRANSPORTS_MAX];
	const char *names[CONF_TRANSPORTS_MAX];
};

static struct shared_params
fill(const struct send *s, struct parameters *p)
{
	const struct conf *conf = s->conf;
	struct shared_params shared = {
		.sites = p->sites,
		.names = p->names,
		.count = conf->ntransports,
		.queues = s->sites.queues,
	};
	uint32_t i;

	limits_backoff(conf, &shared.backoff);
	for (i = 0; i < conf->ntransports; i++) {
		limits_site(conf, i, &p->sites[i]);
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

int
site_table_init(struct send *s)
{
	struct parameters p;
	struct shared_params params;

	s->sites = (struct send_sites){ .queues = 1, .count_at = USEC_NEVER };
	params = fill(s, &p);
	return shared_new(&params, random_seed(), &s->sites.shared);
}

int
site_table_configure(struct send *s)
{
	struct parameters p;
	const struct shared_params params = fill(s, &p);

	return shared_configure(s->sites.shared, &params);
}

void
site_table_done(struct send *s)
{
	if (s->sites.wake != NULL)
		event_free(s->sites.wake);
	s->sites.wake = NULL;
	shared_free(&s->sites.shared);
}

void
site_table_abandon(struct send *s)
{
	if (shared_is_attached(s->sites.shared))
		shared_abandon(s->sites.shared);
}

/* ---- no segment: how many are we? ---- */

/* Those that deliver: queues that close have mail, too. */
static uint32_t
count_queues(const struct conf *conf)
{
	struct sched_page *page = malloc(sizeof(*page));
	uint32_t count = 0, i;

	if (page != NULL && sched_page_read(conf->instance, page) == 0)
		for (i = 0; i < PAGE_QUEUES_MAX; i++)
			count += page->rows[i].state != QUEUE_STATE_NONE;
	free(page);
	if (count > 0)
		return count;
	return conf->queue_max > conf->queue_count ? conf->queue_max
						   : conf->queue_count;
}

static void
count_again(struct send *s)
{
	const uint32_t queues = count_queues(s->conf);

	s->sites.count_at = s->now + COUNT_EVERY;
	if (queues == s->sites.queues)
		return;
	log_info(
	    "limits of destinations are divided by %" PRIu32 " queues", queues);
	s->sites.queues = queues;
	schedule_configure(s);
}

void
site_table_missing(struct send *s)
{
	log_warning("there is no common table of destinations: limits are "
		    "divided, and what is dead is learned alone");
	count_again(s);
	send_wake(s);
}

/* ---- the segment ---- */

static void
on_wake(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	send_wake(arg);
}

static int
watch_wake(struct send *s)
{
	struct event *wake = event_new(s->base, shared_wake_fd(s->sites.shared),
	    EV_READ | EV_PERSIST, on_wake, s);

	if (wake == NULL)
		return -ENOMEM;
	if (event_add(wake, NULL) < 0) {
		event_free(wake);
		return -ENOMEM;
	}
	if (s->sites.wake != NULL)
		event_free(s->sites.wake);
	s->sites.wake = wake;
	return 0;
}

/* The first one. Where it is no table, the supervisor finds that out as well,
 * and a new start gets another one: places that nobody counts would exceed a
 * limit. Where there is no column left, mail goes on. */
static void
attach(struct send *s, int fd)
{
	int r = shared_attach(
	    s->sites.shared, fd, s->sp.queue, s->generation, s->now);

	if (r == 0)
		r = watch_wake(s);
	if (r == 0)
		return;
	if (r == -EBADMSG) {
		log_error("the common table of destinations: %s: this queue "
			  "starts anew",
		    strerror(-r));
		daemon_exit(s->d, EXIT_TEMPORARY);
		return;
	}
	log_error("ALERT: the common table of destinations: %s: this queue "
		  "goes on with windows of its own, and limits of destinations "
		  "may be exceeded by them",
	    strerror(-r));
	if (!shared_is_attached(s->sites.shared))
		count_again(s);
}

/* Another one, in the place of one that is lost. */
static void
move(struct send *s, int fd)
{
	int r = shared_move(
	    s->sites.shared, fd, s->sp.queue, s->generation, s->now);

	if (r < 0)
		log_error("the new common table of destinations: %s: this "
			  "queue starts no delivery until it has one",
		    strerror(-r));
	else
		log_info("a new common table of destinations, number %" PRIu32,
		    shared_number(s->sites.shared));
	s->sites.lost = s->sites.lost && r < 0;
	s->sites.lost_told_at = 0;
}

int
site_table_linked(void *send, int fd)
{
	struct send *s = send;

	if (shared_is_attached(s->sites.shared))
		move(s, fd);
	else
		attach(s, fd);
	io_close(&fd);
	return 0;
}

void
site_table_forget(struct send *s, uint32_t queue, uint32_t generation)
{
	if (shared_is_attached(s->sites.shared))
		shared_forget(s->sites.shared, queue, generation, s->now);
	send_wake(s);
}

/* ---- while it runs ---- */

static void
on_ready(void *arg, void *destination)
{
	struct send *s = arg;

	sched_site_ready(s->sched, destination, s->now);
}

/* What should not happen often, and then somebody wants to know. */
static void
tell_trouble(struct send *s)
{
	struct send_sites *p = &s->sites;
	struct shared_figures f;

	shared_figures(p->shared, &f);
	if (f.recovered + f.stuck + f.crowded == p->told ||
	    !log_due(s->now, TELL_EVERY, &p->told_at))
		return;
	p->told = f.recovered + f.stuck + f.crowded;
	log_warning("table of destinations, since the start: %" PRIu64
		    " locks of processes that died, %" PRIu64
		    " of processes that are stopped, %" PRIu64
		    " times no room for another destination "
		    "(destination_table_size)",
	    f.recovered, f.stuck, f.crowded);
}

/* No delivery starts until there is another one, those that run go on. */
static usec_t
wait_for_another(struct send *s)
{
	const char *why = shared_lost_why(s->sites.shared);
	const struct msg msg = { .type = MSG_SITES_LOST,
		.u.SITES_LOST = { .number = shared_number(s->sites.shared),
		    .why = { why, (uint32_t)strlen(why) } } };

	if (!s->sites.lost)
		log_error("ALERT: the common table of destinations is lost: "
			  "%s: this queue waits for another one",
		    why);
	s->sites.lost = true;
	if (!s->stopping && log_due(s->now, LOST_EVERY, &s->sites.lost_told_at))
		daemon_tell(s->d, &msg);
	return s->now + LOST_EVERY;
}

static void
tell_counted(struct send *s)
{
	struct send_sites *p = &s->sites;
	const uint32_t number = shared_number(p->shared);
	const struct msg msg = { .type = MSG_SITES_COUNTED,
		.u.SITES_COUNTED = { .number = number } };

	if (!shared_is_counted(p->shared) ||
	    (p->has_told && p->counted == number))
		return;
	p->has_told = true;
	p->counted = number;
	daemon_tell(s->d, &msg);
}

usec_t
site_table_work(struct send *s)
{
	struct send_sites *p = &s->sites;
	usec_t next;

	if (!shared_is_attached(p->shared)) {
		if (s->now >= p->count_at)
			count_again(s);
		return p->count_at;
	}
	next = shared_work(p->shared, s->now, on_ready, s);
	if (shared_is_lost(p->shared))
		return wait_for_another(s);
	tell_counted(s);
	tell_trouble(s);
	return next;
}

void
site_table_tell(const struct send *s)
{
	struct shared_figures f;

	if (!shared_is_attached(s->sites.shared))
		return;
	shared_figures(s->sites.shared, &f);
	log_info("table of destinations: %" PRIu64 " places taken, %" PRIu64
		 " not to be had, %" PRIu64 " waits, %" PRIu64
		 " wake-ups, %" PRIu64 " without one, %" PRIu64
		 " destinations forgotten for others",
	    f.takes, f.full, f.waits, f.wakes, f.wakes_lost, f.evicted);
}
