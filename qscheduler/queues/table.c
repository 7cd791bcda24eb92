#include "qscheduler/queues/queues.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/io.h"
#include "ipc/bell.h"
#include "ipc/names.h"

struct queue *
queue_new(struct queues *all, uint32_t number, enum queue_state want)
{
	struct queue *q = calloc(1, sizeof(*q));

	if (q == NULL)
		return NULL;
	q->all = all;
	q->number = number;
	q->want = want;
	q->page_fd = -1;
	q->bell = -1;
	if (group_init(&q->group, all->children, number, all->child_events, q) <
	    0)
		queue_free(&q);
	return q;
}

void
queue_free(struct queue **q)
{
	group_done(&(*q)->group);
	objects_close(*q);
	free(*q);
	*q = NULL;
}

struct queue *
queue_find(const struct queues *all, uint64_t number)
{
	uint32_t i;

	for (i = 0; i < all->nqueues; i++)
		if (all->queues[i]->number == number)
			return all->queues[i];
	return NULL;
}

int
queue_insert(struct queue *q)
{
	struct queues *all = q->all;
	uint32_t i;

	if (all->nqueues == PAGE_QUEUES_MAX)
		return -ENOSPC;
	for (i = all->nqueues; i > 0 && all->queues[i - 1]->number > q->number;
	     i--)
		all->queues[i] = all->queues[i - 1];
	all->queues[i] = q;
	all->nqueues++;
	override_came(q);
	return 0;
}

void
queue_remove(struct queue *q)
{
	struct queues *all = q->all;
	uint32_t i;

	for (i = 0; all->queues[i] != q; i++)
		;
	for (all->nqueues--; i < all->nqueues; i++)
		all->queues[i] = all->queues[i + 1];
	queue_free(&q);
}

void
queue_note_disk(struct queues *all, uint32_t number)
{
	all->nqueues_disk += !all->on_disk[number];
	all->on_disk[number] = true;
}

static bool
is_there(const char *name)
{
	int fd = shm_open(name, O_RDONLY | O_NONBLOCK, 0);
	mqd_t mq;

	if (fd >= 0 || errno != ENOENT) {
		io_close(&fd);
		return true;
	}
	mq = mq_open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (mq < 0)
		return errno != ENOENT;
	mq_close(mq);
	return true;
}

void
queue_remove_stale(struct queues *all, uint32_t number)
{
	char name[IPC_NAME_MAX];
	struct queue *q;

	ipc_name_queue(all->instance->name, number, name);
	if (!is_there(name))
		return;
	q = queue_new(all, number, QUEUE_STATE_CLOSING);
	if (q == NULL)
		return;
	/* Objects of ours replace them, by the rules, and go with the queue.
	 * An object of another user is no loss to a queue that does not run. */
	q->complained = true;
	objects_open(q);
	queue_free(&q);
}
