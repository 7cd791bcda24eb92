#include <strings.h>

#include "deliver-local/expand.h"

void
names_lower(char *s)
{
	for (; *s != '\0'; s++)
		if (*s >= 'A' && *s <= 'Z')
			*s = (char)(*s + 32);
}

const char *
names_admin(const char *key)
{
	static const char *const names[] = { "root", "postmaster",
		"mailer-daemon" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++)
		if (strcasecmp(key, names[i]) == 0)
			return names[i];
	return NULL;
}

struct meaning
names_look_up(const struct members_names *names, const char *address)
{
	struct meaning m = { 0 };
	struct route route, to;

	if (route_lookup(names->routes, address, false, &route) < 0)
		return m;
	m.is_account = route.target == ROUTE_TO_ACCOUNT;
	if (route.target != ROUTE_TO_ALIAS || route.nexthop == NULL)
		return m;
	m.is_account = route_lookup(names->routes, address, true, &to) == 0 &&
	    to.target == ROUTE_TO_ACCOUNT;
	m.alias = alias_find_key(names->aliases, route.nexthop);
	m.key = m.alias != NULL ? m.alias->key : names_admin(route.nexthop);
	m.is_alias = m.alias != NULL ||
	    (m.key != NULL && names->admin_recipient[0] != '\0');
	return m;
}
