/* todo-proc/disk.h - what waits for a disk, done by threads (docs/QUEUE.md,
 * "todo-proc: what waits for the disk").
 *
 * Soft: -errno, as the error of a task. Ownership: a task is the pool's from
 * disk_do() until its end is called; one that the process ends before is freed
 * with its drop(). */
#ifndef TODO_PROC_DISK_H
#define TODO_PROC_DISK_H

#include "spool/sync_pool.h"

struct todo;

struct disk_task {
	struct sync_task task; /* first; task.work runs in a thread */
	/* In the loop, behind it; from disk_do() when no thread does it. */
	void (*ended)(struct todo *t, struct disk_task *task);
};

/* Fills what every task has. */
void disk_task_init(struct disk_task *task, int (*work)(struct sync_task *task),
    void (*drop)(struct sync_task *task),
    void (*ended)(struct todo *t, struct disk_task *task));

#endif
