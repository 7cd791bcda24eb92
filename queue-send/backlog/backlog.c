#include "queue-send/backlog/own.h"

#include <stdlib.h>
#include <string.h>

#include "queue-send/state/send.h"
#include "site/shared.h"

_Static_assert(ROUTE_DESTINATION_MAX == SITE_NAME_MAX, "a name fits both");

int
backlog_compare(const struct backlog *a, const struct backlog *b)
{
	if (a->transport != b->transport)
		return a->transport < b->transport ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int
name_compare(const struct backlog *a, const struct backlog *b)
{
	if (a->generation != b->generation)
		return a->generation < b->generation ? -1 : 1;
	return backlog_compare(a, b);
}

TREE_GENERATE(backlog_names, backlog, by_name, name_compare)

struct backlog *
backlog_find(struct send *s, uint32_t transport, const char *name)
{
	struct backlog key = { .generation = s->share->generation,
		.transport = transport,
		.name = name };

	return RB_FIND(backlog_names, &s->share->names, &key);
}

struct backlog *
backlog_get(struct send *s, uint32_t transport, const char *name)
{
	struct backlog *b = backlog_find(s, transport, name);
	size_t size = strlen(name) + 1;

	if (b != NULL)
		return b;
	b = calloc(1, sizeof(*b) + size);
	if (b == NULL)
		return NULL;
	b->transport = transport;
	b->generation = s->share->generation;
	b->name = memcpy(b->text, name, size);
	RB_INSERT(backlog_names, &s->share->names, b);
	return b;
}

void
backlog_put(struct send *s, struct backlog *b)
{
	if (b->held == 0 && b->claims == 0 && b->due.nodes == 0)
		backlog_free(s, b);
}

void
backlog_free(struct send *s, struct backlog *b)
{
	RB_REMOVE(backlog_names, &s->share->names, b);
	free(b);
}

void
backlog_each(struct send *s, void (*visit)(struct send *s, struct backlog *b))
{
	struct backlog *b, *next;

	RB_FOREACH_SAFE (b, backlog_names, &s->share->names, next)
		visit(s, b);
}

bool
backlog_is_stale(const struct send *s, const struct backlog *b)
{
	return b->generation != s->share->generation;
}

uint32_t
backlog_limit(const struct send *s)
{
	uint64_t limit = s->conf->sched.message_active_limit,
		 pct = s->conf->destination_active_share_pct,
		 used = s->active + s->due.asked +
	    s->messages.count[STATE_ENTERING_INCOMING],
		 n;

	if (pct >= 100)
		return UINT32_MAX;
	n = limit < used ? 0 : (limit - used) * pct / (100 - pct);
	return n < 1 ? 1 : (uint32_t)n;
}

uint32_t
backlog_load(const struct backlog *b)
{
	return b->held + b->due.nasked;
}

bool
backlog_is_beyond(const struct send *s, const struct backlog *b)
{
	return b->due.nwaiting > 0 || backlog_load(b) >= backlog_limit(s);
}

bool
backlog_is_dead(const struct send *s, const struct backlog *b)
{
	struct site *site = site_open(s->sites, b->transport, b->name, s->now);
	bool dead;

	if (site == NULL)
		return false;
	dead = site_state(site, s->now) == SITE_DEAD;
	site_close(site, s->now);
	return dead;
}
