#include "queue-send/backlog/own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "queue-send/state/send.h"
#include "site/shared.h"

_Static_assert(ROUTE_DESTINATION_MAX == SITE_NAME_MAX, "a name fits both");

static int
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

/* ---- claims ---- */

static int
claim_compare(const struct claim *a, const struct claim *b)
{
	return backlog_compare(a->backlog, b->backlog);
}

TREE_GENERATE(claims, claim, link, claim_compare)

static struct claim *
claim_find(struct message *m, uint32_t transport, const char *name)
{
	struct backlog backlog = { .transport = transport, .name = name };
	struct claim key = { .backlog = &backlog };

	return RB_FIND(claims, &m->claims, &key);
}

static struct claim *
claim_make(
    struct send *s, struct message *m, uint32_t transport, const char *name)
{
	struct claim *c = calloc(1, sizeof(*c));
	struct backlog *b = c == NULL ? NULL : backlog_get(s, transport, name);

	if (b == NULL) {
		free(c);
		return NULL;
	}
	c->backlog = b;
	b->claims++;
	RB_INSERT(claims, &m->claims, c);
	return c;
}

int
claims_add(struct send *s, struct message *m, uint32_t transport,
    const char *nexthop, const char *address)
{
	char name[ROUTE_DESTINATION_MAX + 1];
	struct claim *c;

	if (m->sole || route_destination(nexthop, address, name) < 0)
		return 0;
	c = claim_find(m, transport, name);
	if (c == NULL)
		c = claim_make(s, m, transport, name);
	if (c == NULL)
		return -ENOMEM;
	c->left++;
	return 0;
}

static void
drop(struct send *s, struct message *m, struct claim *c)
{
	struct backlog *b = c->backlog;

	RB_REMOVE(claims, &m->claims, c);
	free(c);
	b->claims--;
	backlog_put(s, b);
}

void
claims_end(struct send *s, struct message *m, const struct sched_entry *e)
{
	char name[ROUTE_DESTINATION_MAX + 1];
	struct claim *c;

	if (m->sole || route_destination(e->destination, NULL, name) < 0)
		return;
	c = claim_find(m, e->transport, name);
	if (c == NULL)
		return;
	c->left -= e->nrcpts < c->left ? e->nrcpts : c->left;
	if (c->left == 0)
		drop(s, m, c);
}

static int
move_sole(
    struct send *s, struct message *m, uint32_t transport, const char *name)
{
	struct backlog *b = backlog_get(s, transport, name);

	if (b == NULL)
		return -ENOMEM;
	if (b != m->backlog)
		share_hold(s, m, b);
	return 0;
}

int
claims_move(struct send *s, struct message *m, const struct sched_entry *e,
    const char *destination)
{
	char name[ROUTE_DESTINATION_MAX + 1];
	struct claim *c;

	if (route_destination(destination, NULL, name) < 0)
		return 0;
	if (m->sole)
		return move_sole(s, m, e->transport, name);
	c = claim_find(m, e->transport, name);
	if (c == NULL)
		c = claim_make(s, m, e->transport, name);
	if (c == NULL)
		return -ENOMEM;
	c->left += e->nrcpts;
	claims_end(s, m, e);
	return 0;
}

/* The first backlog that may hold a message more. */
static struct backlog *
with_room(struct send *s, struct message *m)
{
	struct claim *c;

	RB_FOREACH (c, claims, &m->claims)
		if (!backlog_is_beyond(s, c->backlog))
			return c->backlog;
	return NULL;
}

bool
claims_settle(struct send *s, struct message *m, bool may_leave)
{
	const struct backlog *held = m->backlog;
	struct claim *first = RB_MIN(claims, &m->claims);
	struct backlog *b;

	if (first == NULL ||
	    (held != NULL &&
		claim_find(m, held->transport, held->name) != NULL))
		return false;
	b = with_room(s, m);
	share_hold(s, m, b == NULL ? first->backlog : b);
	return b == NULL && may_leave;
}

void
claims_leave(struct send *s, struct message *m)
{
	struct claim *c;

	while ((c = RB_MIN(claims, &m->claims)) != NULL)
		drop(s, m, c);
	share_hold(s, m, NULL);
}
