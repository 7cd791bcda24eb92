/* todo-proc/watch.h - inotify on maildrop/: a drop is picked up at once, not
 * at the next scan. Without it (no instances left) the scan does all. */
#ifndef TODO_PROC_WATCH_H
#define TODO_PROC_WATCH_H

#include "todo-proc/todo.h"

void watch_init(struct todo *t);
void watch_done(struct todo *t);

#endif
