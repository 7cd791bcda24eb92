/* base/domain.h - domain names in the one spelling that is compared, looked up
 * in DNS and sent to servers without SMTPUTF8.
 *
 * The spelling is lower case, in A-labels (RFC 5890), without the dot of the
 * root behind the name: "bücher.example", "BÜCHER.example." and
 * "xn--bcher-kva.example" are one domain. U-labels are mapped as UTS 46 says,
 * nontransitional, and checked against IDNA 2008 by libidn2. A domain in ASCII
 * is only put into lower case, whatever stands behind an xn--: DNS has names
 * that IDNA 2008 does not allow. An address literal is in ASCII.
 *
 * A domain in UTF-8 is refused without a mapping if a label has more than 252
 * code points, or the domain has more than DOMAIN_MAX. The time of a mapping
 * grows with the length.
 *
 * Pure: no file is read, whatever the locale. Any octets may come. */
#ifndef BASE_DOMAIN_H
#define BASE_DOMAIN_H

#include "base/address.h"

#define DOMAIN_MAX         255 /* octets of a domain in A-labels */

/* A folded domain that could not be converted is as long as the original. */
#define DOMAIN_FOLDED_MAX  ADDRESS_MAX
#define ADDRESS_FOLDED_MAX (ADDRESS_MAX + DOMAIN_MAX)

/* True: the text has an octet above 127. */
bool domain_is_utf8(const char *text);

/* Writes the one spelling of the domain into out. -ENOMEM; -EINVAL for a domain
 * in UTF-8 that has no A-labels, or one of more than DOMAIN_MAX octets, with
 * the reason in *ret_why (static text that begins "the domain"); out is then
 * as it was. A domain in ASCII is not judged: it may be no host name. */
int domain_normalize(
    const char *domain, char out[DOMAIN_MAX + 1], const char **ret_why);

/* As domain_normalize(), for comparisons: a domain that has no A-labels stays
 * as it is, with its ASCII letters in lower case, and fits what is spelled as
 * it is. Of a domain above DOMAIN_FOLDED_MAX octets the end is cut off.
 * -ENOMEM: the domain was written like one without A-labels. */
int domain_fold(const char *domain, char out[DOMAIN_FOLDED_MAX + 1]);
/* The address with its domain folded; its local part stays. The end of an
 * address above ADDRESS_MAX octets is cut off. -ENOMEM as domain_fold(). */
int address_fold(const char *address, char out[ADDRESS_FOLDED_MAX + 1]);

/* Are they two spellings of one domain? */
bool domain_is_same(const char *a, const char *b);

/* Writes a pattern for folded text into out: each label without a `*` is in
 * A-labels. The pattern is one of domains, of addresses, or of next hops.
 * -ENAMETOOLONG when the pattern does not fit. */
int domain_pattern(const char *pattern, char out[ADDRESS_FOLDED_MAX + 1]);
/* text_matches(), of each as it is or of both folded. */
bool domain_matches(const char *pattern, const char *domain);
bool address_matches(const char *pattern, const char *address);
/* The pattern is NEXTHOP or TRANSPORT/NEXTHOP. The transport is compared by
 * text_matches(), the next hop by domain_matches(). */
bool destination_matches(
    const char *pattern, const char *transport, const char *nexthop);
/* Does the address have this part, without case, both as they are or both
 * folded? */
bool address_contains(const char *part, const char *address);

#endif
