/* deliver-local/walk.h - go down a path without following links that somebody
 * else than root made.
 *
 * A path of a maildir leads through directories of the recipient, who can put a
 * link in place of any of them at any time. So each part is opened by itself,
 * from the descriptor of the one before it, and a link is an error (-ELOOP).
 * Only a link of root's in a directory of root's that nobody else can rename in
 * is followed, part by part as well: that is how an administrator moves /home.
 */
#ifndef DELIVER_LOCAL_WALK_H
#define DELIVER_LOCAL_WALK_H

#include "base/base.h"

#include <limits.h>

/* All of an absolute path but the last part: its directory (O_PATH, the
 * caller's), and the name of the last part in it, which need not exist, and was
 * no link when it was looked at. -errno. */
int walk_to(const char *path, int *ret_dir, char ret_name[NAME_MAX + 1]);

#endif
