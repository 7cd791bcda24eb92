#include "deliver-smtp/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct kept {
	TAILQ_ENTRY(kept) entry;
	struct session_context *context;
	struct agent *agent;
	uint64_t number;
	uint8_t kind;
	char transport[AGENT_NAME_MAX + 1];
	char nexthop[AGENT_NEXTHOP_MAX + 1];
	char site[MX_SITE_MAX + 1]; /* shared with other next hops; "": not */
	struct connection connection;
};

void
connection_done(struct connection *c)
{
	talk_free(&c->talk);
	policies_unref(&c->policies);
}

/* The connection is the caller's, or it has none. */
static void
drop(struct kept *k)
{
	TAILQ_REMOVE(&k->context->kept, k, entry);
	connection_done(&k->connection);
	free(k);
}

static void
end(struct kept *k)
{
	struct agent *agent = k->agent;
	uint64_t number = k->number;

	drop(k);
	agent_connection_closed(agent, number);
}

static void
on_gone(void *arg)
{
	end(arg);
}

static struct kept *
find(struct session_context *context, uint64_t number)
{
	struct kept *k;

	TAILQ_FOREACH (k, &context->kept, entry)
		if (k->number == number)
			break;
	return k;
}

void
kept_close(void *arg, uint64_t number)
{
	struct kept *k = find(arg, number);

	if (k != NULL)
		end(k);
}

void
kept_close_all(struct session_context *context)
{
	struct kept *k;

	while ((k = TAILQ_FIRST(&context->kept)) != NULL)
		end(k);
}

bool
kept_may(const struct session_context *context, const struct settings *settings,
    const struct agent_delivery *delivery, const struct connection *c)
{
	return delivery->may_keep && delivery->agent != NULL &&
	    !context->stopping && settings->idle_limit > 0 &&
	    (settings->reuse_count == 0 ||
		c->messages < settings->reuse_count) &&
	    clock_mono() - c->opened_at < settings->reuse_limit;
}

bool
kept_add(struct session_context *context, const struct settings *settings,
    const struct agent_delivery *delivery, struct connection *c)
{
	struct kept *k = calloc(1, sizeof(*k));

	if (k == NULL)
		return false;
	k->context = context;
	k->agent = delivery->agent;
	k->number = delivery->number;
	k->kind = delivery->kind;
	memcpy(
	    k->transport, delivery->transport, strlen(delivery->transport) + 1);
	memcpy(k->nexthop, delivery->nexthop, strlen(delivery->nexthop) + 1);
	if (delivery->site != NULL && mx_site_is(delivery->site))
		snprintf(k->site, sizeof(k->site), "%s", delivery->site);
	k->connection = *c;
	c->talk = NULL;
	c->policies = NULL;
	TAILQ_INSERT_HEAD(&context->kept, k, entry);
	talk_rest(k->connection.talk, settings->idle_limit, on_gone, k);
	return true;
}

static bool
is_of_transport(const struct kept *k, const struct agent_delivery *delivery)
{
	return k->agent == delivery->agent && k->kind == delivery->kind &&
	    strcmp(k->transport, delivery->transport) == 0;
}

bool
kept_is_shared(
    struct session_context *context, const struct agent_delivery *delivery)
{
	const struct kept *k = find(context, delivery->connection);

	return k != NULL && delivery->site != NULL && k->site[0] != '\0' &&
	    is_of_transport(k, delivery) &&
	    k->connection.policies == context->policies &&
	    strcmp(k->site, delivery->site) == 0 &&
	    strcmp(k->nexthop, delivery->nexthop) != 0;
}

bool
kept_take_shared(struct session_context *context,
    const struct agent_delivery *delivery, const struct mx_set *set, bool loops,
    struct connection *c)
{
	struct kept *k = find(context, delivery->connection);
	const char *relay;

	if (k == NULL)
		return false;
	relay = k->connection.relay; /* host[address]:port */
	if (k->connection.policies != c->policies ||
	    !mx_has_host(set, loops, relay, strcspn(relay, "[")))
		return false;
	policies_unref(&c->policies);
	*c = k->connection;
	k->connection = (struct connection){ .talk = NULL };
	drop(k);
	return true;
}

void
kept_drop(struct session_context *context, uint64_t number)
{
	struct kept *k = find(context, number);

	if (k != NULL)
		drop(k);
}

bool
kept_take(struct session_context *context,
    const struct agent_delivery *delivery, struct connection *ret_connection)
{
	struct kept *k = find(context, delivery->connection);
	bool fits;

	if (k == NULL)
		return false;
	fits = is_of_transport(k, delivery) &&
	    k->connection.policies == context->policies &&
	    strcmp(k->nexthop, delivery->nexthop) == 0;
	if (fits) {
		*ret_connection = k->connection;
		k->connection = (struct connection){ .talk = NULL };
	}
	drop(k);
	return fits;
}
