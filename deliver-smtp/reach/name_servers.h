/* deliver-smtp/reach/name_servers.h - the name servers of the system, and which
 * of them is asked first.
 *
 * A server that did not answer while another one did is asked last for a
 * while. Then one question tries it; until that question has its answer the
 * others go on with the servers that are known to answer.
 *
 * No I/O but in name_servers_load(); the caller passes the time.
 */
#ifndef DELIVER_SMTP_REACH_NAME_SERVERS_H
#define DELIVER_SMTP_REACH_NAME_SERVERS_H

#include "base/base.h"

/* Functions that are deprecated since c-ares 1.28 or later: Debian 12 has 1.18,
 * which lacks their successors. */
#define CARES_NO_DEPRECATED
#include <ares.h>

#define NAME_SERVERS_MAX  8
/* How long a server that did not answer is asked last. */
#define NAME_SERVERS_REST (60 * USEC_PER_SEC)

struct name_server {
	struct ares_addr_port_node node; /* without `next` */
	bool failed;                     /* gave no answer the last time */
	usec_t retry_at; /* of a failed one: when it is tried again */
};

struct name_servers {
	/* 0: c-ares takes them from the system itself, in the order there. */
	size_t count;
	struct name_server list[NAME_SERVERS_MAX];
	/* resolv.conf(5), "options" */
	int timeout_msec, attempts;
	bool rotate;
	size_t next;     /* of rotate: the server of the next question */
	uint32_t loaded; /* how often they were read */
};

/* The servers of one question in the order in which they are asked. */
struct name_servers_order {
	uint32_t loaded; /* of the servers */
	size_t count;
	struct {
		size_t place; /* in the list */
		struct ares_addr_port_node node;
	} at[NAME_SERVERS_MAX];
};

/* Read resolv.conf, again too. -ENOMEM, -EIO: nothing is changed. */
int name_servers_load(struct name_servers *servers);
void name_servers_order(struct name_servers *servers, usec_t now,
    struct name_servers_order *ret_order);
/* A server of the order has answered after so many timeouts of servers before
 * it. */
void name_servers_answered(struct name_servers *servers,
    const struct name_servers_order *order, size_t timeouts, usec_t now);

#endif
