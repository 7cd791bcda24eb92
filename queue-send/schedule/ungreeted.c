#include "queue-send/schedule/own.h"

#include <bsd/stdlib.h>
#include <stdlib.h>

#include "agent/agent.h"
#include "queue-send/state/agent.h"
#include "site/rules.h"
#include "site/shared.h"

#define ASKED_PER_TURN 64 /* destinations that may have a slot now */
#define ASK_EVERY      (5 * USEC_PER_SEC)

/* A destination that has greeted. */
struct greeted {
	RB_ENTRY(greeted) link;
	TAILQ_ENTRY(greeted) use;
	uint64_t hash; /* of its transport and name */
	usec_t at;     /* of the last greeting */
	/* Deliveries that were greeted; fewer where it was forgotten since. */
	uint32_t running;
};

/* A destination with deliveries that were not greeted, or one that is held. */
struct ungreeted_site {
	RB_ENTRY(ungreeted_site) link;
	TAILQ_ENTRY(ungreeted_site) in_held;
	struct site *site; /* open */
	uint32_t transport, running;
	bool held;   /* the scheduler takes it for full */
	bool pinned; /* the scheduler is told of it */
};

static int
hash_compare(const struct greeted *a, const struct greeted *b)
{
	return (a->hash > b->hash) - (a->hash < b->hash);
}

static int
site_compare(const struct ungreeted_site *a, const struct ungreeted_site *b)
{
	return ((uintptr_t)a->site > (uintptr_t)b->site) -
	    ((uintptr_t)a->site < (uintptr_t)b->site);
}

TREE_GENERATE(greeted_tree, greeted, link, hash_compare)
TREE_GENERATE(ungreeted_tree, ungreeted_site, link, site_compare)

/* ---- destinations that have greeted ---- */

static struct greeted *
greeted_find(struct send *s, uint32_t transport, const char *name)
{
	struct greeted key = {
		.hash =
		    site_hash(s->schedule->ungreeted.secret + transport, name),
	};

	return RB_FIND(greeted_tree, &s->schedule->ungreeted.greeted, &key);
}

static void
greeted_drop(struct send *s, struct greeted *g)
{
	RB_REMOVE(greeted_tree, &s->schedule->ungreeted.greeted, g);
	TAILQ_REMOVE(&s->schedule->ungreeted.used, g, use);
	s->schedule->ungreeted.ngreeted--;
	free(g);
}

/* NULL, without memory: it is one that has not greeted, and waits for a slot of
 * these. */
static struct greeted *
greeted_add(struct send *s, uint32_t transport, const char *name)
{
	struct greeted *g = greeted_find(s, transport, name);

	if (g != NULL) {
		TAILQ_REMOVE(&s->schedule->ungreeted.used, g, use);
		TAILQ_INSERT_TAIL(&s->schedule->ungreeted.used, g, use);
		return g;
	}
	g = calloc(1, sizeof(*g));
	if (g == NULL)
		return NULL;
	if (s->schedule->ungreeted.ngreeted == UNGREETED_KNOWN)
		greeted_drop(s, TAILQ_FIRST(&s->schedule->ungreeted.used));
	g->hash = site_hash(s->schedule->ungreeted.secret + transport, name);
	RB_INSERT(greeted_tree, &s->schedule->ungreeted.greeted, g);
	TAILQ_INSERT_TAIL(&s->schedule->ungreeted.used, g, use);
	s->schedule->ungreeted.ngreeted++;
	return g;
}

/* ---- destinations that are counted or held ---- */

static struct ungreeted_site *
site_find(struct send *s, struct site *site)
{
	struct ungreeted_site key = { .site = site };

	return RB_FIND(ungreeted_tree, &s->schedule->ungreeted.sites, &key);
}

static struct ungreeted_site *
site_get(struct send *s, uint32_t transport, const char *name)
{
	struct site *site = site_open(s->sites, transport, name, s->now);
	struct ungreeted_site *u = NULL;

	if (site == NULL)
		return NULL;
	u = site_find(s, site);
	if (u == NULL)
		u = calloc(1, sizeof(*u));
	if (u == NULL || u->site != NULL) {
		site_close(site, s->now);
		return u;
	}
	u->site = site;
	u->transport = transport;
	RB_INSERT(ungreeted_tree, &s->schedule->ungreeted.sites, u);
	return u;
}

static void
site_release(struct send *s, struct ungreeted_site *u)
{
	if (u->running > 0 || u->held || u->pinned)
		return;
	RB_REMOVE(ungreeted_tree, &s->schedule->ungreeted.sites, u);
	site_close(u->site, s->now);
	free(u);
}

static void
site_set_held(struct send *s, struct ungreeted_site *u, bool held)
{
	if (u->held == held)
		return;
	u->held = held;
	if (held) {
		TAILQ_INSERT_TAIL(&s->schedule->ungreeted.held, u, in_held);
		s->schedule->ungreeted.nheld++;
	} else {
		TAILQ_REMOVE(&s->schedule->ungreeted.held, u, in_held);
		s->schedule->ungreeted.nheld--;
	}
}

/* ---- the rule ---- */

static bool
is_remote(const struct send *s, uint32_t transport)
{
	const enum agent_kind kind = s->conf->transports[transport].kind;

	return kind == AGENT_SMTP || kind == AGENT_LMTP;
}

/* Slots of those that have not greeted; and slots in use above which each of
 * them has one. */
static uint32_t
share_of(const struct send *s, uint32_t transport)
{
	const uint64_t limit =
	    s->conf->transports[transport].sched.process_limit;
	const uint64_t share = limit * s->conf->smtp_ungreeted_share / 100;

	return share == 0 ? 1 : (uint32_t)share;
}

static bool
has_no_slot(struct send *s, struct site *site, uint32_t transport)
{
	const struct ungreeted_site *u = site_find(s, site);
	const uint32_t share = share_of(s, transport);
	const bool short_of =
	    sched_transport_running(s->sched, transport) >= share;

	if (s->schedule->ungreeted.running[transport] < share &&
	    (u == NULL || u->running == 0 || !short_of))
		return false;
	return greeted_find(s, transport, site_name(site)) == NULL;
}

/* shared_set_barred(). Without memory for it a destination is not held. */
static bool
on_barred(void *ctx, struct site *site)
{
	struct send *s = ctx;
	const uint32_t transport = site_transport(site);
	struct ungreeted_site *u;

	if (!is_remote(s, transport) || s->conf->smtp_ungreeted_share >= 100 ||
	    !has_no_slot(s, site, transport))
		return false;
	u = site_get(s, transport, site_name(site));
	if (u == NULL)
		return false;
	site_set_held(s, u, true);
	return true;
}

/* A slot is free, or a destination has greeted: for those that are held
 * longest. Each of them that is held still comes last then. */
static void
ask_again(struct send *s)
{
	struct ungreeted *all = &s->schedule->ungreeted;

	if (all->unchecked < ASKED_PER_TURN)
		all->unchecked =
		    all->nheld < ASKED_PER_TURN ? all->nheld : ASKED_PER_TURN;
	if (all->unchecked > 0)
		send_wake(s);
}

/* ---- the life of a delivery ---- */

void
ungreeted_selected(struct send *s, struct sched_entry *e)
{
	struct ungreeted_site *u;

	if (!is_remote(s, e->transport) ||
	    greeted_find(s, e->transport, e->destination) != NULL)
		return;
	u = site_get(s, e->transport, e->destination);
	if (u == NULL)
		return;
	u->running++;
	s->schedule->ungreeted.running[e->transport]++;
	e->mark = 1;
}

void
ungreeted_over(struct send *s, struct sched_entry *e)
{
	struct ungreeted_site *u;

	ask_again(s);
	if (e->mark == 0)
		return;
	e->mark = 0;
	s->schedule->ungreeted.running[e->transport]--;
	u = site_get(s, e->transport, e->destination);
	if (u == NULL) /* cannot be: the site has a place */
		return;
	u->running--;
	site_release(s, u);
}

void
ungreeted_greeted(struct send *s, struct sched_entry *e)
{
	struct greeted *g = greeted_add(s, e->transport, e->destination);

	if (g != NULL) {
		g->at = s->now;
		g->running++;
	}
	ungreeted_over(s, e);
}

void
ungreeted_greeted_over(struct send *s, const struct sched_entry *e)
{
	struct greeted *g = greeted_find(s, e->transport, e->destination);

	if (g != NULL && g->running > 0)
		g->running--;
}

/* A server that takes no more than so many connections refuses the next one at
 * once, and talks on the others: it is not silent. */
void
ungreeted_failed(struct send *s, const struct sched_entry *e)
{
	struct greeted *g = greeted_find(s, e->transport, e->destination);

	if (g != NULL && g->running == 0 && g->at <= e->selected_at)
		greeted_drop(s, g);
}

/* ---- destinations that wait for a slot ---- */

bool
ungreeted_is_held(struct send *s, uint32_t transport, const char *name,
    uint32_t *ret_used, uint32_t *ret_limit)
{
	struct site *site = site_open(s->sites, transport, name, s->now);
	const struct ungreeted_site *u;

	if (site == NULL)
		return false;
	u = site_find(s, site);
	site_close(site, s->now);
	if (u == NULL || !u->held)
		return false;
	*ret_used = s->schedule->ungreeted.running[transport];
	*ret_limit = share_of(s, transport);
	return true;
}

/* Deliveries that wait longest for a greeting end, as many as destinations
 * without a delivery wait for a slot: each of these gets its turn. Called after
 * all held destinations were asked again, so that none of them is dead or
 * without mail. */
static void
give_way(struct send *s)
{
	const struct agent_link *smtp = s->agent[AGENT_PROGRAM_SMTP];
	const usec_t time = s->conf->smtp_ungreeted_time;
	uint32_t wanted[CONF_TRANSPORTS_MAX] = { 0 };
	struct ungreeted_site *u;
	struct delivery *d;

	if (smtp == NULL || time == 0)
		return;
	TAILQ_FOREACH (u, &s->schedule->ungreeted.held, in_held)
		wanted[u->transport] += u->running == 0;
	TAILQ_FOREACH (d, &smtp->deliveries, of_agent)
		if (d->entry->mark != 0 && s->now - d->selected_at >= time &&
		    wanted[d->entry->transport] > 0) {
			wanted[d->entry->transport]--;
			delivery_cancel_one(d, AGENT_NOT_GREETED);
		}
}

usec_t
ungreeted_work(struct send *s)
{
	struct ungreeted *all = &s->schedule->ungreeted;
	struct ungreeted_site *u;
	void *destination;
	int n;

	if (s->now >= all->check_at) {
		all->checks = true;
		all->unchecked = all->nheld;
		all->check_at = s->now + ASK_EVERY;
	}
	for (n = 0; n < ASKED_PER_TURN && all->unchecked > 0; n++) {
		all->unchecked--;
		u = TAILQ_FIRST(&all->held);
		if (u == NULL)
			break;
		site_set_held(s, u, false);
		u->pinned = true;
		destination = *site_user(u->site);
		if (destination != NULL)
			sched_site_ready(s->sched, destination, s->now);
		u->pinned = false;
		site_release(s, u);
	}
	if (all->checks && all->unchecked == 0) {
		all->checks = false;
		give_way(s);
	}
	if (all->nheld == 0)
		return USEC_NEVER;
	return all->unchecked > 0 ? s->now : all->check_at;
}

/* ---- start and end ---- */

void
ungreeted_init(struct send *s)
{
	TAILQ_INIT(&s->schedule->ungreeted.used);
	TAILQ_INIT(&s->schedule->ungreeted.held);
	arc4random_buf(&s->schedule->ungreeted.secret,
	    sizeof(s->schedule->ungreeted.secret));
	if (s->sites != NULL)
		shared_set_barred(s->sites, on_barred, s);
}

void
ungreeted_done(struct send *s)
{
	struct ungreeted_site *u;
	struct greeted *g;

	while ((g = TAILQ_FIRST(&s->schedule->ungreeted.used)) != NULL)
		greeted_drop(s, g);
	while ((u = RB_ROOT(&s->schedule->ungreeted.sites)) != NULL) {
		u->running = 0;
		site_set_held(s, u, false);
		site_release(s, u);
	}
}
