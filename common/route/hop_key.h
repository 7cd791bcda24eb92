/* route/hop_key.h - keys of next hops in tables that an operator writes: TLS
 * policies and credentials.
 *
 *	host  host:port  [host]  [host]:port  [address]:port  unix:/path
 *
 * A next hop has the row that names it as it is written, port and brackets
 * included; else that without the port; else that without the brackets. Case,
 * the dot behind a name, U-labels in place of A-labels and the spelling of an
 * IPv6 address do not count: they name the same host, and a row that was
 * overlooked would be a level of TLS that is not held. A path is taken as it
 * is. Pure.
 */
#ifndef ROUTE_HOP_KEY_H
#define ROUTE_HOP_KEY_H

#include "base/base.h"
#include "route/nexthop.h"

/* With brackets, colon and port, and the NUL. */
#define HOP_KEY_MAX   (NEXTHOP_HOST_MAX + 8)
#define HOP_KEYS_MAX  3
#define HOP_PORT_SMTP 25 /* of a text that is only judged */

struct hop_keys {
	char key[HOP_KEYS_MAX][HOP_KEY_MAX]; /* the first row that is there */
	size_t count;
};

/* None for a text that is no next hop. */
void hop_keys_of(const char *nexthop, struct hop_keys *ret_keys);
/* The key of a row that begins with this text; -EINVAL: no next hop. */
int hop_key_of_row(const char *text, char ret_key[HOP_KEY_MAX]);

#endif
