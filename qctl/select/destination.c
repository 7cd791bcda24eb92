/* The filter by destination, and the channels of `qread': the routing in force,
 * loaded for the command and its processes. */
#include "qctl/select/select.h"

#include <errno.h>

#include "base/domain.h"
#include "config/conf.h"
#include "daemon/daemon.h"
#include "route/route.h"

static struct conf conf;
static bool has_conf;
static struct route_table *routes;

int
destination_begin(const char *conf_path)
{
	struct buf error = { 0 };

	has_conf = conf_load_in_force(conf_path, &conf, &error) >= 0;
	buf_done(&error);
	return has_conf && daemon_routes(&conf, &routes) == 0 ? 0 : -EINVAL;
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

bool
destination_is_local(const char *recipient, bool expanded)
{
	struct route route;
	int found;

	if (routes == NULL ||
	    route_lookup(routes, recipient, expanded, &route) < 0)
		return false;
	found = conf_transport_find(&conf, route.transport);
	return found >= 0 &&
	    agent_kinds[conf.transports[found].kind].program ==
	    AGENT_PROGRAM_LOCAL;
}
