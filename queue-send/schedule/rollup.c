#include "queue-send/schedule/own.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "route/mx_site.h"
#include "route/nexthop.h"

#define ROLLED_MAX  65536
#define SECONDS_MAX 3600
#define MOVES_MAX   3 /* of an entry */
#define SMTP_PORT   25

static int
rolled_compare(const struct rolled *a, const struct rolled *b)
{
	if (a->transport != b->transport)
		return a->transport < b->transport ? -1 : 1;
	return strcasecmp(a->nexthop, b->nexthop);
}

TREE_GENERATE(rolled_tree, rolled, link, rolled_compare)

static void
drop(struct send *s, struct rolled *x)
{
	RB_REMOVE(rolled_tree, &s->schedule->rollup.tree, x);
	TAILQ_REMOVE(&s->schedule->rollup.used, x, use);
	s->schedule->rollup.count--;
	free(x);
}

void
rollup_forget_all(struct send *s)
{
	struct rolled *x;

	while ((x = TAILQ_FIRST(&s->schedule->rollup.used)) != NULL)
		drop(s, x);
}

static struct rolled *
rolled_find(struct send *s, uint32_t transport, const char *nexthop)
{
	struct rolled key = { .transport = transport, .nexthop = nexthop };

	return RB_FIND(rolled_tree, &s->schedule->rollup.tree, &key);
}

const struct rolled *
rollup_find(struct send *s, uint32_t transport, const char *nexthop)
{
	struct rolled *x;

	if (s->schedule->rollup.count == 0)
		return NULL;
	x = rolled_find(s, transport, nexthop);
	if (x == NULL)
		return NULL;
	if (s->now >= x->until) {
		drop(s, x);
		return NULL;
	}
	TAILQ_REMOVE(&s->schedule->rollup.used, x, use);
	TAILQ_INSERT_TAIL(&s->schedule->rollup.used, x, use);
	return x;
}

static struct rolled *
make(uint32_t transport, const char *nexthop, const char *site)
{
	const size_t hop = strlen(nexthop) + 1, name = strlen(site) + 1;
	struct rolled *x = malloc(sizeof(*x) + hop + name);

	if (x == NULL)
		return NULL;
	x->transport = transport;
	x->nexthop = memcpy(x->text, nexthop, hop);
	x->site = memcpy(x->text + hop, site, name);
	return x;
}

/* Without memory nothing is noted: the next delivery asks again. */
void
rollup_note(struct send *s, uint32_t transport, const char *nexthop,
    const char *site, uint32_t seconds)
{
	struct rolled *x = rolled_find(s, transport, nexthop);

	if (x != NULL)
		drop(s, x);
	if (site[0] == '\0' || seconds == 0)
		return;
	x = make(transport, nexthop, site);
	if (x == NULL)
		return;
	if (seconds > SECONDS_MAX)
		seconds = SECONDS_MAX;
	x->until = s->now + seconds * USEC_PER_SEC;
	x->number = ++s->schedule->rollup.numbers;
	if (s->schedule->rollup.count == ROLLED_MAX)
		drop(s, TAILQ_FIRST(&s->schedule->rollup.used));
	RB_INSERT(rolled_tree, &s->schedule->rollup.tree, x);
	TAILQ_INSERT_TAIL(&s->schedule->rollup.used, x, use);
	s->schedule->rollup.count++;
}

/* A domain whose MX records are looked up, and no word of an operator's that
 * names a server. */
static bool
is_domain(const struct send *s, const char *nexthop)
{
	struct nexthop hop;

	return strchr(nexthop, ':') == NULL && strchr(nexthop, '.') != NULL &&
	    strcasecmp(nexthop, s->conf->relayhost) != 0 &&
	    nexthop_parse(nexthop, SMTP_PORT, &hop) == 0 &&
	    hop.kind == NEXTHOP_DOMAIN;
}

bool
rollup_may_be_shared(
    const struct send *s, uint32_t transport, const char *nexthop)
{
	const struct conf_transport *t = &s->conf->transports[transport];

	return t->kind == AGENT_SMTP && t->mx_lookup && t->mx_rollup &&
	    t->sched.destination_recipient_limit != 1 && is_domain(s, nexthop);
}

/* A mailbox of another kind of transport may have such a name, too. */
bool
rollup_is_shared(const struct send *s, const struct sched_entry *e)
{
	return s->conf->transports[e->transport].kind == AGENT_SMTP &&
	    e->nexthop == e->destination && mx_site_is(e->destination);
}

/* A delivery that is not asked for may fail for reasons of its own, so it is
 * never at a destination of others: the last move is to its own. */
bool
rollup_is_asked(
    const struct send *s, const struct sched_entry *e, const char *nexthop)
{
	return rollup_is_shared(s, e) ||
	    (e->moves < MOVES_MAX - 1 &&
		rollup_may_be_shared(s, e->transport, nexthop));
}

bool
rollup_is_last_move(const struct sched_entry *e)
{
	return e->moves >= MOVES_MAX - 1;
}

/* At the destination of its next hop; one that is shared is asked for each
 * time. */
const char *
rollup_elsewhere(struct send *s, const struct sched_entry *e)
{
	const struct rolled *x;

	if (s->schedule->rollup.count == 0 || e->moves >= MOVES_MAX - 1 ||
	    rollup_is_shared(s, e) || e->nexthop != e->destination)
		return NULL;
	x = rollup_find(s, e->transport, e->nexthop);
	return x == NULL ? NULL : x->site;
}
