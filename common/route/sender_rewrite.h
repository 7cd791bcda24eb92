/* route/sender_rewrite.h - sender_rewrite: the addresses that senders have over
 * SMTP. A value of this kind is an address, or an at sign and a domain, which
 * leaves the local part. It is in ASCII, its domain in A-labels, and its local
 * part needs no quotes.
 */
#ifndef ROUTE_SENDER_REWRITE_H
#define ROUTE_SENDER_REWRITE_H

#include "route/sender_map.h"

extern const struct sender_kind sender_rewrite_kind;

/* Write the other address of a sender into out. A VERP sender (base/verp.h) has
 * a VERP sender as the other address, whose local part ends with a delimiter.
 * 1; 0: no row fits, or the other address is too long; -ENOMEM. map and sender
 * may be NULL. */
int sender_rewrite(const struct sender_map *map, const char *sender,
    char out[ADDRESS_MAX + 1]);

#endif
