/* todo-proc/pickup.h - a drop of a local user is copied into incoming/
 * (docs/SPOOL.md). Nothing in maildrop/ is trusted: its owner may change it
 * while we read. What is copied is judged as any message is, and the drop must
 * be the same, whole and right before and after the copy.
 *
 * The note `lock/pickup` says which copy is being made of which drop, so that
 * a crash between the link of the copy and the unlink of the drop makes no
 * second one. */
#ifndef TODO_PROC_PICKUP_H
#define TODO_PROC_PICKUP_H

#include "todo-proc/todo.h"

/* Finish what the note says; before anything is handed over. */
void pickup_recover(struct todo *t);
/* One drop. 0: it is in incoming/; -EAGAIN: its writer is not done; -EBADMSG:
 * moved to corrupt/; -ENOENT; other -errno: it waits. */
int pickup_drop(struct todo *t, uint64_t inode);

#endif
