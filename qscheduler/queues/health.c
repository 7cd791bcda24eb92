#include "qscheduler/queues/queues.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "log/log.h"

/* The disk of a queue that runs is asked so often, and so soon when a process
 * of the queue sleeps in the kernel. */
#define CHECK_EVERY   (20 * USEC_PER_SEC)
#define SUSPECT_AFTER (2 * USEC_PER_SEC)
/* The time between two tests whether the fault of a queue is over. An operator
 * who has mounted or repaired a file system waits for the queue. With more than
 * 50 queues the time grows, so that FAULTY_LOOKS workers a second suffice. */
#define CHECK_FAULTY  (5 * USEC_PER_SEC)
#define FAULTY_LOOKS  10 /* a second */

static void
on_check(void *all, uint32_t number, const struct worker_result *result,
    struct buf *more)
{
	struct queue *q = queue_find(all, number);
	struct base_room room;
	const int r = result->r;

	if (r == 1)
		log_warning("queue %" PRIu32 ": it is open, and was marked "
			    "closed on disk: the mark is taken away",
		    number);
	if (q == NULL || q->stopping)
		return;
	q->unanswered = r == -ETIMEDOUT;
	if (more->len == sizeof(room)) {
		memcpy(&room, more->data, sizeof(room));
		queue_note_room(q, &room);
	}
	if (q->faulty ||
	    (r != -ENOENT && r != -ENOTDIR && r != -ELOOP && r != -EMEDIUMTYPE))
		return;
	queue_fault(q, result->text);
}

static const struct worker_task check = { "check", disk_check, on_check };

/* When too many workers run, the queue waits for a tick in which there is room;
 * a worker that is still busy with the last check says nothing new. */
static void
check_directory(struct queue *q)
{
	int r = 0;

	if (q->stopping) {
		q->unchecked = false;
		return;
	}
	if (q->first_check != FIRST_DONE) {
		inventory_check(q);
		return;
	}
	r = worker_start(q->all->workers,
	    q->faulty ? &queue_making_again : &check, q->number, q->all);
	q->unchecked = r == -EAGAIN;
}

void
queue_suspect(struct queue *q, usec_t now)
{
	if (q->check_at > now + SUSPECT_AFTER)
		q->check_at = now + SUSPECT_AFTER;
}

static usec_t
faulty_every(const struct queues *all)
{
	const usec_t every = all->nqueues / FAULTY_LOOKS * USEC_PER_SEC;

	return every > CHECK_FAULTY ? every : CHECK_FAULTY;
}

/* Ask the disk whether it answers, or whether the fault is over. */
static void
check_disk(struct queue *q, usec_t now)
{
	const usec_t every = q->faulty ? faulty_every(q->all) : CHECK_EVERY;

	if (now < q->check_at)
		return;
	/* Queues take turns over the ticks. */
	if (q->check_at == 0) {
		q->check_at =
		    now + (q->number % (every / EVERY_TICK)) * EVERY_TICK;
		return;
	}
	q->check_at = now + every;
	check_directory(q);
}

void
queue_health(struct queue *q)
{
	if (q->stopping)
		return;
	if (!q->faulty)
		objects_health(q);
	check_directory(q);
}

void
queue_tick(struct queue *q, usec_t now)
{
	enum queue_state state;

	group_tick(&q->group);
	objects_tick(q);
	quarantine_tick(q, now);
	retirement_tick(q, now);
	check_disk(q, now);
	if (q->unchecked)
		check_directory(q);
	state = queue_state(q, now);
	if (state != q->shown) {
		q->shown = state;
		q->changes++;
	}
}
