#include "daemon/daemon.h"

#include <errno.h>

#include "log/log.h"
#include "route/route.h"

int
daemon_routes(const struct conf *conf, struct route_table **ret_table)
{
	const char *names[CONF_TRANSPORTS_MAX + 1];
	struct buf error = { 0 };
	int r;

	conf_transport_names(conf, names);
	r = route_load(conf->routing_file, names, ret_table, &error);
	if (r == -ENOENT) {
		*ret_table = route_default();
		r = *ret_table == NULL ? -ENOMEM : 0;
	}
	if (r < 0)
		log_error("%s", error.len > 0 ? buf_str(&error) : strerror(-r));
	buf_done(&error);
	return r;
}
