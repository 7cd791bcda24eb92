/* queue-drop/count.h - what of one user lies in the queues of an instance.
 *
 * Soft: -errno of what the caller's limits bring about; a queue that cannot be
 * read otherwise counts as nothing. */
#ifndef QUEUE_DROP_COUNT_H
#define QUEUE_DROP_COUNT_H

#include "config/conf.h"
#include "spool/spool.h"

struct count {
	uint64_t messages, bytes, inodes;
};

/* sp is looked at whatever the supervisor says of it. */
int count_user(const struct conf *conf, const struct spool *sp, uid_t uid,
    struct count *ret);
/* A word of trusted_users is this user: a number, or a name of /etc/passwd. No
 * other user database is asked: its modules would run with our rights. */
bool count_is_trusted(const char *list, uid_t uid);

#endif
