/* Acts of operators done by the pool, hold and release of each message in turn,
 * while their owner asks for the next ones: under ThreadSanitizer (make
 * check-tsan). */
#include "queue-send/disk/act_task.h"
#include "queue-send/disk/other_queue.h"
#include "tests/tsan/drive/drive.h"

#include <stdlib.h>

#include "base/clock.h"

static struct send all; /* its spool */

/* No act of these goes to another queue. */
void
other_queue_free(struct other_queue **other)
{
	if (*other != NULL)
		abort();
}

const struct spool *
other_queue_spool(const struct other_queue *other UNUSED)
{
	abort();
}

/* The drive has a loop of its own. */
void
act_ended(void *send UNUSED, struct sync_task *task UNUSED)
{
	abort();
}

/* To hold/ with a note, from there to deferred/, and back. */
static struct sync_task *
next(const struct queue_id *id, const struct sync_task *before)
{
	const struct act_task *last = (const void *)before;
	const struct hold_note note = { .uid = 7, .reason = "why" };
	const bool release = last != NULL && last->what == ACT_HOLD;
	const struct act_order order = {
		.what = release ? ACT_RELEASE : ACT_HOLD,
		.id = id,
		.note = release ? NULL : &note,
	};
	struct act_task *t;

	all.now_wall = clock_wall();
	t = act_task_new(&all, &order, act_task_file);
	if (t == NULL)
		abort();
	t->passes_rules = release;
	return &t->task;
}

static void
ended(const struct sync_task *task UNUSED)
{
}

int
main(void)
{
	return drive_run(&(struct drive){
	    .name = "acts", .sp = &all.sp, .next = next, .ended = ended });
}
