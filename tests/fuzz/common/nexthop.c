/* Next hops: what parses has a place to connect to, and its name and port say
 * the same again; the rest is refused. */
#include "tests/fuzz/fuzz.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/domain.h"
#include "route/nexthop.h"

static void
check_address(const struct nexthop *hop)
{
	const struct sockaddr_in *in4 = (const void *)&hop->address;
	const struct sockaddr_in6 *in6 = (const void *)&hop->address;

	if (hop->address.ss_family == AF_INET) {
		MUST(hop->address_len == sizeof(*in4));
		MUST(ntohs(in4->sin_port) == hop->port);
	} else {
		MUST(hop->address.ss_family == AF_INET6);
		MUST(hop->address_len == sizeof(*in6));
		MUST(ntohs(in6->sin6_port) == hop->port);
		MUST(in6->sin6_scope_id == 0);
	}
	MUST(nexthop_is_server((const struct sockaddr *)&hop->address));
}

static void
check_hop(const struct nexthop *hop)
{
	static const struct sockaddr_in any = { .sin_family = AF_INET };
	const bool named =
	    hop->kind == NEXTHOP_DOMAIN || hop->kind == NEXTHOP_HOST;
	const struct sockaddr *address = named
	    ? (const struct sockaddr *)&any
	    : (const struct sockaddr *)&hop->address;
	char peer[NEXTHOP_PEER_MAX], relay[NEXTHOP_PEER_MAX];

	MUST(memchr(hop->host, '\0', sizeof(hop->host)) != NULL);
	MUST(hop->host[0] != '\0');
	if (hop->kind == NEXTHOP_UNIX) {
		MUST(hop->host[0] == '/');
		MUST(strlen(hop->host) <
		    sizeof(((struct sockaddr_un *)NULL)->sun_path));
	} else {
		MUST(hop->port != 0);
	}
	if (hop->kind == NEXTHOP_ADDRESS)
		check_address(hop);
	if (named)
		MUST(strpbrk(hop->host, ":/[]@% \t<>") == NULL);
	nexthop_peer(hop, hop->host, address, peer, relay);
	MUST(strncmp(peer, hop->host, strlen(hop->host)) == 0 ||
	    hop->kind == NEXTHOP_UNIX);
	MUST(strlen(relay) >= strlen(peer));
}

/* In the plainest form: [host]:port, or the name of a domain. */
static void
check_again(const struct nexthop *hop)
{
	struct nexthop again;
	char text[NEXTHOP_HOST_MAX + 16];
	uint16_t port = 99;

	if (hop->kind == NEXTHOP_UNIX) {
		snprintf(text, sizeof(text), "unix:%s", hop->host);
	} else if (hop->kind == NEXTHOP_DOMAIN) {
		/* "unix:25" would be a socket. */
		snprintf(text, sizeof(text), "%s", hop->host);
		port = hop->port;
	} else {
		snprintf(text, sizeof(text), "[%s]:%u", hop->host, hop->port);
	}
	MUST(nexthop_parse(text, port, &again) == 0);
	MUST(again.kind == hop->kind && again.port == hop->port);
	MUST(strcmp(again.host, hop->host) == 0);
	MUST(again.address_len == hop->address_len);
	MUST(memcmp(&again.address, &hop->address, sizeof(hop->address)) == 0);
}

/* ---- made of a domain, which anybody may write ---- */

static void
check_domain(const char *domain, bool literals)
{
	char out[NEXTHOP_HOST_MAX];
	const char *why = NULL;
	struct nexthop hop;
	int r;

	FUZZ_FILL(out);
	r = nexthop_of_domain(domain, literals, out, &why);
	if (r < 0) {
		MUST(r == -EDESTADDRREQ && why != NULL);
		return;
	}
	MUST(memchr(out, '\0', sizeof(out)) != NULL);
	MUST(nexthop_parse(out, 25, &hop) == 0 && hop.port == 25);
	if (domain[0] == '[') {
		MUST(literals && hop.kind == NEXTHOP_ADDRESS);
	} else {
		MUST(hop.kind == NEXTHOP_DOMAIN);
		MUST(domain_is_same(out, domain));
		MUST(strpbrk(out, ":/[]ABCXYZ") == NULL);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	char *s = fuzz_string(&in);
	struct nexthop hop;
	int r;

	FUZZ_FILL(hop);
	r = nexthop_parse(s, 25, &hop);
	if (r == 0) {
		check_hop(&hop);
		check_again(&hop);
	} else {
		MUST(r == -EINVAL && FUZZ_UNTOUCHED(hop));
	}
	check_domain(s, false);
	check_domain(s, true);
	free(s);
	return 0;
}
