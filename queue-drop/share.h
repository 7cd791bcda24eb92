/* queue-drop/share.h - what one user may have waiting, and how fast more may
 * come: messages, bytes, inodes, messages a minute, doors at once.
 *
 * Counted are the drops of the user in every queue's maildrop/, and what the
 * queues say of the rest (QUEUE_BASE/queueN/waiting). QUEUE_BASE/users/UID is
 * the lock of the user's doors and holds the rate. Root and trusted_users are
 * not counted.
 *
 * Soft: -1 with share_reason(), "5000 messages of uid 1000 wait
 * (user_message_limit)". */
#ifndef QUEUE_DROP_SHARE_H
#define QUEUE_DROP_SHARE_H

#include "config/conf.h"
#include "spool/queue_file.h"

struct share {
	const struct conf *conf;
	uid_t uid;
	bool free; /* nothing is counted */
	char reason[200];
};

int share_take(
    struct share *s, const struct conf *conf, const char *base, uid_t uid);
/* The message that is being read is so large by now. */
int share_grows(struct share *s, uint64_t bytes);
/* At the end, before the message is accepted. */
int share_pay(struct share *s, const struct queue_file *file);
const char *share_reason(const struct share *s);
void share_done(struct share *s);

#endif
