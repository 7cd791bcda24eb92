/* deliver-smtp/mime/rewrite.h - the other addresses of senders in the header of
 * a message (route/sender_rewrite.h).
 *
 * The fields are From, Sender, Reply-To and the Resent- fields of these names,
 * of the message itself, not of a message within. Of an address with a row
 * both parts change, or its domain alone; every other octet stays: display
 * names, comments, folds. A field that is malformed, or longer than
 * REWRITE_FIELD_MAX, stays as it is.
 *
 * The header ends at the first line that is no field (RFC 5322 section 2.2,
 * with the blanks before the colon of section 4.5). A pure function of the
 * octets, in slices of any size. One field is held in memory. Soft: -ENOMEM.
 */
#ifndef DELIVER_SMTP_MIME_REWRITE_H
#define DELIVER_SMTP_MIME_REWRITE_H

#include "route/sender_rewrite.h"

#define REWRITE_FIELD_MAX 65536

struct rewrite;

/* The map lives as long. */
int rewrite_new(const struct sender_map *map, struct rewrite **ret_rewrite);
void rewrite_free(struct rewrite **rewrite);
/* The next octets; what can be written is appended to out. */
int
rewrite_feed(struct rewrite *w, const char *data, size_t len, struct buf *out);
/* The content has ended. */
int rewrite_end(struct rewrite *w, struct buf *out);

#endif
