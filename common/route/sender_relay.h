/* route/sender_relay.h - sender_dependent_relayhost: the relay of mail by its
 * sender, in place of relayhost. A value of this kind is a next hop as
 * relayhost takes it, kept in A-labels; the word DUNNO, which is no value,
 * leaves the sender with relayhost.
 */
#ifndef ROUTE_SENDER_RELAY_H
#define ROUTE_SENDER_RELAY_H

#include "route/sender_map.h"

extern const struct sender_kind sender_relay_kind;

#endif
