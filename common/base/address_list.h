/* base/address_list.h - the addresses in a header field or an argument.
 *
 * RFC 5322 section 3.4, with the obsolete forms of 4.4. Understood: display
 * names (any words, also words that should have been quoted), angle addresses,
 * source routes (dropped), groups, comments nested to any depth, quoted
 * strings, domain literals, folds, blanks around dots and at signs, empty
 * elements, `;` in the place of `,`, octets above 127.
 *
 * One pass, no recursion, memory for one address. An error ends the list; the
 * addresses before it were passed on. Soft: -EINVAL for a list that is
 * malformed, -EILSEQ for a control character (also CR or LF that is not a
 * fold), -ENAMETOOLONG for an address above ADDRESS_MAX, -ENOMEM, or the answer
 * of each().
 */
#ifndef BASE_ADDRESS_LIST_H
#define BASE_ADDRESS_LIST_H

#include "base/base.h"

/* The address is ended by NUL and lives during the call. Not 0: stop. */
typedef int address_list_each(void *arg, const char *address, size_t len);

/* Each address is passed on as envelopes carry it: `local@domain`, the local
 * part quoted only where it must be; where the domain is missing the default
 * one is put. `<>` is passed on as the empty string. */
int address_list_parse(const char *list, size_t len, const char *domain,
    address_list_each *each, void *arg);

/* Where an address is. A part goes from its first octet to behind its last
 * one, with comments and folds in between, but with none beside it; ends of 0:
 * the list has no such part. */
struct address_place {
	size_t local, local_end;
	size_t domain, domain_end;
	const char *address; /* as above; NULL: the domain is missing */
	bool plain; /* the local part is words with single dots between */
};
/* The place lives during the call. Not 0: stop. */
typedef int
address_list_each_place(void *arg, const struct address_place *place);

/* The places of all addresses but `<>`, in the order of the list. */
int address_list_places(
    const char *list, size_t len, address_list_each_place *each, void *arg);

#endif
