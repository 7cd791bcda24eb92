/* todo-proc/pickup.h - a drop of a local user goes from maildrop/ to incoming/
 * (docs/SPOOL.md): one rename, under the inode that it has, so that its id is
 * the one that the user was told. Only queue-drop can make a file there. The
 * file is looked at before it is moved, and judged in incoming/ as any other.
 *
 * Nothing is noted anywhere: before the rename the drop is in maildrop/, after
 * it in incoming/. One that cannot be moved stops no other. */
#ifndef TODO_PROC_PICKUP_H
#define TODO_PROC_PICKUP_H

#include "todo-proc/todo.h"

/* One drop. 0: it is in incoming/; -EAGAIN: its writer is not done; -EBADMSG:
 * moved to corrupt/; -ENOENT; other -errno: it waits. */
int pickup_drop(struct todo *t, const char *name);

#endif
