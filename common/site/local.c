/* The table of one process. */
#include "site/rules.h"
#include "site/local.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Sites dropped in one go for their age; each open and close adds one at
 * most, so two are enough to keep up. */
#define AGED_AT_ONCE 2

/* ---- finding ---- */

/* Eight letters in lower case, of ASCII. */
static uint64_t
lower_eight(uint64_t letters)
{
	const uint64_t each = 0x0101010101010101;
	uint64_t low = letters & each * 0x7f;
	uint64_t from_a = low + each * (0x80 - 'A');
	uint64_t above_z = low + each * (0x7f - 'Z');
	uint64_t upper = from_a & ~above_z & ~letters & each * 0x80;

	return letters | upper >> 2;
}

/* Eight letters at a time; the end is filled up with zeros. */
static uint32_t
hash_name(const struct local *local, uint32_t transport, const char *name)
{
	uint64_t hash = local->secret ^ transport, letters;
	size_t left = strlen(name), n;

	for (; left > 0; left -= n, name += n) {
		n = left < sizeof(letters) ? left : sizeof(letters);
		letters = 0;
		memcpy(&letters, name, n);
		hash = site_mix(hash ^ lower_eight(letters));
	}
	return (uint32_t)hash;
}

/* Of the sizes of slabs; SITE_NSLABS: larger than all. */
static size_t
slab_for(const char *name)
{
	size_t bytes = offsetof(struct site, name) + strlen(name) + 1;
	size_t steps = (bytes + SITE_STEP - 1) / SITE_STEP;

	return steps <= SITE_NSLABS ? steps - 1 : SITE_NSLABS;
}

static struct site *
site_get(struct local *local, const char *name)
{
	size_t slab = slab_for(name);

	if (slab < SITE_NSLABS)
		return slab_get(&local->slabs[slab]);
	return malloc(offsetof(struct site, name) + strlen(name) + 1);
}

static void
site_put(struct local *local, struct site *site)
{
	size_t slab = slab_for(site->name);

	if (slab < SITE_NSLABS)
		slab_put(&local->slabs[slab], site);
	else
		free(site);
}

static struct site *
make_site(
    struct local *local, uint32_t transport, uint32_t hash, const char *name)
{
	struct site *site = site_get(local, name);

	if (site == NULL)
		return NULL;
	memset(site, 0, offsetof(struct site, name));
	site->hash = hash;
	site->transport = (uint16_t)transport;
	memcpy(site->name, name, strlen(name) + 1);
	window_init(&site->window, &local->rules[transport]);
	if (local_chains_put(local, site))
		return site;
	site_put(local, site);
	return NULL;
}

/* ---- idleness ---- */

static void
free_site(struct local *local, struct site *site)
{
	if (site->dead)
		local_bury(site);
	site_put(local, site);
}

static void
drop_site(struct local *local, struct site *site)
{
	local_chains_remove(local, site);
	free_site(local, site);
}

static void
idle_remove(struct local *local, struct site *site)
{
	TAILQ_REMOVE(&local->idle, site, link);
	local->nidle--;
	site->idle = false;
	site->opens = site->busy = 0;
}

static void
idle_drop_first(struct local *local)
{
	struct site *site = TAILQ_FIRST(&local->idle);

	idle_remove(local, site);
	drop_site(local, site);
}

static bool
is_aged(const struct local *local, const struct site *site, usec_t now)
{
	if (site->dead && site->death.until > now)
		return false;
	return now - site->since > site_remembered(&local->backoff);
}

static void
idle_age(struct local *local, usec_t now)
{
	struct site *site;
	int n;

	for (n = 0; n < AGED_AT_ONCE; n++) {
		site = TAILQ_FIRST(&local->idle);
		if (site == NULL || !is_aged(local, site, now))
			break;
		idle_drop_first(local);
	}
}

static bool
has_learned(const struct local *local, const struct site *site)
{
	return site->deaths > 0 || /* as every dead one has */
	    !window_is_fresh(&site->window, &local->rules[site->transport]);
}

static void
rest_site(struct local *local, struct site *site, usec_t now)
{
	if (site->opens > 0 || site->busy > 0)
		return;
	if (!has_learned(local, site)) {
		drop_site(local, site);
		return;
	}
	site->idle = true;
	site->since = now;
	TAILQ_INSERT_TAIL(&local->idle, site, link);
	if (++local->nidle > local->idle_max)
		idle_drop_first(local);
}

/* ---- the functions of the table ---- */

static struct site *
local_open(void *table, uint32_t transport, const char *name, usec_t now)
{
	struct local *local = table;
	uint32_t hash;
	struct site *site;

	ASSERT(transport < local->count);
	hash = hash_name(local, transport, name);
	site = local_chains_find(local, hash, transport, name);
	if (site == NULL)
		site = make_site(local, transport, hash, name);
	else if (site->idle)
		idle_remove(local, site);
	if (site != NULL && site->opens++ == 0)
		site->user = NULL;
	idle_age(local, now);
	return site;
}

static void
local_close(void *table, struct site *site, usec_t now)
{
	struct local *local = table;

	ASSERT(!site->idle && site->opens > 0);
	site->opens--;
	rest_site(local, site, now);
	idle_age(local, now);
}

static void **
local_user(struct site *site)
{
	return &site->user;
}

static const char *
local_name(const struct site *site)
{
	return site->name;
}

static enum site_state
local_state(void *table, struct site *site, usec_t now)
{
	local_reopen_due(table, site, now);
	return local_site_state(site);
}

static enum site_state
local_take(void *table, struct site *site, usec_t now)
{
	const struct local *local = table;
	enum site_state state = local_state(table, site, now);

	if (state == SITE_ROOM)
		site->busy++;
	/* The site may be dropped when this delivery ends. */
	local_chains_fetch(local, site->hash);
	return state;
}

/* A view whose reason outlives the death. */
static void
view_copy(const struct site *site, struct site_view *ret_view,
    char why[SITE_WHY_MAX + 1])
{
	local_site_view(site, ret_view);
	if (ret_view->why != NULL) {
		memcpy(why, ret_view->why, strlen(ret_view->why) + 1);
		ret_view->why = why;
	}
}

static void
local_done(void *table, struct site *site, const struct site_report *report,
    usec_t now, struct site_step *ret_step)
{
	const enum site_result result = report->result;
	struct local *local = table;
	struct site_step step = { .result = result };

	local_reopen_due(local, site, now);
	if (ret_step != NULL)
		view_copy(site, &step.before, local->why_before);
	if (result == SITE_DELIVERED)
		local_success(local, site);
	else if (result == SITE_FAILED)
		local_failure(local, site, report->why, now);
	else if (result == SITE_DOUBTED)
		local_doubt(local, site, report, now);
	if (result != SITE_UNTRIED) {
		ASSERT(site->busy > 0);
		site->busy--;
	}
	if (ret_step != NULL) {
		view_copy(site, &step.after, local->why_after);
		*ret_step = step;
	}
	if (result != SITE_UNTRIED)
		rest_site(local, site, now);
}

static void
local_flush(void *table, usec_t now UNUSED)
{
	struct local *local = table;
	struct site *site;

	while ((site = LIST_FIRST(&local->dead)) != NULL)
		local_reopen(local, site);
}

/* ---- the table ---- */

static const struct site_table functions = {
	.open = local_open,
	.close = local_close,
	.user = local_user,
	.name = local_name,
	.state = local_state,
	.take = local_take,
	.done = local_done,
	.view = local_site_view,
	.flush = local_flush,
};

static void
set_params(struct local *local, const struct site_params *params,
    const struct site_backoff *backoff)
{
	uint32_t i;

	site_backoff_fit(backoff, &local->backoff);
	for (i = 0; i < local->count; i++)
		site_rules(&params[i], &local->rules[i]);
}

static void
slabs_init(struct local *local)
{
	size_t i;

	pages_init(&local->pages);
	slab_init(&local->piece_slab, CHAINS_PIECE * sizeof(struct local_chain),
	    &local->pages);
	for (i = 0; i < SITE_NSLABS; i++)
		slab_init(&local->slabs[i], (i + 1) * SITE_STEP, &local->pages);
}

int
local_new(const struct site_params *params, uint32_t count,
    const struct site_backoff *backoff, uint32_t idle_max, uint64_t seed,
    struct local **ret_local)
{
	struct local *local;

	if (count > UINT16_MAX)
		return -EINVAL;
	local = calloc(1, sizeof(*local) + count * sizeof(struct window_rules));
	if (local == NULL)
		return -ENOMEM;
	local->table = functions;
	local->table.table = local;
	LIST_INIT(&local->dead);
	TAILQ_INIT(&local->idle);
	local->idle_max = idle_max;
	local->random = seed;
	local->secret = site_mix(~seed);
	local->count = count;
	slabs_init(local);
	set_params(local, params, backoff);
	*ret_local = local;
	return 0;
}

static void
free_idle(struct local *local, struct site *site)
{
	ASSERT(site->idle || site->opens == 0);
	free_site(local, site);
}

void
local_free(struct local **sites)
{
	struct local *local = *sites;
	size_t i;

	if (local == NULL)
		return;
	local_chains_walk(local, free_idle);
	local_chains_done(local);
	for (i = 0; i < SITE_NSLABS; i++)
		slab_done(&local->slabs[i]);
	slab_done(&local->piece_slab);
	pages_done(&local->pages);
	free(local);
	*sites = NULL;
}

const struct site_table *
local_table(const struct local *local)
{
	return &local->table;
}

static void
fit_window(struct local *local, struct site *site)
{
	if (!site->dead)
		window_fit(&site->window, &local->rules[site->transport]);
}

int
local_configure(struct local *local, const struct site_params *params,
    uint32_t count, const struct site_backoff *backoff)
{
	if (count != local->count)
		return -EINVAL;
	set_params(local, params, backoff);
	local_chains_walk(local, fit_window);
	return 0;
}
