#include "queue-send/backlog/own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "queue-send/state/send.h"

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
make(struct send *s, struct message *m, uint32_t transport, const char *name)
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
		c = make(s, m, transport, name);
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
		c = make(s, m, e->transport, name);
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
