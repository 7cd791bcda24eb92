/* deliver-local/mailbox.h - from an address to a name and a path.
 *
 * A local part becomes part of a path, so what could lead out of its place is
 * refused here, once: an empty one, one with `/`, with a leading `.`, or with
 * control characters; the same for a domain that is used. Letters are folded
 * to lower case: A@x and a@x are one mailbox.
 */
#ifndef DELIVER_LOCAL_MAILBOX_H
#define DELIVER_LOCAL_MAILBOX_H

#include "base/buf.h"

#define MAILBOX_PART_MAX 255 /* as a file name */

struct mailbox {
	char user[MAILBOX_PART_MAX + 1];   /* the whole local part, unquoted */
	char base[MAILBOX_PART_MAX + 1];   /* without `+extension` */
	char domain[MAILBOX_PART_MAX + 1]; /* "" without one */
};

/* -EINVAL with *ret_why for an address that can have no mailbox. */
int mailbox_parse(
    const char *recipient, struct mailbox *ret_mailbox, const char **ret_why);

/* What stands for %u, %d, %h; NULL: there is none. */
struct mailbox_values {
	const char *user, *domain, *home;
};
/* Expand a path template, without slashes at its end. -EINVAL: unknown
 * escape, or not absolute; -EDESTADDRREQ: the address has no such part;
 * -ENOENT: no home; -ENAMETOOLONG; -ENOMEM. */
int mailbox_path(
    const char *template, const struct mailbox_values *values, struct buf *out);
/* Does the template hold this escape ('u', 'd', 'h')? */
bool mailbox_path_uses(const char *template, char escape);

#endif
