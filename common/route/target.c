/* The next hop and the destination that a route makes of a recipient. */
#include "route/route.h"

#include <errno.h>
#include <string.h>

#include "base/address.h"
#include "base/domain.h"
#include "route/nexthop.h"

/* The part that fits: the agent refuses a next hop that was cut, whose name
 * stays the same. */
static void
add_cut(char out[ROUTE_NEXTHOP_MAX + 1], const char *s, size_t len)
{
	size_t used = strlen(out);

	if (len > ROUTE_NEXTHOP_MAX - used)
		len = ROUTE_NEXTHOP_MAX - used;
	memcpy(out + used, s, len);
	out[used + len] = '\0';
}

static int
mailbox_of(const char *recipient, bool with_domain, char *out)
{
	char user[ADDRESS_MAX + 1], domain[DOMAIN_FOLDED_MAX + 1];

	(void)address_user(recipient, user);
	out[0] = '\0';
	add_cut(out, user, address_account_len(user));
	if (!with_domain)
		return 0;
	if (domain_fold(address_domain(recipient), domain) < 0)
		return -ENOMEM;
	add_cut(out, "@", 1);
	add_cut(out, domain, strlen(domain));
	return 0;
}

/* The rule names none. */
static int
nexthop_of_recipient(const struct route *route, const char *recipient,
    char *out, const char **ret_why)
{
	const char *domain = address_domain(recipient);
	char folded[DOMAIN_FOLDED_MAX + 1];

	out[0] = '\0';
	*ret_why = "out of memory";
	switch (route->target) {
	case ROUTE_TO_HOST:
		return nexthop_of_domain(domain, route->literals, out, ret_why);
	case ROUTE_TO_PROGRAM:
		*ret_why = "no program is named for this address";
		return -EDESTADDRREQ;
	case ROUTE_TO_NOTHING:
		if (domain_fold(domain, folded) < 0)
			return -ENOMEM;
		add_cut(out, folded, strlen(folded));
		return 0;
	case ROUTE_TO_REASON:
	case ROUTE_TO_ACCOUNT:
	case ROUTE_TO_ALIAS:
	case ROUTE_TO_MAILBOX:
		break;
	}
	return 0;
}

int
route_nexthop(const struct route *route, const char *recipient, char *out,
    const char **ret_why)
{
	if (route->target == ROUTE_TO_ALIAS) {
		out[0] = '\0';
		add_cut(out, route->nexthop, strlen(route->nexthop));
		return 0;
	}
	if (route_is_mailbox(route)) {
		*ret_why = "out of memory";
		return mailbox_of(
		    recipient, route->target == ROUTE_TO_MAILBOX, out);
	}
	if (route->nexthop == NULL)
		return nexthop_of_recipient(route, recipient, out, ret_why);
	memcpy(out, route->nexthop, strlen(route->nexthop) + 1);
	/* The path of a socket and the words of a refusal stay as they are. */
	if (strpbrk(out, "/ ") == NULL)
		nexthop_lower_case(out);
	return 0;
}

int
route_destination(const char *nexthop, const char *address,
    char out[ROUTE_DESTINATION_MAX + 1])
{
	size_t local = address == NULL ? 0 : address_local_len(address);
	size_t at = address == NULL ? 0 : local + 1, len = strlen(nexthop);

	if (at + len > ROUTE_DESTINATION_MAX)
		return -ENAMETOOLONG;
	if (address != NULL) {
		memcpy(out, address, local);
		out[local] = '@';
	}
	memcpy(out + at, nexthop, len + 1);
	nexthop_lower_case(out);
	return (int)(at + len);
}
