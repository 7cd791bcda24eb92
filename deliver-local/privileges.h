/* deliver-local/privileges.h - what the agent for local mail keeps of root.
 *
 *	CAP_SETUID, CAP_SETGID	to become the recipient
 *	CAP_KILL		to end what runs as the recipient
 *
 * The bounding set stays as it is, since programs that mail is piped to may be
 * set-user-id; a process that becomes another user has no capability at all.
 */
#ifndef DELIVER_LOCAL_PRIVILEGES_H
#define DELIVER_LOCAL_PRIVILEGES_H

#include "base/base.h"

/* Keep these three, as far as they are there, for good. *ret_missing: names of
 * those that are not, "" if none. -errno. */
int privileges_drop(const char **ret_missing);

#endif
