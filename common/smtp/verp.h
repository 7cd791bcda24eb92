/* smtp/verp.h - senders with a variable part, in the form of qmail
 * (addresses(5)).
 *
 * The envelope sender `list-@site.example-@[]` asks for a sender of its own for
 * each recipient: user@host.example gets the message from
 * list-user=host.example@site.example. A recipient's domain in UTF-8 is written
 * in A-labels; a domain that has no A-labels is written as it is. The queue
 * file keeps the form with the suffix; queue-send makes the sender of each
 * delivery and of each report.
 *
 * Pure. Soft: -errno.
 */
#ifndef SMTP_VERP_H
#define SMTP_VERP_H

#include "base/address.h"
#include "base/verp.h"

/* The sender for this recipient, ended by NUL. `domain` stands for the domain
 * of a recipient that has none. A sender that is not VERP_WANTED is copied.
 * -ENAMETOOLONG: the result is longer than ADDRESS_MAX; -ENOMEM. */
int verp_expand(const char *sender, const char *recipient, const char *domain,
    char out[ADDRESS_MAX + 1]);
/* The inverse of verp_expand(): write the stored form,
 * `list-@site.example-@[]`, of a sender for this recipient into out. Another
 * program may have made the sender. 1; 0: the local part of the sender does not
 * end with a delimiter and the recipient, or the form is too long, and out is
 * unchanged; -ENOMEM. */
int verp_restore(
    const char *sender, const char *recipient, char out[ADDRESS_MAX + 1]);
/* Where a report about this recipient goes: as verp_expand(), and the address
 * in front of the suffix where the sender would be too long. -ENOMEM. */
int verp_report_to(const char *sender, const char *recipient,
    const char *domain, char out[ADDRESS_MAX + 1]);
/* The stored form of `address` with the delimiter `first` between its local
 * part and the recipient, ended by NUL. -EINVAL: no address with a local part
 * and a domain; -ENAMETOOLONG. */
int verp_compose(const char *address, char first, char out[ADDRESS_MAX + 1]);

#endif
