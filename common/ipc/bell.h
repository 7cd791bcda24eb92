/* ipc/bell.h - the doorbell: message queue /queueN, 16-byte records.
 *
 * A bell is a hint: when the queue is full or missing, or the bell is wrong,
 * the scan finds the mail. No function but bell_wait() blocks.
 */
#ifndef IPC_BELL_H
#define IPC_BELL_H

#include "base/base.h"

#include <mqueue.h>
#include <sys/types.h>

/* The record of existing writers, in native byte order. */
struct bell {
	int32_t pid;    /* of the sender; informative only */
	uint32_t split; /* inode % split, by the split the sender read */
	uint64_t inode; /* of the new queue file */
};
_Static_assert(sizeof(struct bell) == 16, "16-byte doorbell");

#define MQ_MESSAGE_SIZE 64 /* small: RLIMIT_MSGQUEUE allows many */

struct mq_shape {
	uint32_t depth, size; /* records, bytes of one at most */
};

/* Create with O_EXCL, after removing the object of that name (the caller is the
 * one supervisor of this instance); owner and mode by descriptor, (uid_t)-1 and
 * (gid_t)-1 to leave them; open for reading and writing, non-blocking. Asks for
 * the shape, then for 10 records, then for fewer, down to 1, as limits of the
 * system demand; *ret_depth is the depth that was granted. A message queue
 * descriptor of Linux is a file descriptor: it is passed on and watched like
 * one. -ENOSPC: queues_max is used up; -EMFILE: RLIMIT_MSGQUEUE; -EPERM:
 * another user owns the name; -EEXIST: another process made it again three
 * times. The caller goes on without, and tries again in a minute. */
int mq_create(const char *name, const struct mq_shape *shape, uid_t uid,
    gid_t gid, mode_t mode, mqd_t *ret_mq, uint32_t *ret_depth);
/* Is the object of this name still the one behind mq? Also true when memory or
 * descriptors are short and the answer cannot be found. */
bool mq_same(const char *name, mqd_t mq);

/* Ring without blocking: 0, -EAGAIN full, -ENOENT, -EACCES … */
int bell_ring(const char *instance, uint32_t queue, const struct bell *bell);

/* The same for those who ring often: the message queue stays open, and is
 * looked at again when the last look is BELL_BELIEVED old, since the supervisor
 * may have made another one. */
#define BELL_BELIEVED (10 * USEC_PER_MSEC)
struct bell_rope {
	mqd_t mq; /* BELL_NO_MQ: none is open */
	usec_t looked_at;
};
#define BELL_NO_MQ ((mqd_t)-1)
int bell_pull(struct bell_rope *rope, const char *instance, uint32_t queue,
    const struct bell *bell, usec_t now);
/* After -EAGAIN of bell_pull(): wait until a ring has room, at most `limit`.
 * False: the time is over, or stop_fd (-1: none) is readable. Another sender
 * may be faster than the caller. */
bool bell_wait(const struct bell_rope *rope, usec_t limit, int stop_fd);
void bell_let_go(struct bell_rope *rope);
/* One record of this size, without blocking: 1, 0 when there is none, -EBADMSG
 * wrong length (taken, to be counted), -errno. */
int mq_take(mqd_t mq, void *ret_record, size_t size);
/* One record: 1, 0 when there is none, -EBADMSG wrong length (taken, to be
 * counted), -errno. The fields are not checked; the caller drops a record that
 * is out of range. */
int bell_take(mqd_t mq, struct bell *ret_bell);

#endif
