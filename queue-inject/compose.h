/* queue-inject/compose.h - header fields that are added where they are missing
 * (RFC 5322 section 3.6): From, Date, Message-ID, or their Resent- sisters
 * (3.6.6). Failure: -ENOMEM. */
#ifndef QUEUE_INJECT_COMPOSE_H
#define QUEUE_INJECT_COMPOSE_H

#include "base/buf.h"

/* Each field gets `prefix` ("" or "Resent-") and ends in eol. */
struct compose {
	struct buf *out;
	const char *prefix, *eol;
};

/* full_name may be anything, "" for none: it is cleaned, and quoted or
 * encoded (RFC 2047) as it needs. */
int compose_from(
    const struct compose *c, const char *full_name, const char *address);
int compose_date(const struct compose *c, usec_t wall);
/* Unique: the time, and a random number. */
int compose_message_id(
    const struct compose *c, usec_t wall, uint64_t random, const char *host);

#endif
