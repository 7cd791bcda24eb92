/* todo-proc/bells.h - doorbells: hints, never trusted.
 *
 * A bell names an inode; only that is used, and only to look whether such a
 * file lies in incoming/. Bad ones (wrong length, a number out of range) and
 * stale ones (no such file, or known already) are counted and dropped (I6,
 * I7). A message queue that was full when we came may have lost rings: that
 * asks for a scan (I1). */
#ifndef TODO_PROC_BELLS_H
#define TODO_PROC_BELLS_H

#include "todo-proc/todo.h"

/* The message queue of the supervisor; it is ours from here on. -errno. */
int bells_linked(void *todo, int fd);
void bells_done(struct todo *t);
/* Take what has been rung, so that the message queue does not fill up. */
void bells_take(struct todo *t);
/* Could somebody who rings have sent this? */
bool bell_is_right(const struct bell *bell);
/* One bell that was taken. */
void bells_rung(struct todo *t, const struct bell *bell);

#endif
