/* The routes of recipients that no rule fits. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "route/nexthop.h"
#include "route/sender_map.h"
#include "route/table.h"

int
route_set_defaults(struct route_table *table, const char *own,
    const char *relayhost, const struct route_transport *transports)
{
	struct route local = { .transport = "local" };
	struct route relay = { .transport = "smtp" };
	char *domains = strdup(own), *host = strdup(relayhost);

	relay.nexthop = host;
	if (domains == NULL || host == NULL) {
		free(domains);
		free(host);
		return -ENOMEM;
	}
	nexthop_lower_case(domains);
	/* A transport that is not known defers the recipient, and a next hop
	 * that cannot work was refused with the configuration. */
	(void)route_check_transport(&table->texts, &local, transports);
	(void)route_check_transport(&table->texts, &relay, transports);
	free(table->own);
	free(table->relayhost);
	table->own = domains;
	table->relayhost = host;
	table->local = local;
	table->relay = relay;
	return 0;
}

void
route_set_sender_relays(struct route_table *table, struct sender_map **relays)
{
	sender_map_free(&table->senders);
	table->senders = *relays;
	*relays = NULL;
}

bool
route_is_own(const char *own, const char *domain)
{
	size_t len = strlen(domain), n;

	for (own += strspn(own, " "); *own != '\0'; own += strspn(own, " ")) {
		n = strcspn(own, " ");
		if ((n == 1 && *own == '*') ||
		    (n == len && memcmp(own, domain, len) == 0))
			return true;
		own += n;
	}
	return len == 0;
}

int
route_by_default(const struct route_table *table, const char *sender,
    const char *domain, struct route *ret_route)
{
	struct sender_row relay = { 0 };
	int r;

	if (table->own == NULL)
		return -ENOENT;
	if (route_is_own(table->own, domain)) {
		*ret_route = table->local;
		return 0;
	}
	r = sender_map_find(table->senders, sender, &relay);
	if (r < 0)
		return r;
	if (relay.value == NULL && table->relayhost[0] == '\0')
		return -ENOENT;
	*ret_route = table->relay;
	if (relay.value != NULL) {
		ret_route->nexthop = relay.value;
		ret_route->sender_line = relay.line;
	}
	return 0;
}
