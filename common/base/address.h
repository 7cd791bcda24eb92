/* base/address.h - mail addresses as envelopes carry them: without angle
 * brackets, `local@domain`, the local part possibly quoted. Header syntax is
 * read by base/address_list.h. */
#ifndef BASE_ADDRESS_H
#define BASE_ADDRESS_H

#include "base/base.h"

/* The longest address that is accepted. A path of RFC 5321 section 4.5.3.1 has
 * 256 octets; this system carries longer ones, and refuses them later. */
#define ADDRESS_MAX           512

/* qmail's sender of a report about a report, which is never reported on. */
#define ADDRESS_DOUBLE_BOUNCE "#@[]"

/* Checks an address of an envelope. 0, or -EINVAL for an empty one, -EILSEQ for
 * CR, LF or NUL or another control character, -ENAMETOOLONG above
 * ADDRESS_MAX. The caller may allow the null sender. */
int address_check(const char *address, size_t len);
/* The part after the last `@`, "" without one. Points into address. */
const char *address_domain(const char *address);
/* The length of the part before the last `@`, of the whole address without one.
 */
size_t address_local_len(const char *address);

/* Takes the quotes off a local part, `"john \"d\" doe"`, in place; one without
 * quotes stays as it is. The new length. A NUL ends the text. */
size_t address_unquote(char *local, size_t len);

/* The name of a mailbox that a local part stands for: without its quotes, in
 * lower case (ASCII), cut to ADDRESS_MAX. Its length. */
size_t address_user(const char *address, char out[ADDRESS_MAX + 1]);
/* The length of the account in it: up to the first `+`; a name that begins with
 * `+` is all account. */
size_t address_account_len(const char *user);

#endif
