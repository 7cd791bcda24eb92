/* queue-drop/share.h - what one user may have waiting, and how fast more may
 * come: messages, bytes, inodes, messages a minute, doors at once.
 *
 * Counted are the drops of the user in maildrop/ of every queue, what
 * gate/waiting of each says of the rest, and what other doors of the user are
 * reading at the moment. QUEUE_BASE/users/UID holds the rate and, for each
 * door that runs, a locked slot with the bytes that it has read. Root, the user
 * of a private instance and trusted_users are not counted.
 *
 * A queue that the supervisor has put aside is not looked at, since its disk
 * may not answer, unless it is the one that is dropped into.
 *
 * Soft: -1 with the reason: "5000 messages of uid 1000 wait, the limit is 5000
 * (user_message_limit)". */
#ifndef QUEUE_DROP_SHARE_H
#define QUEUE_DROP_SHARE_H

#include "config/conf.h"
#include "spool/spool.h"

struct share {
	const struct conf *conf;
	uid_t uid;
	bool counted; /* else this user is free */
	int file;     /* QUEUE_BASE/users/UID, or -1 */
	uint32_t slot, slots;
	uint64_t messages, bytes, inodes; /* that wait */
	uint64_t told;                    /* bytes, in our slot */
	char reason[160];
};

/* Before the message is read; sp is the queue that it is for. */
int
share_take(struct share *s, const struct conf *conf, const struct spool *sp);
/* The message that is being read is so large by now. */
int share_grows(struct share *s, uint64_t bytes);
/* The message is whole, about to be accepted: counts for the rate. */
int share_pay(struct share *s);
void share_done(struct share *s);

#endif
