/* The table of one process. */
#include "site/rules.h"
#include "site/local.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Sites dropped in one go for their age; each open and close adds one at
 * most, so two are enough to keep up. */
#define AGED_AT_ONCE 2

#define CHAINS_LEAST 64 /* a power of two */

/* ---- finding ---- */

static uint64_t
hash_name(const struct sites *sites, uint32_t transport, const char *name)
{
	return site_hash(sites->secret ^ transport, name);
}

static struct site_chain *
chain_of(const struct sites *sites, uint64_t hash)
{
	return &sites->chains[hash & (sites->nchains - 1)];
}

static struct site *
site_find(const struct sites *sites, uint32_t transport, uint64_t hash,
    const char *name)
{
	struct site *site;

	if (sites->nchains == 0)
		return NULL;
	SLIST_FOREACH (site, chain_of(sites, hash), link)
		if (site->hash == hash && site->transport == transport &&
		    strcasecmp(site->name, name) == 0)
			break;
	return site;
}

/* Without memory they stay as many as they are, and are longer. */
static void
chains_resize(struct sites *sites, uint64_t count)
{
	struct site_chain *old = sites->chains, *chains;
	uint64_t i, n = sites->nchains;
	struct site *site;

	chains = calloc(count, sizeof(*chains));
	if (chains == NULL)
		return;
	sites->chains = chains;
	sites->nchains = count;
	for (i = 0; i < n; i++)
		while ((site = SLIST_FIRST(&old[i])) != NULL) {
			SLIST_REMOVE_HEAD(&old[i], link);
			SLIST_INSERT_HEAD(
			    chain_of(sites, site->hash), site, link);
		}
	free(old);
}

static struct site *
site_make(
    struct sites *sites, uint32_t transport, uint64_t hash, const char *name)
{
	size_t len = strlen(name);
	struct site *site;

	if (sites->nsites >= sites->nchains)
		chains_resize(sites,
		    sites->nchains == 0 ? CHAINS_LEAST : 2 * sites->nchains);
	site = sites->nchains == 0 ? NULL : malloc(sizeof(*site) + len + 1);
	if (site == NULL)
		return NULL;
	*site = (struct site){
		.hash = hash,
		.transport = (uint16_t)transport,
	};
	memcpy(site->name, name, len + 1);
	window_init(&site->window, &sites->rules[transport]);
	SLIST_INSERT_HEAD(chain_of(sites, hash), site, link);
	sites->nsites++;
	return site;
}

/* ---- idleness ---- */

static void
site_free(struct site *site)
{
	if (site->dead)
		site_bury(site);
	free(site);
}

static void
site_drop(struct sites *sites, struct site *site)
{
	SLIST_REMOVE(chain_of(sites, site->hash), site, site, link);
	sites->nsites--;
	site_free(site);
	if (sites->nchains > CHAINS_LEAST && sites->nsites < sites->nchains / 8)
		chains_resize(sites, sites->nchains / 2);
}

static void
idle_remove(struct sites *sites, struct site *site)
{
	TAILQ_REMOVE(&sites->idle, site, idle.link);
	sites->nidle--;
}

static void
idle_drop_first(struct sites *sites)
{
	struct site *site = TAILQ_FIRST(&sites->idle);

	idle_remove(sites, site);
	site_drop(sites, site);
}

static bool
is_aged(const struct sites *sites, const struct site *site, usec_t now)
{
	if (site->dead && site->death.until > now)
		return false;
	return now - site->idle.since > site_remembered(&sites->backoff);
}

static void
idle_age(struct sites *sites, usec_t now)
{
	struct site *site;
	int n;

	for (n = 0; n < AGED_AT_ONCE; n++) {
		site = TAILQ_FIRST(&sites->idle);
		if (site == NULL || !is_aged(sites, site, now))
			break;
		idle_drop_first(sites);
	}
}

static bool
has_learned(const struct sites *sites, const struct site *site)
{
	return site->deaths > 0 || /* as every dead one has */
	    !window_is_fresh(&site->window, &sites->rules[site->transport]);
}

static void
site_rest(struct sites *sites, struct site *site, usec_t now)
{
	if (site->opens > 0 || site->busy > 0)
		return;
	if (!has_learned(sites, site)) {
		site_drop(sites, site);
		return;
	}
	site->idle.since = now;
	TAILQ_INSERT_TAIL(&sites->idle, site, idle.link);
	if (++sites->nidle > sites->idle_max)
		idle_drop_first(sites);
}

/* ---- the functions of the table ---- */

static struct site *
sites_open(void *table, uint32_t transport, const char *name, usec_t now)
{
	struct sites *sites = table;
	uint64_t hash;
	struct site *site;

	ASSERT(transport < sites->count);
	hash = hash_name(sites, transport, name);
	site = site_find(sites, transport, hash, name);
	if (site == NULL)
		site = site_make(sites, transport, hash, name);
	else if (site->opens == 0 && site->busy == 0)
		idle_remove(sites, site);
	if (site != NULL && site->opens++ == 0)
		site->mine = NULL;
	idle_age(sites, now);
	return site;
}

static void
sites_close(void *table, struct site *site, usec_t now)
{
	struct sites *sites = table;

	ASSERT(site->opens > 0);
	site->opens--;
	site_rest(sites, site, now);
	idle_age(sites, now);
}

static void **
sites_mine(struct site *site)
{
	return &site->mine;
}

static const char *
sites_name(const struct site *site)
{
	return site->name;
}

static enum site_state
sites_state(void *table, struct site *site, usec_t now)
{
	site_reopen_due(table, site, now);
	return site_state(site);
}

static enum site_state
sites_take(void *table, struct site *site, usec_t now)
{
	enum site_state state = sites_state(table, site, now);

	if (state == SITE_ROOM)
		site->busy++;
	return state;
}

/* A view whose reason stays when the death it is of does not. */
static void
view_copy(const struct site *site, struct site_view *ret_view,
    char why[SITE_WHY_MAX + 1])
{
	site_view(site, ret_view);
	if (ret_view->why != NULL) {
		memcpy(why, ret_view->why, strlen(ret_view->why) + 1);
		ret_view->why = why;
	}
}

static void
sites_done(void *table, struct site *site, enum site_result result,
    const char *why, usec_t now, struct site_step *ret_step)
{
	struct sites *sites = table;
	struct site_step step = { .result = result };

	site_reopen_due(sites, site, now);
	if (ret_step != NULL)
		view_copy(site, &step.before, sites->why_before);
	if (result == SITE_DELIVERED)
		site_success(sites, site);
	else if (result == SITE_FAILED)
		site_failure(sites, site, why, now);
	if (result != SITE_UNTRIED) {
		ASSERT(site->busy > 0);
		site->busy--;
	}
	if (ret_step != NULL) {
		view_copy(site, &step.after, sites->why_after);
		*ret_step = step;
	}
	if (result != SITE_UNTRIED)
		site_rest(sites, site, now);
}

static void
sites_flush(void *table, usec_t now UNUSED)
{
	struct sites *sites = table;
	struct site *site;

	while ((site = LIST_FIRST(&sites->dead)) != NULL)
		site_reopen(sites, site);
}

/* ---- the table ---- */

static const struct site_table functions = {
	.open = sites_open,
	.close = sites_close,
	.mine = sites_mine,
	.name = sites_name,
	.state = sites_state,
	.take = sites_take,
	.done = sites_done,
	.view = site_view,
	.flush = sites_flush,
};

static void
set_params(struct sites *sites, const struct site_params *params,
    const struct site_backoff *backoff)
{
	uint32_t i;

	site_backoff_fit(backoff, &sites->backoff);
	for (i = 0; i < sites->count; i++)
		site_rules(&params[i], &sites->rules[i]);
}

int
sites_new(const struct site_params *params, uint32_t count,
    const struct site_backoff *backoff, uint32_t idle_max, uint64_t seed,
    struct sites **ret_sites)
{
	struct sites *sites;

	if (count > UINT16_MAX)
		return -EINVAL;
	sites = calloc(1, sizeof(*sites) + count * sizeof(struct window_rules));
	if (sites == NULL)
		return -ENOMEM;
	sites->table = functions;
	sites->table.table = sites;
	LIST_INIT(&sites->dead);
	TAILQ_INIT(&sites->idle);
	sites->idle_max = idle_max;
	sites->random = seed;
	sites->secret = site_mix(~seed);
	sites->count = count;
	set_params(sites, params, backoff);
	*ret_sites = sites;
	return 0;
}

void
sites_free(struct sites **sites)
{
	struct site *site;
	uint64_t i;

	if (*sites == NULL)
		return;
	for (i = 0; i < (*sites)->nchains; i++)
		while ((site = SLIST_FIRST(&(*sites)->chains[i])) != NULL) {
			ASSERT(site->opens == 0);
			SLIST_REMOVE_HEAD(&(*sites)->chains[i], link);
			site_free(site);
		}
	free((*sites)->chains);
	free(*sites);
	*sites = NULL;
}

const struct site_table *
sites_table(const struct sites *sites)
{
	return &sites->table;
}

int
sites_configure(struct sites *sites, const struct site_params *params,
    uint32_t count, const struct site_backoff *backoff)
{
	struct site *site;
	uint64_t i;

	if (count != sites->count)
		return -EINVAL;
	set_params(sites, params, backoff);
	for (i = 0; i < sites->nchains; i++)
		SLIST_FOREACH (site, &sites->chains[i], link)
			if (!site->dead)
				window_fit(&site->window,
				    &sites->rules[site->transport]);
	return 0;
}
