/* route/table.h - the table of routes. Private to common/route. */
#ifndef ROUTE_TABLE_H
#define ROUTE_TABLE_H

#include "base/texts.h"
#include "route/keyed.h"
#include "route/route.h"

struct rule {
	struct keyed at; /* as written, the domain folded (base/domain.h) */
	struct route to;
};

struct route_table {
	struct buf text;    /* that the rules point into */
	struct texts texts; /* keys and next hops that were in U-labels */
	struct rule *rules;
	size_t n, cap;
	/* for recipients that no rule fits */
	char *own;       /* folded domains; NULL: no defaults are set */
	char *relayhost; /* NULL: none */
	struct route local, relay;
	struct sender_map *senders; /* NULL: none */
	struct alias_table *aliases;
	bool administered;
	char *alias_transport; /* NULL: no aliases are set */
};

/* By the rules and the defaults alone: as route_lookup_from(). */
int route_by_rules(const struct route_table *table, const char *sender,
    const char *recipient, struct route *ret_route);
/* The route of a recipient that no rule fits; its domain is folded. */
int route_by_default(const struct route_table *table, const char *sender,
    const char *domain, struct route *ret_route);
/* Completes *to by its transport and brings its next hop into A-labels. NULL,
 * or the complaint. */
const char *route_check_transport(
    struct texts *texts, struct route *to, const struct route_transport *known);
/* own as of route_set_defaults(); the domain is folded. "" is own. */
bool route_is_own(const char *own, const char *domain);

#endif
