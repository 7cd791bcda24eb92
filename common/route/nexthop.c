#include "route/nexthop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "base/domain.h"
#include "base/num.h"

#define UNIX_PREFIX "unix:"

static int
parse_unix(const char *path, struct nexthop *hop)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&hop->address;
	size_t len = strlen(path);

	if (path[0] != '/' || len >= sizeof(un->sun_path))
		return -EINVAL;
	hop->kind = NEXTHOP_UNIX;
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, path, len + 1);
	memcpy(hop->host, path, len + 1);
	hop->address_len = sizeof(*un);
	return 0;
}

static bool
is_name(const char *s)
{
	static const char fit[] = "abcdefghijklmnopqrstuvwxyz"
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

	return *s != '\0' && *s != '.' && *s != '-' &&
	    strstr(s, "..") == NULL && s[strspn(s, fit)] == '\0';
}

/* ---- addresses ---- */

static bool
is_server_4(const struct sockaddr_in *in)
{
	uint32_t ip = ntohl(in->sin_addr.s_addr);

	return ip >> 24 != 0 && ip >> 16 != 0xa9fe && ip >> 28 != 0xe;
}

static bool
is_server_6(const struct in6_addr *ip)
{
	return !IN6_IS_ADDR_UNSPECIFIED(ip) && !IN6_IS_ADDR_LINKLOCAL(ip) &&
	    !IN6_IS_ADDR_MULTICAST(ip) && !IN6_IS_ADDR_V4MAPPED(ip) &&
	    !IN6_IS_ADDR_V4COMPAT(ip);
}

bool
nexthop_is_server(const struct sockaddr *address)
{
	const void *any = address;

	if (address->sa_family == AF_INET)
		return is_server_4(any);
	return address->sa_family == AF_INET6 &&
	    is_server_6(&((const struct sockaddr_in6 *)any)->sin6_addr);
}

static void
set_address(struct nexthop *hop, bool in_brackets)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&hop->address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&hop->address;

	hop->kind = NEXTHOP_ADDRESS;
	if (inet_pton(AF_INET, hop->host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(hop->port);
		hop->address_len = sizeof(*in);
	} else if (inet_pton(AF_INET6, hop->host, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(hop->port);
		hop->address_len = sizeof(*in6);
	} else {
		hop->kind = in_brackets ? NEXTHOP_HOST : NEXTHOP_DOMAIN;
	}
}

/* "host", or the text in brackets, into hop->host. Returns the place where a
 * port may follow, NULL when it is not well-formed. */
static const char *
split_host(const char *s, struct nexthop *hop)
{
	struct in6_addr ignored;
	const char *begin = s, *end;
	size_t len;

	if (*s == '[') {
		begin = s + 1;
		end = strchr(begin, ']');
		if (end == NULL)
			return NULL;
		s = end + 1;
	} else {
		end = inet_pton(AF_INET6, s, &ignored) == 1
		    ? s + strlen(s)
		    : s + strcspn(s, ":");
		s = end;
	}
	len = (size_t)(end - begin);
	if (len >= sizeof(hop->host))
		return NULL;
	memcpy(hop->host, begin, len);
	hop->host[len] = '\0';
	return s;
}

/* U-labels become A-labels. A name in ASCII keeps its letters and its dot. */
static int
host_to_ascii(char host[NEXTHOP_HOST_MAX])
{
	char ascii[DOMAIN_MAX + 1];
	const char *why;

	if (!domain_is_utf8(host))
		return 0;
	if (domain_normalize(host, ascii, &why) < 0)
		return -EINVAL;
	memcpy(host, ascii, strlen(ascii) + 1);
	return 0;
}

static int
parse_inet(const char *s, uint16_t default_port, struct nexthop *hop)
{
	const char *rest = split_host(s, hop);
	uint64_t port = default_port;
	bool fits;

	if (rest == NULL || host_to_ascii(hop->host) < 0)
		return -EINVAL;
	if (*rest != '\0' &&
	    (*rest != ':' || num_u64(rest + 1, 1, UINT16_MAX, &port) < 0))
		return -EINVAL;
	hop->port = (uint16_t)port;
	set_address(hop, *s == '[');
	fits = hop->kind == NEXTHOP_ADDRESS
	    ? nexthop_is_server((const struct sockaddr *)&hop->address)
	    : is_name(hop->host);
	return fits ? 0 : -EINVAL;
}

int
nexthop_parse(const char *s, uint16_t default_port, struct nexthop *ret_hop)
{
	struct nexthop hop = { 0 };
	int r;

	if (strncmp(s, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0)
		r = parse_unix(s + strlen(UNIX_PREFIX), &hop);
	else
		r = parse_inet(s, default_port, &hop);
	if (r == 0)
		*ret_hop = hop;
	return r;
}

const char *
nexthop_complaint(const char *s)
{
	static const char transport[] = "smtp:";
	struct nexthop hop;

	if (strncmp(s, transport, strlen(transport)) == 0 &&
	    nexthop_parse(s + strlen(transport), 1, &hop) == 0)
		return "is not a next hop; leave out \"smtp:\"";
	return "is not a next hop: it must be domain, domain:port, "
	       "[host]:port or [address]:port";
}

int
nexthop_to_ascii(const char *s, char out[NEXTHOP_TEXT_MAX + 1])
{
	struct nexthop hop = { 0 };
	char text[NEXTHOP_TEXT_MAX + 1];
	const char *rest = s;
	int len;

	if (domain_is_utf8(s) &&
	    strncmp(s, UNIX_PREFIX, strlen(UNIX_PREFIX)) != 0) {
		rest = split_host(s, &hop);
		if (rest == NULL || host_to_ascii(hop.host) < 0)
			return -EINVAL;
	}
	len = snprintf(text, sizeof(text),
	    rest != s && *s == '[' ? "[%s]%s" : "%s%s", hop.host, rest);
	if (len > NEXTHOP_TEXT_MAX)
		return -ENAMETOOLONG;
	memcpy(out, text, (size_t)len + 1);
	return 0;
}

/* ---- of a domain ---- */

/* "192.0.2.1", "1.2", "0x7f000001": libraries take these for addresses. */
static bool
ends_in_number(const char *name)
{
	const char *dot = strrchr(name, '.');
	const char *last = dot == NULL ? name : dot + 1;

	if (last[0] == '0' && (last[1] == 'x' || last[1] == 'X'))
		return true;
	return last[strspn(last, "0123456789")] == '\0';
}

static bool
is_host_name(const char *domain)
{
	size_t len = strlen(domain);

	return len < NEXTHOP_HOST_MAX && is_name(domain) &&
	    domain[len - 1] != '.' && strstr(domain, "..") == NULL &&
	    !ends_in_number(domain);
}

/* "[192.0.2.1]", "[IPv6:2001:db8::1]": the address without brackets and prefix.
 */
static bool
is_literal(const char *domain, char out[NEXTHOP_HOST_MAX])
{
	static const char tag[] = "IPv6:";
	const size_t tag_len = sizeof(tag) - 1;
	bool six = strncasecmp(domain + 1, tag, tag_len) == 0;
	const char *begin = domain + 1 + (six ? tag_len : 0);
	size_t len = strlen(begin);
	struct in6_addr ignored;
	struct nexthop hop;
	char ip[INET6_ADDRSTRLEN];

	if (len < 2 || len > sizeof(ip) || begin[len - 1] != ']')
		return false;
	memcpy(ip, begin, len - 1);
	ip[len - 1] = '\0';
	if (inet_pton(six ? AF_INET6 : AF_INET, ip, &ignored) != 1)
		return false;
	snprintf(out, NEXTHOP_HOST_MAX, "[%s]", ip);
	return nexthop_parse(out, 1, &hop) == 0;
}

bool
nexthop_fits_domain(const char *domain)
{
	static const char chars[] =
	    "abcdefghijklmnopqrstuvwxyz0123456789-._:[]";
	size_t len = strlen(domain);

	if (len == 0 || len > NEXTHOP_DOMAIN_MAX || domain[0] == '.' ||
	    domain[len - 1] == '.' || strstr(domain, "..") != NULL)
		return false;
	for (; *domain != '\0'; domain++)
		if (strchr(chars, *domain) == NULL &&
		    (unsigned char)*domain < 0x80)
			return false;
	return true;
}

void
nexthop_lower_case(char *s)
{
	for (; *s != '\0'; s++)
		if (*s >= 'A' && *s <= 'Z')
			*s = (char)(*s - 'A' + 'a');
}

int
nexthop_of_domain(const char *domain, bool literals, char out[NEXTHOP_HOST_MAX],
    const char **ret_why)
{
	char name[DOMAIN_MAX + 1];
	int r;

	if (domain[0] != '[') {
		r = domain_normalize(domain, name, ret_why);
		if (r < 0)
			return r == -ENOMEM ? r : -EDESTADDRREQ;
		if (!is_host_name(name)) {
			*ret_why = domain[0] == '\0'
			    ? "the address has no domain"
			    : "the domain of the address is no host name";
			return -EDESTADDRREQ;
		}
		memcpy(out, name, strlen(name) + 1);
	} else if (!literals) {
		*ret_why = "mail to an address literal is not sent";
		return -EDESTADDRREQ;
	} else if (!is_literal(domain, out)) {
		*ret_why = "the domain of the address is no address literal";
		return -EDESTADDRREQ;
	}
	nexthop_lower_case(out);
	return 0;
}

/* ---- for people ---- */

void
nexthop_peer(const struct nexthop *hop, const char *host,
    const struct sockaddr *address, char ret_peer[NEXTHOP_PEER_MAX],
    char ret_relay[NEXTHOP_PEER_MAX])
{
	char ip[INET6_ADDRSTRLEN] = "";

	if (hop->kind == NEXTHOP_UNIX) {
		snprintf(
		    ret_peer, NEXTHOP_PEER_MAX, "localhost[%s]", hop->host);
		snprintf(ret_relay, NEXTHOP_PEER_MAX, "%s", ret_peer);
		return;
	}
	if (address->sa_family == AF_INET)
		inet_ntop(AF_INET,
		    &((const struct sockaddr_in *)(const void *)address)
			 ->sin_addr,
		    ip, sizeof(ip));
	else
		inet_ntop(AF_INET6,
		    &((const struct sockaddr_in6 *)(const void *)address)
			 ->sin6_addr,
		    ip, sizeof(ip));
	snprintf(ret_peer, NEXTHOP_PEER_MAX, "%s[%s]", host, ip);
	snprintf(ret_relay, NEXTHOP_PEER_MAX, "%s[%s]:%u", host, ip, hop->port);
}
