/* todo-proc/pickup_task.h - a drop of a local user goes from maildrop/ to
 * incoming/ (docs/SPOOL.md): one rename, under the inode that it has, so that
 * its id is the one that the user was told. Only queue-drop can make a file
 * there. The file is checked before the move, and examined in incoming/ as any
 * other. No record is kept: before the rename the drop is in maildrop/, after
 * it in incoming/. A drop that cannot be moved stops no other.
 *
 * Done by a thread. Never logs. */
#ifndef TODO_PROC_PICKUP_TASK_H
#define TODO_PROC_PICKUP_TASK_H

#include "spool/spool.h"

struct picked {
	/* 0: it is in incoming/; -EAGAIN: its writer is not done; -EBADMSG,
	 * -EPERM: damaged, or no drop; -ENOENT; other -errno: it waits. */
	int error;
	const char *why; /* the drop is damaged */
	int moved;       /* the drop, to corrupt/: 0, -errno */
	/* A foreign file had its name in incoming/. */
	bool met_foreign;
	int foreign_moved; /* to corrupt/ */
	struct queue_id id;
	uid_t uid;
	uint64_t size;
	usec_t mtime_wall;
};

void pickup_drop(const struct spool *sp, const char *name, struct picked *ret);

#endif
