#include "queue-send/state/pure.h"

static usec_t
clamp(usec_t value, usec_t min, usec_t max)
{
	return value < min ? min : value > max ? max : value;
}

/* The half width of the spread. Parameters are percents below 100 and at most
 * 30 days, so nothing overflows. */
static usec_t
spread(usec_t delay, uint32_t jitter_pct)
{
	return delay / 100 * (usec_t)jitter_pct;
}

struct retry_params
retry_params(const struct conf *conf)
{
	return (struct retry_params){
		.minimal = conf->backoff.minimal_backoff_time,
		.maximal = conf->backoff.maximal_backoff_time,
		.jitter_pct = conf->backoff.jitter_pct,
		.lifetime = conf->maximal_queue_lifetime,
		.lifetime_null = conf->bounce_queue_lifetime,
	};
}

usec_t
retry_delay(const struct retry_params *p, usec_t age, uint32_t random)
{
	usec_t delay = clamp(age, p->minimal, p->maximal);
	usec_t half = spread(delay, p->jitter_pct);
	double part = (double)random / (double)UINT32_MAX;

	return delay - half + (usec_t)((double)(2 * half) * part);
}

usec_t
retry_agent_delay(const struct retry_params *p, uint32_t deaths)
{
	uint32_t doublings = deaths < 1 ? 0 : deaths - 1;

	if (doublings > 20)
		doublings = 20;
	return clamp(RETRY_AGENT_DELAY << doublings, 0, p->maximal);
}

bool
retry_is_poison(uint32_t deaths, bool alone)
{
	return deaths >= (alone ? RETRY_POISON_DEATHS : RETRY_POISON_BESIDE);
}

static usec_t
shortest_lifetime(const struct retry_params *p)
{
	return p->lifetime_null < p->lifetime ? p->lifetime_null : p->lifetime;
}

usec_t
retry_grace(const struct retry_params *p)
{
	return clamp(shortest_lifetime(p), 0, RETRY_GRACE);
}

usec_t
retry_believed_gap(const struct retry_params *p)
{
	return shortest_lifetime(p) / 5;
}

bool
retry_expired(const struct retry_params *p, usec_t age, bool null_sender)
{
	return age >= (null_sender ? p->lifetime_null : p->lifetime);
}

bool
retry_is_hopeless(const struct retry_params *p, usec_t age, bool null_sender)
{
	return retry_expired(p, age - RETRY_GRACE, null_sender);
}

usec_t
retry_due_mono(
    const struct retry_params *p, usec_t due_wall, const struct retry_now *now)
{
	usec_t ahead = due_wall - now->wall;

	if (ahead <= 0 ||
	    ahead > p->maximal + spread(p->maximal, p->jitter_pct))
		return now->mono;
	return now->mono + ahead;
}
