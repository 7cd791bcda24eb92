/* queue-inject/address_list.h - the addresses in a header field or an argument
 * (RFC 5322 section 3.4, with the obsolete forms of 4.4).
 *
 * Understood: display names (any words, also those that should have been
 * quoted), angle addresses, source routes (dropped), groups, comments nested
 * to any depth, quoted strings, domain literals, folds, blanks around dots and
 * at signs, empty elements, `;` in the place of `,`, octets above 127.
 *
 * Each address is handed on as envelopes carry it: `local@domain`, the local
 * part quoted only where it must be; where the domain is missing the default
 * one is put. `<>` is handed on as the empty string. An error ends the list;
 * what stood before it was handed on.
 *
 * One pass, no recursion, memory for one address. Soft: -EINVAL for a list
 * that is malformed, -EILSEQ for a control character (also CR or LF that is
 * not a fold), -ENAMETOOLONG for an address above ADDRESS_MAX, -ENOMEM, or
 * what each() answered.
 */
#ifndef QUEUE_INJECT_ADDRESS_LIST_H
#define QUEUE_INJECT_ADDRESS_LIST_H

#include "base/base.h"

/* The address is ended by NUL and lives during the call. Not 0: stop. */
typedef int address_list_each(void *arg, const char *address, size_t len);

int address_list_parse(const char *list, size_t len, const char *domain,
    address_list_each *each, void *arg);

#endif
