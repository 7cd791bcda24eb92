/* route/nexthop.h - parse the next hop of SMTP and LMTP, for the reader of the
 * routing file, the programs that route, and the agent.
 *
 * An operator may name in a rule:
 *
 *   host   host:port   [host]   [host]:port   1.2.3.4:port
 *   [::1]   [::1]:port   ::1   unix:/path
 *
 * Default ports: 25 for SMTP, 24 for LMTP. Brackets mark a host. Without them
 * it is a domain, whose hosts DNS names (MX records), where SMTP is spoken; see
 * docs/DELIVERY.md, "Next hop".
 *
 * A next hop made of a domain comes from any submitter. It is a host name, or
 * an address where the transport allows literals; never a port, a socket, or an
 * address without brackets.
 */
#ifndef ROUTE_NEXTHOP_H
#define ROUTE_NEXTHOP_H

#include "base/base.h"

#include <sys/socket.h>

#define NEXTHOP_HOST_MAX 256 /* with the NUL; a socket's path is shorter */

enum nexthop_kind {
	NEXTHOP_DOMAIN,  /* a name without brackets */
	NEXTHOP_HOST,    /* a name in brackets: its addresses are looked up */
	NEXTHOP_ADDRESS, /* numeric */
	NEXTHOP_UNIX,    /* a path */
};

struct nexthop {
	enum nexthop_kind kind;
	char host[NEXTHOP_HOST_MAX]; /* name, address or path */
	uint16_t port;
	/* NEXTHOP_ADDRESS, NEXTHOP_UNIX */
	struct sockaddr_storage address;
	socklen_t address_len;
};

/* -EINVAL for any other text: port 0, a path that is relative or too long, an
 * address with a scope or of no single host, octets that no host name has.
 * A name in U-labels becomes one in A-labels (base/domain.h). */
int
nexthop_parse(const char *s, uint16_t default_port, struct nexthop *ret_hop);

/* The complaint, for text_complain(), about a text that is not a next hop, or
 * is a socket in a place that takes no socket. A static text. */
const char *nexthop_complaint(const char *s);

/* Writes the text of a next hop into out with a host of U-labels in A-labels;
 * any other text stays as it is. -EINVAL: the host has no A-labels;
 * -ENAMETOOLONG. */
#define NEXTHOP_TEXT_MAX 255
int nexthop_to_ascii(const char *s, char out[NEXTHOP_TEXT_MAX + 1]);

/* Can the address (IPv4 or IPv6) be that of a server? Not: 0.0.0.0/8 and ::,
 * link-local ones, which mean nothing without an interface, those of many
 * hosts, and IPv4 written as IPv6, which would pass for another one. */
bool nexthop_is_server(const struct sockaddr *address);

/* The next hop of a domain, into out (room for NEXTHOP_HOST_MAX):
 * the name as base/domain.h spells it, or of `[192.0.2.1]` and
 * `[IPv6:2001:db8::1]` the address in brackets. -EDESTADDRREQ with *ret_why for
 * any other domain; -ENOMEM. */
int nexthop_of_domain(const char *domain, bool literals,
    char out[NEXTHOP_HOST_MAX], const char **ret_why);

/* A domain as keys of the routing and alias files have it: in lower case, no
 * longer than NEXTHOP_DOMAIN_MAX; an address literal too. */
#define NEXTHOP_DOMAIN_MAX 255
bool nexthop_fits_domain(const char *domain);

/* In place. Domains and hosts are ASCII; tolower() follows the locale. */
void nexthop_lower_case(char *s);

/* "host[1.2.3.4]" and "host[1.2.3.4]:25" of one of the hosts of the next hop;
 * for a path "localhost[/path]" both. */
#define NEXTHOP_PEER_MAX (NEXTHOP_HOST_MAX + 128)
void nexthop_peer(const struct nexthop *hop, const char *host,
    const struct sockaddr *address, char ret_peer[NEXTHOP_PEER_MAX],
    char ret_relay[NEXTHOP_PEER_MAX]);

#endif
