#include "daemon/daemon.h"

#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "route/alias.h"
#include "route/route.h"
#include "route/sender_relay.h"

static enum route_target
target_of(const struct conf *conf, enum agent_kind kind)
{
	static const enum route_target targets[AGENT_NKINDS] = {
		[AGENT_SMTP] = ROUTE_TO_HOST,
		[AGENT_LMTP] = ROUTE_TO_HOST,
		[AGENT_LOCAL] = ROUTE_TO_ACCOUNT,
		[AGENT_PIPE] = ROUTE_TO_PROGRAM,
		[AGENT_DISCARD] = ROUTE_TO_NOTHING,
		[AGENT_ERROR] = ROUTE_TO_REASON,
		[AGENT_ALIAS] = ROUTE_TO_ALIAS,
	};

	/* Domains with mailboxes of their own, all of one user of the system.
	 */
	if (kind == AGENT_LOCAL && conf->maildir_user[0] != '\0' &&
	    strstr(conf->maildir_path, "%d") != NULL)
		return ROUTE_TO_MAILBOX;
	return targets[kind];
}

void
daemon_route_transports(
    const struct conf *conf, struct route_transport *ret_transports)
{
	const struct conf_transport *t = conf->transports;
	uint32_t i;

	for (i = 0; i < conf->ntransports; i++, t++)
		ret_transports[i] = (struct route_transport){
			.name = t->name,
			.target = target_of(conf, t->kind),
			.literals = t->domain_literals,
			.sockets = t->kind == AGENT_LMTP,
		};
	ret_transports[i].name = NULL;
}

static int
set_defaults(const struct conf *conf, const struct route_transport *known,
    struct route_table *table)
{
	struct buf own = { 0 };
	int r = conf_destinations(conf, &own);

	if (r == 0)
		r = route_set_defaults(
		    table, buf_str(&own), conf->relayhost, known);
	buf_done(&own);
	return r;
}

int
daemon_aliases(const struct conf *conf, struct alias_table **ret_aliases,
    struct buf *ret_error)
{
	size_t before = ret_error->len;
	int r = -ENOENT;

	if (conf->alias_file[0] != '\0')
		r = alias_load(conf->alias_file, ret_aliases, ret_error);
	if (r != -ENOENT)
		return r;
	*ret_aliases = NULL;
	if (ret_error->len > before) {
		ret_error->len = before;
		ret_error->data[before] = '\0';
	}
	return 0;
}

static int
set_aliases(const struct conf *conf, const struct route_transport *known,
    struct route_table *table, struct buf *error)
{
	struct alias_table *aliases = NULL;
	int r = daemon_aliases(conf, &aliases, error);

	if (r == 0)
		r = route_set_aliases(
		    table, &aliases, conf->admin_recipient[0] != '\0', known);
	alias_free(&aliases);
	return r;
}

static int
set_sender_relays(
    const struct conf *conf, struct route_table *table, struct buf *error)
{
	struct sender_map *relays = NULL;
	int r = 0;

	if (conf->sender_dependent_relayhost[0] != '\0')
		r = sender_map_load(conf->sender_dependent_relayhost,
		    &sender_relay_kind, &relays, error);
	if (r == -ENOENT)
		r = -EINVAL; /* the routing file alone may be absent */
	if (r == 0)
		route_set_sender_relays(table, &relays);
	return r;
}

int
daemon_routes_read(const struct conf *conf, struct route_table **ret_table,
    struct buf *ret_error)
{
	struct route_transport known[CONF_TRANSPORTS_MAX + 1];
	struct route_table *table = NULL;
	int r;

	daemon_route_transports(conf, known);
	r = route_load(conf->routing_file, known, &table, ret_error);
	if (r == -ENOENT) {
		buf_reset(ret_error);
		table = route_empty();
		r = table == NULL ? -ENOMEM : 0;
	}
	if (r == 0)
		r = set_defaults(conf, known, table);
	if (r == 0)
		r = set_sender_relays(conf, table, ret_error);
	if (r == 0)
		r = set_aliases(conf, known, table, ret_error);
	if (r == 0)
		*ret_table = table;
	else
		route_free(&table);
	return r;
}

int
daemon_routes(const struct conf *conf, struct route_table **ret_table)
{
	struct buf error = { 0 };
	int r = daemon_routes_read(conf, ret_table, &error);

	if (r < 0)
		log_error("%s", error.len > 0 ? buf_str(&error) : strerror(-r));
	buf_done(&error);
	return r;
}

bool
daemon_reroute(const struct conf *fresh, struct route_table **table)
{
	struct route_table *routes;

	if (daemon_routes(fresh, &routes) < 0) {
		log_error("reload: the old routing and aliases stay in force");
		return false;
	}
	route_free(table);
	*table = routes;
	return true;
}
