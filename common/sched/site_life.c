/* One site: its deaths, and what a delivery report does to it. */
#include "sched/sites.h"

#include <stdlib.h>
#include <string.h>

/* The reason when there is no memory for one. */
static char why_unknown[] = "unknown";

static char *
why_copy(const char *why)
{
	size_t len = why == NULL ? 0 : strnlen(why, SITE_WHY_MAX + 1);
	char *copy;

	if (len > SITE_WHY_MAX) {
		/* Not within a character of UTF-8. */
		len = SITE_WHY_MAX;
		while (len > 0 && ((unsigned char)why[len] & 0xc0) == 0x80)
			len--;
	}
	copy = len == 0 ? NULL : strndup(why, len);
	return copy == NULL ? why_unknown : copy;
}

static void
why_free(char *why)
{
	if (why != why_unknown)
		free(why);
}

/* splitmix64, by Sebastiano Vigna: in the public domain. */
static uint64_t
random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* Doubled and capped first, then spread: sites that died together do not open
 * together, even when all have come to the maximum. So a time is at most
 * jitter_pct above the maximum, and at most that much below the minimum. */
static usec_t
suspension(struct sites *sites, uint32_t deaths)
{
	const struct site_backoff *b = &sites->backoff;
	uint32_t doublings = deaths - 1 < 62 ? deaths - 1 : 62;
	bool capped =
	    b->minimal_backoff_time > b->maximal_backoff_time >> doublings;
	usec_t time = capped ? b->maximal_backoff_time
			     : b->minimal_backoff_time << doublings;
	usec_t spread = time / 100 * (usec_t)b->jitter_pct;
	uint64_t part = random_next(&sites->random);

	return time - spread + (usec_t)(part % (2 * (uint64_t)spread + 1));
}

static void
site_kill(struct sites *sites, struct site *site, const char *why, usec_t now)
{
	struct window last = site->window;
	usec_t time;

	if (site->deaths < UINT32_MAX)
		site->deaths++;
	time = suspension(sites, site->deaths);
	site->dead = true;
	site->death = (struct death){
		.until = now > USEC_NEVER - time ? USEC_NEVER : now + time,
		.why = why_copy(why),
		.window = last.window,
		.fail_cohorts = last.fail_cohorts,
	};
	LIST_INSERT_HEAD(&sites->dead, site, death.link);
}

void
site_bury(struct site *site)
{
	LIST_REMOVE(site, death.link);
	why_free(site->death.why);
	site->dead = false;
}

void
site_reopen(struct sites *sites, struct site *site)
{
	site_bury(site);
	window_init(&site->window, &sites->rules[site->transport]);
}

void
site_reopen_due(struct sites *sites, struct site *site, usec_t now)
{
	if (site->dead && site->death.until <= now)
		site_reopen(sites, site);
}

enum site_state
site_state(const struct site *site)
{
	if (site->dead)
		return SITE_DEAD;
	return site->busy < site->window.window ? SITE_ROOM : SITE_FULL;
}

void
site_view(const struct site *site, struct site_view *ret_view)
{
	struct site_view view = {
		.state = site_state(site),
		.busy = site->busy,
		.deaths = site->deaths,
	};

	if (site->dead) {
		view.window = site->death.window;
		view.fail_cohorts = site->death.fail_cohorts;
		view.dead_until = site->death.until;
		view.why = site->death.why;
	} else {
		view.window = site->window.window;
		view.success = site->window.success;
		view.failure = site->window.failure;
		view.fail_cohorts = site->window.fail_cohorts;
	}
	*ret_view = view;
}

void
site_success(struct sites *sites, struct site *site)
{
	const struct window_rules *rules = &sites->rules[site->transport];

	site->deaths = 0;
	if (!site->dead) {
		window_success(&site->window, rules, site->busy);
		return;
	}
	site_bury(site);
	site->window =
	    (struct window){ .window = site->busy > 1 ? site->busy : 1 };
	window_fit(&site->window, rules);
}

void
site_failure(
    struct sites *sites, struct site *site, const char *why, usec_t now)
{
	const struct window_rules *rules = &sites->rules[site->transport];

	if (!site->dead && window_failure(&site->window, rules))
		site_kill(sites, site, why, now);
}
