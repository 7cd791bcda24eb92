/* qctl/read/user.h - accounts, for lists.
 *
 * With more rights than the caller's (guard_is_secure()) /etc/passwd alone is
 * read: modules of the name service would run with these rights. The result is
 * static, until the next call; NULL: no such account, or the file cannot be
 * read.
 */
#ifndef QCTL_READ_USER_H
#define QCTL_READ_USER_H

#include <pwd.h>

const struct passwd *user_by_uid(uid_t uid);
const struct passwd *user_by_name(const char *name);
/* Name of the account; "": none. */
const char *user_name(uid_t uid);

#endif
