#include "route/hop_key.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/domain.h"

/* A name without the dot of the root, or an address, in their one spelling. */
static void
write_host(const struct nexthop *hop, char out[NEXTHOP_HOST_MAX])
{
	const struct sockaddr_in6 *in6 = (const void *)&hop->address;
	size_t len = strlen(hop->host);

	memcpy(out, hop->host, len + 1);
	if (hop->kind == NEXTHOP_ADDRESS && in6->sin6_family == AF_INET6)
		(void)inet_ntop(
		    AF_INET6, &in6->sin6_addr, out, NEXTHOP_HOST_MAX);
	else if (out[len - 1] == '.')
		out[len - 1] = '\0';
	nexthop_lower_case(out);
}

/* Does a port stand in the text? */
static bool
has_port(const char *text, const struct nexthop *hop)
{
	return *text == '[' ? strstr(text, "]:") != NULL
			    : text[strlen(hop->host)] == ':';
}

static void
add(struct hop_keys *keys, const char *key)
{
	if (keys->count == 0 || strcmp(key, keys->key[keys->count - 1]) != 0)
		memcpy(keys->key[keys->count++], key, strlen(key) + 1);
}

static void
add_host(struct hop_keys *keys, const char *text, const struct nexthop *hop)
{
	char host[NEXTHOP_HOST_MAX], bare[HOP_KEY_MAX], key[HOP_KEY_MAX];

	write_host(hop, host);
	snprintf(bare, sizeof(bare), *text == '[' ? "[%s]" : "%s", host);
	if (has_port(text, hop)) {
		snprintf(key, sizeof(key), "%.*s:%u", (int)(HOP_KEY_MAX - 7),
		    bare, (unsigned)hop->port);
		add(keys, key);
	}
	add(keys, bare);
	add(keys, host);
}

void
hop_keys_of(const char *nexthop, struct hop_keys *ret_keys)
{
	char text[NEXTHOP_TEXT_MAX + 1];
	struct nexthop hop;

	ret_keys->count = 0;
	if (domain_is_utf8(nexthop)) {
		if (nexthop_to_ascii(nexthop, text) < 0)
			return;
		nexthop = text;
	}
	if (strlen(nexthop) >= HOP_KEY_MAX ||
	    nexthop_parse(nexthop, HOP_PORT_SMTP, &hop) < 0)
		return;
	if (hop.kind == NEXTHOP_UNIX)
		add(ret_keys, nexthop);
	else
		add_host(ret_keys, nexthop, &hop);
}

int
hop_key_of_row(const char *text, char ret_key[HOP_KEY_MAX])
{
	struct hop_keys keys;

	hop_keys_of(text, &keys);
	if (keys.count == 0)
		return -EINVAL;
	memcpy(ret_key, keys.key[0], strlen(keys.key[0]) + 1);
	return 0;
}
