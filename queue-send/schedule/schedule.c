#include "queue-send/schedule/own.h"

#include <errno.h>
#include <stdlib.h>

#include "queue-send/state/agent.h"
#include "site/shared.h"

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
