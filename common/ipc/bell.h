/* ipc/bell.h - the doorbell: message queue /queueN, 16-byte records.
 *
 * A bell is a hint and nothing more: full, missing or lying, mail is found by
 * the scan. Nothing here ever blocks.
 */
#ifndef IPC_BELL_H
#define IPC_BELL_H

#include "base/base.h"

#include <mqueue.h>
#include <sys/types.h>

/* As existing writers send it: native byte order. */
struct bell {
	int32_t pid;    /* of the sender; informative only */
	uint32_t split; /* inode % split, as the sender saw it */
	uint64_t inode; /* of the new queue file */
};
_Static_assert(sizeof(struct bell) == 16, "16-byte doorbell");

#define MQ_MESSAGE_SIZE 64 /* small: RLIMIT_MSGQUEUE fits many (I3) */

struct mq_shape {
	uint32_t depth, size; /* records, bytes of one at most */
};

/* Create, after removing what is there (the caller is the one supervisor of
 * this instance), O_EXCL, owner and mode by descriptor, (uid_t)-1 and
 * (gid_t)-1 to leave them; open for reading and writing, non-blocking. Asks
 * for the shape, falls back to 10 records, to what the system allows, to 1 (I3,
 * I4); *ret_depth: what was got. A message queue descriptor of Linux is a file
 * descriptor: it is passed on and watched like one. -ENOSPC: queues_max is used
 * up (I2); -EMFILE: RLIMIT_MSGQUEUE; -EPERM: the name is somebody else's;
 * -EEXIST: it came back three times (I14). Then do without, and try again in a
 * minute. */
int mq_create(const char *name, const struct mq_shape *shape, uid_t uid,
    gid_t gid, mode_t mode, mqd_t *ret_mq, uint32_t *ret_depth);
/* Is the object under this name still the one behind mq? (I8) True also when
 * that cannot be known for want of memory or descriptors. */
bool mq_same(const char *name, mqd_t mq);

/* Ring without blocking: 0, -EAGAIN full, -ENOENT, -EACCES … */
int bell_ring(const char *instance, uint32_t queue, const struct bell *bell);
/* One record: 1, 0 when there is none, -EBADMSG wrong length (taken, to be
 * counted), -errno. What it says is not checked; the caller drops what is out
 * of range (I7). */
int bell_take(mqd_t mq, struct bell *ret_bell);

#endif
