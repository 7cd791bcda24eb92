/* Recipients that have an alias (docs/ALIASES.md). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/domain.h"
#include "route/alias.h"
#include "route/nexthop.h"
#include "route/table.h"

int
route_set_aliases(struct route_table *table, struct alias_table **aliases,
    bool administered, const struct route_transport *transports)
{
	char *name = NULL;

	for (; transports->name != NULL && name == NULL; transports++) {
		if (transports->target != ROUTE_TO_ALIAS)
			continue;
		name = strdup(transports->name);
		if (name == NULL)
			return -ENOMEM;
	}
	alias_free(&table->aliases);
	table->aliases = *aliases;
	*aliases = NULL;
	table->administered = administered;
	free(table->alias_transport);
	table->alias_transport = name;
	return 0;
}

const struct alias_table *
route_aliases(const struct route_table *table)
{
	return table == NULL ? NULL : table->aliases;
}

/* A name of the administrator, who has a reader in any case. NULL: another. */
static const char *
administrator(const char *recipient)
{
	static const char *const names[] = { "root", "postmaster",
		"mailer-daemon" };
	char user[ADDRESS_MAX + 1];
	size_t i, len;

	(void)address_user(recipient, user);
	len = address_account_len(user);
	for (i = 0; i < ARRAY_LEN(names); i++)
		if (strlen(names[i]) == len && memcmp(names[i], user, len) == 0)
			return names[i];
	return NULL;
}

/* The key of a recipient that the routing sends to this mailbox. */
static const char *
key_of_account(const struct route_table *table, const char *recipient,
    const char *domain, enum route_target target)
{
	const struct alias *alias;

	/* A mailbox of a foreign domain is nobody's account. */
	if (target == ROUTE_TO_MAILBOX && table->own != NULL &&
	    !route_is_own(table->own, domain))
		return NULL;
	alias = alias_find_account(table->aliases, recipient);
	if (alias != NULL)
		return alias->key;
	return table->administered ? administrator(recipient) : NULL;
}

/* The key of the recipient's alias. NULL: there is no alias, and the rules and
 * defaults decide; r and to are the answer of route_by_rules(). domain: the
 * domain of the recipient by domain_fold(). */
static const char *
key_of(const struct route_table *table, const char *recipient,
    const char *domain, int r, const struct route *to)
{
	const struct alias *alias;

	alias = alias_find_address(table->aliases, recipient, domain);
	if (alias != NULL)
		return alias->key;
	if (r == 0 && route_is_mailbox(to))
		return key_of_account(table, recipient, domain, to->target);
	alias = alias_find_domain(table->aliases, domain);
	return alias == NULL ? NULL : alias->key;
}

static bool
is_instruction(const char *recipient)
{
	return recipient[0] == '|' || recipient[0] == '/' ||
	    strncmp(recipient, ":forward:", 9) == 0 ||
	    strncmp(recipient, ALIAS_INCLUDE_PREFIX,
		strlen(ALIAS_INCLUDE_PREFIX)) == 0;
}

/* The recipients of an expansion are not looked up again: that ends each loop.
 * A name whose alias refuses mail is such a recipient, and is refused. */
static const char *
key_of_expanded(const struct route_table *table, const char *recipient,
    const char *domain, int r, const struct route *to)
{
	const char *key;

	if (is_instruction(recipient))
		return recipient;
	key = key_of(table, recipient, domain, r, to);
	return key != NULL && alias_refuses(alias_find_key(table->aliases, key))
	    ? key
	    : NULL;
}

int
route_lookup_from(const struct route_table *table, const char *sender,
    const char *recipient, bool expanded, struct route *ret_route)
{
	char domain[DOMAIN_FOLDED_MAX + 1];
	const char *key = NULL;
	struct route to;
	int r = route_by_rules(table, sender, recipient, &to);

	if (r == -ENOMEM || domain_fold(address_domain(recipient), domain) < 0)
		return -ENOMEM;
	if (table->alias_transport == NULL)
		key = NULL;
	else if (!expanded)
		key = key_of(table, recipient, domain, r, &to);
	else
		key = key_of_expanded(table, recipient, domain, r, &to);
	if (key != NULL)
		to = (struct route){ .transport = table->alias_transport,
			.nexthop = key,
			.target = ROUTE_TO_ALIAS };
	else if (r < 0)
		return r;
	*ret_route = to;
	return 0;
}
