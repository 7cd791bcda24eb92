#include "site/rules.h"

#include <string.h>

#include "base/random.h"

/* Twice this and a spread still fit into a usec_t. */
#define BACKOFF_MOST (USEC_NEVER / 8)

static usec_t
between(usec_t value, usec_t min, usec_t max)
{
	return value < min ? min : value > max ? max : value;
}

void
site_backoff_fit(const struct site_backoff *backoff, struct site_backoff *ret)
{
	*ret = (struct site_backoff){
		.minimal_backoff_time =
		    between(backoff->minimal_backoff_time, 0, BACKOFF_MOST),
		.maximal_backoff_time =
		    between(backoff->maximal_backoff_time, 0, BACKOFF_MOST),
		.jitter_pct =
		    backoff->jitter_pct < 100 ? backoff->jitter_pct : 100,
	};
}

void
site_rules(const struct site_params *params, struct window_rules *ret_rules)
{
	uint32_t initial = params->initial_destination_concurrency;

	*ret_rules = (struct window_rules){
		.initial = initial == 0 ? 1 : initial,
		.limit = params->destination_concurrency_limit,
		.positive = params->positive,
		.negative = params->negative,
		.failed_cohort_limit = params->failed_cohort_limit,
	};
}

/* Doubled and capped first, then spread: sites that died together do not open
 * together, even when all have come to the maximum. So a time is at most
 * jitter_pct above the maximum, and at most that much below the minimum. */
static usec_t
suspension(const struct site_backoff *b, uint32_t deaths, uint64_t *random)
{
	uint32_t doublings = deaths - 1 < 62 ? deaths - 1 : 62;
	bool capped =
	    b->minimal_backoff_time > b->maximal_backoff_time >> doublings;
	usec_t time = capped ? b->maximal_backoff_time
			     : b->minimal_backoff_time << doublings;
	usec_t spread = time / 100 * (usec_t)b->jitter_pct;
	uint64_t part = random_next(random);

	return time - spread + (usec_t)(part % (2 * (uint64_t)spread + 1));
}

usec_t
site_dead_until(const struct site_backoff *backoff, uint32_t deaths,
    uint64_t *random, usec_t now)
{
	usec_t time = suspension(backoff, deaths, random);

	return now > USEC_NEVER - time ? USEC_NEVER : now + time;
}

/* Twice the longest backoff: mail that was deferred for the longest time still
 * finds what its destination has learned, deaths included. */
usec_t
site_remembered(const struct site_backoff *b)
{
	return 2 *
	    (b->minimal_backoff_time > b->maximal_backoff_time
		    ? b->minimal_backoff_time
		    : b->maximal_backoff_time);
}

size_t
site_why_len(const char *why)
{
	size_t len = why == NULL ? 0 : strnlen(why, SITE_WHY_MAX + 1);

	if (len <= SITE_WHY_MAX)
		return len;
	len = SITE_WHY_MAX;
	while (len > 0 && ((unsigned char)why[len] & 0xc0) == 0x80)
		len--;
	return len;
}

uint64_t
site_mix(uint64_t x)
{
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
	return x ^ (x >> 32);
}

uint64_t
site_hash(uint64_t hash, const char *name)
{
	for (; *name != '\0'; name++)
		hash = site_mix(hash ^ site_lower((unsigned char)*name));
	return hash;
}
