#include "model_site.h"

#include <math.h>

#define TOLERANCE 1e-9

static double
amount(const struct window_feedback *f, uint32_t window)
{
	switch (f->form) {
	case WINDOW_PER_N:
		return f->amount / window;
	case WINDOW_PER_ROOT_N:
		return f->amount / sqrt(window);
	case WINDOW_FIXED:
	default:
		return f->amount;
	}
}

static void
open_with(struct model_site *s, uint32_t window)
{
	s->dead = false;
	s->window = window;
	s->success = s->failure = s->fail_cohorts = 0;
}

void
model_site_init(struct model_site *s)
{
	open_with(s, s->rules->site.initial_destination_concurrency);
}

bool
model_site_is_dead(struct model_site *s, usec_t now)
{
	if (s->dead && s->dead_until <= now)
		open_with(s, s->rules->site.initial_destination_concurrency);
	return s->dead;
}

bool
model_site_has_room(struct model_site *s, usec_t now)
{
	return !model_site_is_dead(s, now) && s->busy < s->window;
}

static void
die(struct model_site *s, usec_t now)
{
	usec_t pause = s->conf->backoff.minimal_backoff_time;
	uint32_t i;

	for (i = 0; i < s->deaths; i++)
		if (pause < s->conf->backoff.maximal_backoff_time)
			pause *= 2;
	if (pause > s->conf->backoff.maximal_backoff_time)
		pause = s->conf->backoff.maximal_backoff_time;
	s->deaths++;
	s->dead = true;
	s->dead_until = now + pause;
}

static void
succeeded(struct model_site *s)
{
	uint32_t limit = s->rules->site.destination_concurrency_limit;

	s->deaths = 0;
	if (s->dead) {
		open_with(s, s->busy > 1 ? s->busy : 1);
		return;
	}
	s->fail_cohorts = 0;
	if (limit != 0 && s->window >= limit)
		return;
	if (s->window >=
	    s->busy + s->rules->site.initial_destination_concurrency)
		return;
	s->success += amount(&s->rules->site.positive, s->window);
	while (s->success >= 1 - TOLERANCE) {
		s->window += 1;
		s->success -= 1;
		s->failure = 0;
	}
	if (limit != 0 && s->window > limit)
		s->window = limit;
}

static void
did_not_connect(struct model_site *s, usec_t now)
{
	double cohorts = s->rules->site.failed_cohort_limit;

	if (s->dead)
		return;
	s->fail_cohorts += 1.0 / s->window;
	if (cohorts > 0 && s->fail_cohorts >= cohorts - TOLERANCE) {
		die(s, now);
		return;
	}
	s->failure -= amount(&s->rules->site.negative, s->window);
	while (s->failure < -TOLERANCE) {
		if (s->window > 1)
			s->window -= 1;
		s->failure += 1;
		s->success = 0;
	}
}

void
model_site_report(struct model_site *s, bool failed, usec_t now)
{
	(void)model_site_is_dead(s, now);
	if (failed)
		did_not_connect(s, now);
	else
		succeeded(s);
}
