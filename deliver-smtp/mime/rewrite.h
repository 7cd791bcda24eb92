/* deliver-smtp/mime/rewrite.h - the other addresses of senders in the header of
 * a message (route/sender_rewrite.h).
 *
 * The fields are From, Sender, Reply-To and the Resent- fields of these names,
 * of the message itself, not of a message within. Of an address with a row
 * both parts change, or its domain alone; every other octet stays: display
 * names, comments, folds. A field that is malformed, or longer than
 * REWRITE_FIELD_MAX, stays as it is.
 *
 * The header ends at the first line that is no field (base/header.h). Pure.
 * Soft: -ENOMEM.
 */
#ifndef DELIVER_SMTP_MIME_REWRITE_H
#define DELIVER_SMTP_MIME_REWRITE_H

#include "route/sender_rewrite.h"

#define REWRITE_FIELD_MAX  65536
/* Octets of the content that are searched for its header. */
#define REWRITE_HEADER_MAX ((size_t)256 << 10)

/* Does the header end within these octets, whatever follows? */
bool rewrite_header_is_over(const char *data, size_t len);
/* Append the header at the beginning of the content to out, with rewritten
 * addresses. *ret_used: the octets of the content that the header had. more:
 * the content is longer than len; a field that reaches the end of the len
 * octets is not appended. */
int rewrite_header(const struct sender_map *map, const char *data, size_t len,
    bool more, struct buf *out, size_t *ret_used);

#endif
