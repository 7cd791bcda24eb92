#include "todo-proc/disk.h"

#include <errno.h>
#include <event2/event.h>

#include "todo-proc/todo.h"

#define DISK_THREADS 4
#define QUICK        16 /* for a thread, of tasks that wait for no disk */

void
disk_task_init(struct disk_task *task, int (*work)(struct sync_task *task),
    void (*drop)(struct sync_task *task),
    void (*ended)(struct todo *t, struct disk_task *task))
{
	int i;

	*task = (struct disk_task){ .ended = ended };
	task->task.work = work;
	task->task.drop = drop;
	for (i = 0; i < SYNC_JOB_FDS; i++)
		task->task.fds[i] = -1;
}

static void
take_ended(struct todo *t)
{
	struct disk_task *task;

	while ((task = (struct disk_task *)(void *)sync_pool_take(
		    t->disk.pool)) != NULL) {
		t->disk.away--;
		task->ended(t, task);
		todo_kick(t);
	}
}

static void
on_done(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct todo *t = arg;

	todo_tick(t);
	take_ended(t);
}

usec_t
disk_work(struct todo *t)
{
	take_ended(t);
	return sync_pool_press(t->disk.pool, t->now);
}

void
disk_do(struct todo *t, struct disk_task *task)
{
	if (t->disk.threads > 0 &&
	    sync_pool_put(t->disk.pool, &task->task) == 0) {
		t->disk.away++;
		return;
	}
	task->task.error = task->task.work(&task->task);
	task->ended(t, task);
}

unsigned
disk_threads(const struct spool *sp)
{
	return spool_is_in_memory(sp) ? 0 : DISK_THREADS;
}

int
disk_init(struct todo *t)
{
	struct disk *d = &t->disk;

	d->pool = sync_pool_new(t->sp.sys, d->threads);
	if (d->pool == NULL)
		return -ENOMEM;
	sync_pool_set_share(d->pool, 1, QUICK);
	d->done = event_new(
	    t->base, sync_pool_fd(d->pool), EV_READ | EV_PERSIST, on_done, t);
	return d->done == NULL || event_add(d->done, NULL) < 0 ? -ENOMEM : 0;
}

void
disk_done(struct todo *t)
{
	if (t->disk.done != NULL)
		event_free(t->disk.done);
	t->disk.done = NULL;
	t->hung |= !sync_pool_free(&t->disk.pool);
}
