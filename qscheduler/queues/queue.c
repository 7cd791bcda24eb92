#include "qscheduler/queues/queues.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "log/log.h"

void
queue_start(struct queue *q)
{
	q->faulty = false;
	q->reason[0] = '\0';
	objects_open(q);
	group_start(&q->group);
}

void
queue_stop(struct queue *q)
{
	q->stopping = true;
	group_leave(&q->group);
}

void
queue_set_reason(struct queue *q, const char *reason)
{
	struct buf text = { 0 };
	const int r = text_shorten(&text, reason, sizeof(q->reason) - 1);

	snprintf(q->reason, sizeof(q->reason), "%s",
	    r < 0 ? "out of memory" : buf_str(&text));
	buf_done(&text);
}

void
queue_fault(struct queue *q, const char *reason)
{
	q->faulty = true;
	queue_set_reason(q, reason);
	log_error("ALERT: queue %" PRIu32 " is disabled: %s; it comes back by "
		  "itself when that is over",
	    q->number, reason);
	group_leave(&q->group);
}

/* The first check has failed: the reason was not told yet. Later ones fail for
 * the reason that is shown. */
static void
not_made(struct queue *q, const char *why)
{
	if (q->first_check == FIRST_DONE)
		return;
	q->first_check = FIRST_DONE;
	queue_fault(q, why);
}

static void
on_made(void *ctx, uint32_t number, const struct worker_result *result,
    struct buf *more UNUSED)
{
	struct queues *all = ctx;
	struct queue *q = queue_find(all, number);
	const bool first = q != NULL && q->first_check != FIRST_DONE;

	if (q == NULL || !q->faulty || q->stopping)
		return;
	q->unanswered = result->r == -ETIMEDOUT;
	if (q->unanswered)
		return;
	if (result->r < 0) {
		not_made(q, result->text);
		return;
	}
	q->first_check = FIRST_DONE;
	queue_note_disk(all, number);
	if (!first || all->started)
		log_info("queue %" PRIu32 " is enabled again", number);
	if (all->started)
		queue_start(q);
	else
		q->faulty = false;
}

const struct worker_task queue_making = { "make", disk_make, on_made };

void
queue_dump(const struct queue *q)
{
	log_info("dump: queue %" PRIu32 ": %s%s%s, generation %" PRIu32
		 ", shared memory %s, message queue %s",
	    q->number, queue_state_name(queue_state(q, clock_mono())),
	    queue_reason(q)[0] == '\0' ? "" : ": ", queue_reason(q),
	    q->group.generation, q->page_fd < 0 ? "missing" : "there",
	    q->bell < 0 ? "missing" : "there");
	group_dump(&q->group);
}
