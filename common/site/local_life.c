/* One site: its deaths, and what a delivery report does to it. */
#include "site/rules.h"
#include "site/local.h"

#include <stdlib.h>
#include <string.h>

/* The reason when there is no memory for one. */
static char why_unknown[] = SITE_WHY_UNKNOWN;

static char *
why_copy(const char *why)
{
	size_t len = site_why_len(why);
	char *copy = len == 0 ? NULL : strndup(why, len);

	return copy == NULL ? why_unknown : copy;
}

static void
why_free(char *why)
{
	if (why != why_unknown)
		free(why);
}

static void
kill_site(struct local *local, struct site *site, const char *why, usec_t now)
{
	struct window last = site->window;

	if (site->deaths < UINT32_MAX)
		site->deaths++;
	site->dead = true;
	site->death = (struct local_death){
		.until = site_dead_until(
		    &local->backoff, site->deaths, &local->random, now),
		.since = now,
		.why = why_copy(why),
		.window = last.window,
		.fail_cohorts = last.fail_cohorts,
	};
	LIST_INSERT_HEAD(&local->dead, site, death.link);
}

void
local_bury(struct site *site)
{
	LIST_REMOVE(site, death.link);
	why_free(site->death.why);
	site->dead = false;
}

void
local_reopen(struct local *local, struct site *site)
{
	local_bury(site);
	window_init(&site->window, &local->rules[site->transport]);
}

void
local_reopen_due(struct local *local, struct site *site, usec_t now)
{
	if (site->dead && site->death.until <= now)
		local_reopen(local, site);
}

enum site_state
local_site_state(const struct site *site)
{
	if (site->dead)
		return SITE_DEAD;
	return site->busy < site->window.window ? SITE_ROOM : SITE_FULL;
}

void
local_site_view(const struct site *site, struct site_view *ret_view)
{
	struct site_view view = {
		.state = local_site_state(site),
		.busy = site->busy,
		.deaths = site->deaths,
	};

	if (site->dead) {
		view.window = site->death.window;
		view.fail_cohorts = site->death.fail_cohorts;
		view.dead_since = site->death.since;
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
local_success(struct local *local, struct site *site)
{
	const struct window_rules *rules = &local->rules[site->transport];

	site->deaths = 0;
	if (!site->dead) {
		window_success(&site->window, rules, site->busy);
		return;
	}
	local_bury(site);
	window_revive(&site->window, rules, site->busy);
}

void
local_failure(
    struct local *local, struct site *site, const char *why, usec_t now)
{
	const struct window_rules *rules = &local->rules[site->transport];

	if (!site->dead && window_failure(&site->window, rules))
		kill_site(local, site, why, now);
}
