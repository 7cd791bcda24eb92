/* A loop that uses its configuration and routing, while a thread reads the next
 * ones: under ThreadSanitizer (make check-tsan). */
#include "daemon/daemon.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/log.h"
#include "route/route.h"

#define RELOADS 1000

static struct route_table *routes;
static unsigned reloads;

static int
read_routes(const struct conf *fresh, void **ret_made, struct buf *ret_error)
{
	struct route_table *made = NULL;
	int r = daemon_routes_read(fresh, &made, ret_error);

	*ret_made = made;
	return r;
}

static void
drop_routes(void *made)
{
	struct route_table *table = made;

	route_free(&table);
}

static void
reload(struct daemon *d, const struct conf *fresh UNUSED)
{
	if (d->made == NULL)
		abort();
	route_free(&routes);
	routes = d->made;
	reloads++;
}

static const struct daemon_ops ops = {
	.name = "reload",
	.read = read_routes,
	.drop = drop_routes,
	.reload = reload,
};

/* As the loop does with each message. */
static void
use(const struct daemon *d)
{
	struct route route;

	if (routes != NULL &&
	    (route_lookup(routes, "root@far.example", false, &route) < 0 ||
		conf_transport_find(d->conf, route.transport) < 0))
		abort();
}

static void
write_files(char *conf, char *routing)
{
	FILE *f = fdopen(mkstemp(routing), "w");

	if (f == NULL || fputs("* smtp:[mx.example]\n", f) < 0 ||
	    fclose(f) != 0)
		abort();
	f = fdopen(mkstemp(conf), "w");
	if (f == NULL ||
	    fprintf(f,
		"queue_base = /tmp\nrouting_file = %s\nlog_level = error\n"
		"alias_file =\n",
		routing) < 0 ||
	    fclose(f) != 0)
		abort();
}

int
main(void)
{
	char conf[] = "/tmp/tsan-conf.XXXXXX";
	char routing[] = "/tmp/tsan-routing.XXXXXX";
	struct daemon d = { .ops = &ops, .conf_path = conf };
	struct buf error = { 0 };

	log_open("reload", LOG_TARGET_STDERR, LOG_FORMAT_TEXT, LOG_ERROR_L);
	write_files(conf, routing);
	d.base = daemon_loop_new(false);
	d.conf = calloc(1, sizeof(*d.conf));
	if (d.base == NULL || d.conf == NULL ||
	    conf_load(conf, d.conf, &error) < 0)
		abort();
	while (reloads < RELOADS) {
		daemon_reload(&d);
		use(&d);
		(void)event_base_loop(d.base, EVLOOP_NONBLOCK);
	}
	while (d.reload.away)
		(void)event_base_loop(d.base, EVLOOP_ONCE);
	if (!daemon_reload_done(&d))
		abort();
	conf_free(&d.conf);
	event_base_free(d.base);
	route_free(&routes);
	(void)unlink(conf);
	(void)unlink(routing);
	printf("tsan: reload: %d reloads\n1 passed, 0 failed\n", RELOADS);
	return 0;
}
