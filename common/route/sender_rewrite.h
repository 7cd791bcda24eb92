/* route/sender_rewrite.h - sender_rewrite: the addresses that senders have over
 * SMTP. A value of this kind is an address, or an at sign and a domain, which
 * leaves the local part. It is in ASCII, its domain in A-labels, and its local
 * part needs no quotes.
 */
#ifndef ROUTE_SENDER_REWRITE_H
#define ROUTE_SENDER_REWRITE_H

#include "route/sender_map.h"

extern const struct sender_kind sender_rewrite_kind;

/* Writes the other address of a sender into out. That of a VERP sender
 * (base/verp.h) is one, with a delimiter in front of its at sign. 1; 0: there
 * is none, or the address would be too long; -ENOMEM. map may be NULL. */
int sender_rewrite(const struct sender_map *map, const char *sender,
    char out[ADDRESS_MAX + 1]);

#endif
