/* Lookups of aliases. */
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "route/alias_table.h"
#include "route/nexthop.h"

static int
compare_key(const void *key, const void *element)
{
	return strcmp(key, (*(const struct alias *const *)element)->key);
}

/* Returns the alias of a key in lower case; NULL: there is none. */
static const struct alias *
alias_by_key(const struct alias_table *t, const char *key)
{
	const struct alias *const *found;

	if (t == NULL || t->nkeys == 0)
		return NULL;
	found =
	    bsearch(key, t->by_key, t->nkeys, sizeof(*t->by_key), compare_key);
	return found == NULL ? NULL : *found;
}

/* user, or user+extension where the account has no alias. `behind` follows
 * either: "" or "@domain". */
static const struct alias *
find_user(const struct alias_table *t, const char *user, const char *behind)
{
	char key[ALIAS_KEY_MAX + 1];
	size_t len = strlen(user), account = address_account_len(user);
	size_t rest = strlen(behind) + 1;
	const struct alias *found = NULL;

	/* A quoted @ is part of a name, and no name in the file has one. */
	if (len == 0 || strchr(user, '@') != NULL)
		return NULL;
	if (len + rest <= sizeof(key)) {
		memcpy(key, user, len);
		memcpy(key + len, behind, rest);
		found = alias_by_key(t, key);
	}
	if (found != NULL || account == len || account + rest > sizeof(key))
		return found;
	memcpy(key, user, account);
	memcpy(key + account, behind, rest);
	return alias_by_key(t, key);
}

/* "@domain" into out. False: the domain is empty, or too long for a key. */
static bool
domain_key(const char *domain, char out[ALIAS_KEY_MAX + 1])
{
	const size_t len = strlen(domain);

	if (len == 0 || len + 1 > ALIAS_KEY_MAX)
		return false;
	out[0] = '@';
	memcpy(out + 1, domain, len + 1);
	return true;
}

const struct alias *
alias_find_address(
    const struct alias_table *table, const char *address, const char *domain)
{
	char user[ADDRESS_MAX + 1], behind[ALIAS_KEY_MAX + 1];

	if (table == NULL || !domain_key(domain, behind))
		return NULL;
	(void)address_user(address, user);
	return find_user(table, user, behind);
}

const struct alias *
alias_find_account(const struct alias_table *table, const char *address)
{
	char user[ADDRESS_MAX + 1];

	if (table == NULL)
		return NULL;
	(void)address_user(address, user);
	return find_user(table, user, "");
}

const struct alias *
alias_find_domain(const struct alias_table *table, const char *domain)
{
	char key[ALIAS_KEY_MAX + 1];

	return table != NULL && domain_key(domain, key)
	    ? alias_by_key(table, key)
	    : NULL;
}

const struct alias *
alias_find_key(const struct alias_table *table, const char *key)
{
	char lower[ALIAS_KEY_MAX + 1];
	size_t len = strlen(key);

	if (len > ALIAS_KEY_MAX)
		return NULL;
	memcpy(lower, key, len + 1);
	nexthop_lower_case(lower);
	return alias_by_key(table, lower);
}

bool
alias_refuses(const struct alias *alias)
{
	size_t i;

	if (alias == NULL || alias->wrong != NULL)
		return false;
	for (i = 0; i < alias->nmembers; i++)
		if (alias->members[i].kind == ALIAS_REFUSAL)
			return true;
	return false;
}
