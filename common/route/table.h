/* route/table.h - the table of routes. Private to common/route. */
#ifndef ROUTE_TABLE_H
#define ROUTE_TABLE_H

#include "base/texts.h"
#include "route/route.h"

struct rule {
	const char *key; /* as written, the domain folded (base/domain.h) */
	struct route to;
	uint32_t line;
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
	struct alias_table *aliases;
	bool administered;
	char *alias_transport; /* NULL: no aliases are set */
};

/* By the rules and the defaults alone: as route_lookup(). */
int route_by_rules(const struct route_table *table, const char *recipient,
    struct route *ret_route);
/* own as of route_set_defaults(); the domain is folded. "" is own. */
bool route_is_own(const char *own, const char *domain);

#endif
