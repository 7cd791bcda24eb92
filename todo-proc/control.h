/* todo-proc/control.h - start, reload and stop of todo-proc; its timer. */
#ifndef TODO_PROC_CONTROL_H
#define TODO_PROC_CONTROL_H

#include "todo-proc/todo.h"

extern const struct daemon_ops control_ops;

/* The state on a spool that is open (sp, conf, base are set). -errno. */
int todo_init(struct todo *t);
void todo_done(struct todo *t);

#endif
