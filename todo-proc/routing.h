/* todo-proc/routing.h - routing and transports as they are at one time, for
 * threads that take a census. Nothing of it changes; a reload makes another
 * one, and the old one goes with the last task that uses it.
 *
 * Soft: -errno, nothing logged. Users are counted by the loop alone. */
#ifndef TODO_PROC_ROUTING_H
#define TODO_PROC_ROUTING_H

#include "config/conf.h"
#include "todo-proc/pure.h"

#include <sys/queue.h>

struct route_table;

struct routing {
	SLIST_ENTRY(routing) link;
	struct route_table *table;
	struct census_limits limits;
	char *names[CONF_TRANSPORTS_MAX];  /* of transports, whose */
	bool content[CONF_TRANSPORTS_MAX]; /* agents are given the content */
	uint32_t users; /* tasks, and one more while it is in force */
};
SLIST_HEAD(routings, routing);

/* From the files, in the loop or in a thread; the words in *ret_error. */
int routing_read(const struct conf *conf, struct routing **ret_routing,
    struct buf *ret_error);
/* One that was never put. */
void routing_free(struct routing *routing);
/* In force from now on, at the head of the list. */
void routing_put(struct routings *all, struct routing *routing);
struct routing *routing_use(struct routings *all);
void routing_let_go(struct routings *all, struct routing *routing);
/* Also what tasks use that will never end. */
void routing_done(struct routings *all);

#endif
