/* base/guard.h - the process of a set-group-id program (docs/DOOR.md).
 *
 * Soft: -errno. The caller made this process, and is not trusted; the
 * directories above the instance are. After guard_process() nothing of the
 * caller is used: no environment, descriptors above 2, signals, limits, umask
 * or directory.
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <stdbool.h>

/* First of all. */
int guard_process(void);
/* Does this process have more rights than its caller? */
bool guard_is_secure(void);
/* An absolute path of directories, none of them a link, each owned by root and
 * writable by no other user unless it is sticky; in the last one a regular file
 * `name` of root's, the same. -EPERM, -ELOOP, -ENOTDIR, -ENOENT. */
int guard_trust(const char *base, const char *name);

#endif
