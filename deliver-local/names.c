#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "deliver-local/expand.h"

#define OWNER "owner-"

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

/* Does mail to this address go to an alias for owners? */
static bool
is_owner(const struct members_names *names, const struct meaning *list,
    const char *address)
{
	char key[ADDRESS_MAX + 1];
	struct meaning m;

	if (strchr(list->key, '@') == NULL) {
		snprintf(key, sizeof(key), OWNER "%s", list->key);
		return alias_find_key(names->aliases, key) != NULL;
	}
	m = names_look_up(names, address);
	return m.alias != NULL && strncmp(m.key, OWNER, strlen(OWNER)) == 0;
}

int
names_owner(const struct members_names *names, const struct meaning *list,
    const char *address, const char *sender, char **ret_owner)
{
	const bool domain = strchr(list->key, '@') != NULL;
	const char *name = list->key[0] == '@' ? address : list->key;
	char *owner;

	*ret_owner = NULL;
	if (sender[0] == '\0' || strpbrk(name, "\" ") != NULL)
		return 0;
	if (asprintf(&owner, OWNER "%.*s@%s", (int)address_local_len(name),
		name, domain ? address_domain(address) : names->mydomain) < 0)
		return -ENOMEM;
	if (is_owner(names, list, owner) &&
	    address_check(owner, strlen(owner)) == 0)
		*ret_owner = owner;
	else
		free(owner);
	return 0;
}

bool
names_is_instruction(const char *recipient)
{
	return recipient[0] == '|' || recipient[0] == '/' ||
	    strncmp(recipient, ALIAS_INCLUDE_PREFIX,
		strlen(ALIAS_INCLUDE_PREFIX)) == 0 ||
	    strncmp(recipient, FORWARD_PREFIX, strlen(FORWARD_PREFIX)) == 0;
}

bool
names_rcpt_key(
    const char *address, bool is_account, char key[ADDRESS_FOLDED_MAX + 1])
{
	const size_t local = address_local_len(address);

	if (names_is_instruction(address)) {
		snprintf(key, ADDRESS_FOLDED_MAX + 1, "%s", address);
		return false;
	}
	(void)address_fold(address, key);
	if (is_account) {
		key[local] = '\0';
		names_lower(key);
	}
	return is_account;
}
