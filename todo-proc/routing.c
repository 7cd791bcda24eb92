#include "todo-proc/routing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "route/route.h"

static void
destroy(struct routing *r)
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
routing_new(struct routings *all, const struct conf *conf)
{
	struct routing *fresh = calloc(1, sizeof(*fresh));
	struct routing *old = SLIST_FIRST(all);
	int r;

	if (fresh == NULL)
		return -ENOMEM;
	census_limits(conf, &fresh->limits);
	r = copy_transports(fresh, conf);
	if (r == 0)
		r = daemon_routes(conf, &fresh->table);
	if (r < 0) {
		destroy(fresh);
		return r;
	}
	fresh->users = 1;
	SLIST_INSERT_HEAD(all, fresh, link);
	if (old != NULL)
		routing_let_go(all, old);
	return 0;
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
	destroy(r);
}

void
routing_done(struct routings *all)
{
	struct routing *r;

	while ((r = SLIST_FIRST(all)) != NULL) {
		SLIST_REMOVE_HEAD(all, link);
		destroy(r);
	}
}
