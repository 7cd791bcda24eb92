#include "deliver-smtp/reach/name_servers.h"

#include <errno.h>
#include <netinet/in.h>
#include <resolv.h>
#include <string.h>

/* ---- the system ---- */

/* c-ares 1.18 does not know "timeout:" and "attempts:", so libresolv reads the
 * options. Without memory the defaults of resolv.conf(5) stay. */
static void
options_load(struct name_servers *servers)
{
	struct __res_state state;

	memset(&state, 0, sizeof(state));
	servers->timeout_msec = RES_TIMEOUT * 1000;
	servers->attempts = RES_DFLRETRY;
	if (res_ninit(&state) < 0)
		return;
	servers->timeout_msec = state.retrans * 1000;
	servers->attempts = state.retry;
	servers->rotate = (state.options & RES_ROTATE) != 0;
	res_nclose(&state);
}

/* c-ares does not tell the interface of a link-local address: the list is left
 * to c-ares then. */
static void
list_take(struct name_servers *servers, const struct ares_addr_port_node *node)
{
	struct name_server *server = servers->list;

	for (; node != NULL && server < servers->list + NAME_SERVERS_MAX;
	     node = node->next, server++) {
		if (node->family == AF_INET6 &&
		    IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)(const void
			    *)&node->addr.addr6))
			return;
		server->node = *node;
		server->node.next = NULL;
	}
	servers->count = (size_t)(server - servers->list);
}

int
name_servers_load(struct name_servers *servers)
{
	struct ares_addr_port_node *nodes = NULL;
	struct name_servers fresh = { .loaded = servers->loaded + 1 };
	ares_channel channel;
	int status = ares_init(&channel);

	if (status == ARES_SUCCESS) {
		status = ares_get_servers_ports(channel, &nodes);
		ares_destroy(channel);
	}
	if (status != ARES_SUCCESS)
		return status == ARES_ENOMEM ? -ENOMEM : -EIO;
	options_load(&fresh);
	list_take(&fresh, nodes);
	if (nodes != NULL)
		ares_free_data(nodes);
	*servers = fresh;
	return 0;
}

/* ---- the order ---- */

static bool
server_rests(const struct name_server *server, usec_t now)
{
	return server->failed && now < server->retry_at;
}

void
name_servers_order(struct name_servers *servers, usec_t now,
    struct name_servers_order *ret_order)
{
	struct name_server *server;
	size_t first = 0, i, at;
	int rests;

	if (servers->rotate && servers->count > 0)
		first = servers->next++ % servers->count;
	ret_order->count = 0;
	ret_order->loaded = servers->loaded;
	for (rests = 0; rests < 2; rests++)
		for (i = 0; i < servers->count; i++) {
			at = (first + i) % servers->count;
			server = &servers->list[at];
			if (server_rests(server, now) != rests)
				continue;
			ret_order->at[ret_order->count].place = at;
			ret_order->at[ret_order->count++].node = server->node;
		}
	if (ret_order->count == 0)
		return;
	/* Other questions do not wait for what this one finds out. */
	server = &servers->list[ret_order->at[0].place];
	if (server->failed && !server_rests(server, now))
		server->retry_at =
		    now + (usec_t)servers->timeout_msec * USEC_PER_MSEC;
}

void
name_servers_answered(struct name_servers *servers,
    const struct name_servers_order *order, size_t timeouts, usec_t now)
{
	struct name_server *server;
	size_t i;

	/* After more than one round over all servers it is not known which one
	 * has answered. */
	if (timeouts >= order->count || order->loaded != servers->loaded)
		return;
	for (i = 0; i < timeouts; i++) {
		server = &servers->list[order->at[i].place];
		server->failed = true;
		server->retry_at = now + NAME_SERVERS_REST;
	}
	servers->list[order->at[timeouts].place].failed = false;
}
