/* site/rules.h - how long a dead destination rests, and how long an idle one is
 * remembered; pure. window.h counts failures until a destination is dead.
 * docs/SCHEDULING.md, sections 2 and 3.
 */
#ifndef SITE_RULES_H
#define SITE_RULES_H

#include "site/site.h"

/* Parameters as they are used: impossible values are put into bounds. */
void
site_rules(const struct site_params *params, struct window_rules *ret_rules);
void
site_backoff_fit(const struct site_backoff *backoff, struct site_backoff *ret);

/* When a site opens again that has died `deaths` times in a row, at least once.
 * random: the state of the spread, which moves on. */
usec_t site_dead_until(const struct site_backoff *backoff, uint32_t deaths,
    uint64_t *random, usec_t now);
/* How long an idle site is remembered. */
usec_t site_remembered(const struct site_backoff *backoff);
/* Bytes of the reason that are kept, never half a character; 0 for none. */
size_t site_why_len(const char *why);
/* The reason where there is none. */
#define SITE_WHY_UNKNOWN "unknown"

/* Names compare without case, of ASCII. */
static inline unsigned char
site_lower(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 'a' - 'A') : c;
}
/* hash: of what stands before the name, and a secret: a sender who chooses
 * names cannot choose which of them collide. */
uint64_t site_hash(uint64_t hash, const char *name);
uint64_t site_mix(uint64_t x);

#endif
