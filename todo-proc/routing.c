#include "todo-proc/routing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "route/route.h"

void
routing_free(struct routing *r)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(r->names); i++)
		free(r->names[i]);
	route_free(&r->table);
	free(r);
}

static int
copy_transports(struct routing *r, const struct conf *conf)
{
	uint32_t i;

	for (i = 0; i < conf->ntransports; i++) {
		r->content[i] = agent_kinds[conf->transports[i].kind].content;
		r->names[i] = strdup(conf->transports[i].name);
		if (r->names[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}

int
routing_read(const struct conf *conf, struct routing **ret_routing,
    struct buf *ret_error)
{
	struct routing *fresh = calloc(1, sizeof(*fresh));
	int r;

	if (fresh == NULL)
		return -ENOMEM;
	census_limits(conf, &fresh->limits);
	r = copy_transports(fresh, conf);
	if (r == 0)
		r = daemon_routes_read(conf, &fresh->table, ret_error);
	if (r == 0)
		*ret_routing = fresh;
	else
		routing_free(fresh);
	return r;
}

void
routing_put(struct routings *all, struct routing *fresh)
{
	struct routing *old = SLIST_FIRST(all);

	fresh->users = 1;
	SLIST_INSERT_HEAD(all, fresh, link);
	if (old != NULL)
		routing_let_go(all, old);
}

struct routing *
routing_use(struct routings *all)
{
	struct routing *r = SLIST_FIRST(all);

	r->users++;
	return r;
}

void
routing_let_go(struct routings *all, struct routing *r)
{
	if (--r->users > 0)
		return;
	SLIST_REMOVE(all, r, routing, link);
	routing_free(r);
}

void
routing_done(struct routings *all)
{
	struct routing *r;

	while ((r = SLIST_FIRST(all)) != NULL) {
		SLIST_REMOVE_HEAD(all, link);
		routing_free(r);
	}
}
