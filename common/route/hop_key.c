#include "route/hop_key.h"

#include <stdio.h>
#include <string.h>

static void
add(struct hop_keys *keys, const char *text, size_t len)
{
	char *key = keys->key[keys->count];

	memcpy(key, text, len);
	key[len] = '\0';
	nexthop_lower_case(key);
	if (keys->count == 0 || strcmp(key, keys->key[keys->count - 1]) != 0)
		keys->count++;
}

bool
hop_key_fits(const char *key)
{
	struct nexthop hop;

	return strlen(key) < HOP_KEY_MAX &&
	    nexthop_parse(key, HOP_PORT_SMTP, &hop) == 0;
}

/* The length without a port. */
static size_t
host_len(const char *text, const struct nexthop *hop)
{
	if (hop->kind == NEXTHOP_UNIX)
		return strlen(text);
	return *text == '[' ? strcspn(text, "]") + 1 : strlen(hop->host);
}

void
hop_keys_of(const char *nexthop, struct hop_keys *ret_keys)
{
	struct nexthop hop;

	ret_keys->count = 0;
	if (!hop_key_fits(nexthop) ||
	    nexthop_parse(nexthop, HOP_PORT_SMTP, &hop) < 0)
		return;
	add(ret_keys, nexthop, strlen(nexthop));
	if (hop.kind == NEXTHOP_UNIX)
		return;
	add(ret_keys, nexthop, host_len(nexthop, &hop));
	add(ret_keys, hop.host, strlen(hop.host));
}
