/* sched/site.h - destinations and their waiting entries; inside of the module.
 *
 *	transport 1──n site 1──n entry (waiting, in order of arrival)
 *
 * A site exists while it has entries, waiting or running. Each transport has
 * a tree of all its sites by name, and a tree of those that are ready, that
 * is, have a waiting entry and room, by the arrival of their first one. The
 * ready tree is put right whenever a site's queue, busy count or limit
 * changes, so nothing ever looks at a site that cannot be served.
 */
#ifndef SCHED_SITE_H
#define SCHED_SITE_H

#include "sched/sched.h"

#include <sys/queue.h>
#include <bsd/sys/tree.h>

struct entry {
	struct sched_entry pub; /* rcpts points to `one` or to memory of ours */
	struct site *site;
	RB_ENTRY(entry) link; /* in site->waiting */
	LIST_ENTRY(entry) of_message;
	uint64_t arrival; /* of the message */
	uint64_t seq;
	uint32_t cap; /* room in pub.rcpts */
	bool running;
	struct sched_rcpt one;
};
RB_HEAD(entry_tree, entry);

struct site {
	RB_ENTRY(site) link;
	RB_ENTRY(site) ready_link;
	struct transport *transport;
	struct entry_tree waiting;
	uint64_t seq;
	uint64_t head_arrival; /* of the first waiting entry, while ready */
	uint32_t busy;
	bool ready;
	bool per_rcpt;       /* the name is local@nexthop */
	const char *nexthop; /* within name */
	char name[];
};
RB_HEAD(site_tree, site);
RB_HEAD(ready_tree, site);

struct transport {
	struct sched_transport_params params;
	struct site_tree sites;
	struct ready_tree ready;
	uint32_t busy, nsites;
};

/* What names a site; address is NULL unless the recipient is the site. */
struct site_name {
	const char *nexthop, *address;
	size_t local_len; /* of the address */
};
/* Found or made (with an empty queue); NULL when memory is out. */
struct site *
site_get(struct transport *t, const struct site_name *name, uint64_t seq);
/* Free it if it has no entries. */
void site_release(struct site *site);
/* Put it in, or take it out of, its place in the ready tree. */
void site_update(struct site *site);
/* The same for each of a transport, when its limits have changed. */
void transport_update(struct transport *t);

void site_enqueue(struct site *site, struct entry *e);
void site_dequeue(struct site *site, struct entry *e);
/* The last waiting entry of the message that arrived as `arrival`, or NULL. */
struct entry *site_last_of(struct site *site, uint64_t arrival);
/* The first waiting entry of the transport that has room, or NULL. */
struct entry *site_next(struct transport *t);

#endif
