/* Files of messages moved by the pool, with their due times, while their owner
 * asks for the next move: under ThreadSanitizer (make check-tsan). */
#include "queue-send/message/move_task.h"
#include "tests/tsan/drive/drive.h"

#include <stdlib.h>

#include "base/clock.h"

static struct spool sp;

/* From incoming/ to active/, from there to deferred/, and back to active/. */
static struct sync_task *
next(const struct queue_id *id, const struct sync_task *before)
{
	const struct move_task *last = (const void *)before;
	struct move_task *t = calloc(1, sizeof(*t));

	if (t == NULL)
		abort();
	t->task = (struct sync_task){ .work = move_task_work,
		.drop = move_task_drop,
		.fds = { -1, -1 },
		.inode = id->inode };
	t->sp = &sp;
	t->id = *id;
	t->fd = -1;
	t->from = last == NULL ? SPOOL_INCOMING : last->to;
	t->to = t->from == SPOOL_ACTIVE ? SPOOL_DEFERRED : SPOOL_ACTIVE;
	t->open = t->look = t->to == SPOOL_ACTIVE;
	if (t->to == SPOOL_DEFERRED) {
		t->due = MOVE_DUE_NEEDED;
		t->due_wall = clock_wall();
	}
	return &t->task;
}

static void
ended(const struct sync_task *task)
{
	const struct move_task *t = (const void *)task;

	drive_must(t->due_error, "due time");
}

int
main(void)
{
	return drive_run(&(struct drive){
	    .name = "moves",
	    .sp = &sp,
	    .share = 4,
	    .next = next,
	    .ended = ended,
	});
}
