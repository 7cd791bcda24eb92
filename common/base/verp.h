/* base/verp.h - senders with a variable part, in the form of qmail
 * (addresses(5)), as the queue file keeps them: `list-@site.example-@[]`.
 * smtp/verp.h makes the senders of recipients.
 *
 * Pure. Never fails.
 */
#ifndef BASE_VERP_H
#define BASE_VERP_H

#include "base/base.h"

#define VERP_SUFFIX     "-@[]"
#define VERP_SUFFIX_LEN (sizeof(VERP_SUFFIX) - 1)

enum verp_kind {
	VERP_NONE,      /* an ordinary sender, or the null sender */
	VERP_WANTED,    /* an address, and the suffix */
	VERP_MALFORMED, /* the suffix without an address in front of it */
};

enum verp_kind verp_kind(const char *sender, size_t len);
/* The length of the address in front of the suffix; of any other sender all of
 * it. */
size_t verp_base_len(const char *sender, size_t len);
/* address_matches() and address_contains() of base/domain.h. Each is tried with
 * the stored sender, then with the address in front of the suffix. */
bool sender_matches(const char *pattern, const char *sender);
bool sender_contains(const char *part, const char *sender);

#endif
