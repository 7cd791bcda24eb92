#include "qctl/routing/rules.h"

#include <stdio.h>
#include <sysexits.h>

#include "base/domain.h"
#include "config/conf.h"
#include "daemon/daemon.h"
#include "route/route.h"

static struct conf conf;
static bool has_conf;
static struct route_table *routes;

static bool
uses_routing(const struct options *o)
{
	const struct select *s = &o->select;
	size_t i;

	for (i = 0; i < s->nterms; i++)
		if (s->terms[i].key == SELECT_DESTINATION)
			return true;
	return false;
}

int
destination_begin(const struct options *o)
{
	struct buf error = { 0 };

	if (!uses_routing(o))
		return EX_OK;
	has_conf = conf_load_in_force(o->conf_path, &conf, &error) >= 0;
	buf_done(&error);
	if (has_conf && daemon_routes(&conf, &routes) == 0)
		return EX_OK;
	fprintf(stderr,
	    "%s: the routing cannot be read: no destination is known\n",
	    o->program);
	return EX_CONFIG;
}

void
destination_end(void)
{
	route_free(&routes);
	if (has_conf)
		conf_done(&conf);
	has_conf = false;
}

bool
select_fits_destination(const char *pattern, const char *sender,
    const char *recipient, bool expanded)
{
	char nexthop[ROUTE_NEXTHOP_MAX + 1];
	struct route route;
	const char *why;

	return routes != NULL &&
	    route_lookup_from(routes, sender, recipient, expanded, &route) ==
	    0 &&
	    route_nexthop(&route, recipient, nexthop, &why) == 0 &&
	    destination_matches(pattern, route.transport, nexthop);
}
