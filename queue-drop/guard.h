/* queue-drop/guard.h - what the caller left in this process, which is not to
 * be trusted, and the ways to the instance, which are.
 *
 * Soft: -errno. Nothing of the environment, of descriptors above 2, of signals,
 * limits, umask or directory of the caller is used after guard_process(). */
#ifndef QUEUE_DROP_GUARD_H
#define QUEUE_DROP_GUARD_H

#include "base/base.h"

/* First of all. */
int guard_process(void);
/* Does this process have more rights than its caller? */
bool guard_is_secure(void);
/* An absolute path of directories, none of them a link, each owned by root and
 * writable by nobody else, but for sticky ones; in the last a regular file
 * `name` of root's, the same. -EPERM, -ELOOP, -ENOTDIR, -ENOENT. */
int guard_trust(const char *base, const char *name);

#endif
