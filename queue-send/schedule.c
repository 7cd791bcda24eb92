#include "queue-send/schedule.h"

#include <bsd/stdlib.h>

#include "limits/limits.h"
#include "queue-send/dispatch.h"
#include "queue-send/links.h"
#include "queue-send/watch.h"

/* Destinations that nothing waits for and that are remembered all the same: a
 * few MiB at most. */
#define IDLE_SITES_MAX 20000

struct parameters {
	struct sched_params sched;
	struct sched_transport_params transports[CONF_TRANSPORTS_MAX];
	struct site_params sites[CONF_TRANSPORTS_MAX];
	struct site_backoff backoff;
};

static bool
has_agent(const struct send *s, const struct conf_transport *t)
{
	const struct agent_link *agent = s->agent[dispatch_program(t->kind)];

	return agent != NULL && !agent->full;
}

static void
fill(const struct send *s, struct parameters *p)
{
	const struct conf *conf = s->conf;
	uint32_t i;

	limits_sched(conf, &p->sched);
	limits_backoff(conf, &p->backoff);
	for (i = 0; i < conf->ntransports; i++) {
		limits_site(conf, i, &p->sites[i]);
		limits_transport(conf, i, &p->transports[i]);
		if (!has_agent(s, &conf->transports[i]))
			p->transports[i].process_limit = 0;
	}
}

static uint64_t
random_seed(void)
{
	uint64_t seed;

	arc4random_buf(&seed, sizeof(seed));
	return seed;
}

int
schedule_init(struct send *s)
{
	struct parameters p;
	uint32_t count = s->conf->ntransports;
	int r;

	watch_init(s);
	fill(s, &p);
	r = sites_new(p.sites, count, &p.backoff, IDLE_SITES_MAX, random_seed(),
	    &s->sites);
	if (r == 0)
		r = sched_new(&p.sched, p.transports, count,
		    sites_table(s->sites), &s->sched);
	if (r == 0)
		watch_set(s);
	return r;
}

void
schedule_done(struct send *s)
{
	sched_free(&s->sched);
	sites_free(&s->sites);
	watch_done(s);
}

void
schedule_configure(struct send *s)
{
	struct parameters p;
	uint32_t count = s->conf->ntransports;
	int r;

	fill(s, &p);
	r = sites_configure(s->sites, p.sites, count, &p.backoff);
	if (r == 0)
		r = sched_configure(
		    s->sched, &p.sched, p.transports, count, s->now);
	ASSERT(r == 0); /* the list of transports needs a restart */
	watch_set(s);
	s->pub.changed = true;
	send_kick(s);
}

void
schedule_limits(struct send *s)
{
	const struct conf_transport *t = s->conf->transports;
	uint32_t i;

	for (i = 0; i < s->conf->ntransports; i++, t++)
		sched_set_process_limit(
		    s->sched, i, has_agent(s, t) ? t->process_limit : 0);
	s->pub.changed = true;
	send_kick(s);
}
