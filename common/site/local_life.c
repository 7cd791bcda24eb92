/* One site: its deaths, and what a delivery report does to it. */
#include "site/rules.h"
#include "site/local.h"

#include <stdlib.h>
#include <string.h>

static struct local_told *
told_new(const struct window *last, const char *why, usec_t now)
{
	const char *text = site_why_len(why) == 0 ? SITE_WHY_UNKNOWN : why;
	size_t len = site_why_len(text);
	struct local_told *told = malloc(sizeof(*told) + len + 1);

	if (told == NULL)
		return NULL;
	*told = (struct local_told){
		.since = now,
		.fail_cohorts = last->fail_cohorts,
		.window = last->window,
	};
	memcpy(told->why, text, len);
	told->why[len] = '\0';
	return told;
}

static void
kill_site(struct local *local, struct site *site, const char *why, usec_t now)
{
	struct window last = site->window;

	if (site->deaths < DEATHS_MOST)
		site->deaths++;
	site->dead = true;
	site->death = (struct local_death){
		.until = site_dead_until(
		    &local->backoff, site->deaths, &local->random, now),
		.told = told_new(&last, why, now),
	};
	LIST_INSERT_HEAD(&local->dead, site, death.link);
}

void
local_bury(struct site *site)
{
	LIST_REMOVE(site, death.link);
	free(site->death.told);
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

/* Without what is told it began when it ends. */
static void
view_death(const struct local_death *death, struct site_view *view)
{
	const struct local_told *told = death->told;

	view->dead_since = view->dead_until = death->until;
	view->why = SITE_WHY_UNKNOWN;
	if (told == NULL)
		return;
	view->window = told->window;
	view->fail_cohorts = told->fail_cohorts;
	view->dead_since = told->since;
	view->why = told->why;
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
		view_death(&site->death, &view);
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

void
local_doubt(struct local *local, struct site *site,
    const struct site_report *report, usec_t now)
{
	const struct window_rules *rules = &local->rules[site->transport];

	if (!site->dead && window_doubt(&site->window, rules, report->message))
		kill_site(local, site, report->why, now);
}
