/* spool/waiting.h - the waiting mail of each user in a queue: gate/waiting,
 * written by todo-proc, read by queue-drop. Lines "UID MESSAGES BYTES", the
 * heaviest users first, behind the line WAITING_HEAD; at most WAITING_USERS.
 * Not synced: after a crash todo-proc writes it again.
 *
 * Soft: -errno; -EBADMSG for a foreign file. */
#ifndef SPOOL_WAITING_H
#define SPOOL_WAITING_H

#include "spool/spool.h"

#define WAITING_HEAD  "waiting 1\n"
#define WAITING_USERS 256

struct waiting_user {
	uid_t uid;
	uint64_t messages, bytes;
};

/* Sorts the rows. Replaces the file whole or not at all. */
int
waiting_write(const struct spool *sp, struct waiting_user *rows, size_t count);
/* The row of this user: zeros if there is no file or no such row. */
int waiting_read(const struct spool *sp, uid_t uid, struct waiting_user *ret);

#endif
