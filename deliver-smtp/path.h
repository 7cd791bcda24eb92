/* deliver-smtp/path.h - an envelope address as the argument of MAIL and RCPT.
 */
#ifndef DELIVER_SMTP_PATH_H
#define DELIVER_SMTP_PATH_H

#include "base/buf.h"

/* Append `<address>`; "" gives `<>`. A local part that is neither a dot-string
 * nor a quoted string (RFC 5321 section 4.1.2) is quoted, so that no address
 * can end the path and begin a parameter. -EINVAL, nothing added: the domain
 * has an octet that no quoting makes fit; -ENOMEM. */
int path_add(struct buf *out, const char *address);
/* Would path_add() take it? */
bool path_is_fit(const char *address);
/* Does the address need SMTPUTF8 (RFC 6531)? */
bool path_is_utf8(const char *address);

#endif
