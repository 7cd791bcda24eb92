#include "qscheduler/queues/queues.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

/* Sets the text of a field: one that is too long ends in "...". */
static void
reason_set(char *out, size_t size, const char *reason)
{
	struct buf text = { 0 };
	const int r = text_cut(&text, reason, size - 1);

	snprintf(out, size, "%s", r < 0 ? "out of memory" : buf_str(&text));
	buf_done(&text);
}

void
queue_show_reason(const struct queue *q, char out[SCHED_REASON_SIZE])
{
	reason_set(out, SCHED_REASON_SIZE, queue_reason(q));
}

/* QUEUE_BASE may be long, and the remark behind ';' is for the log. */
static void
reason_set_fault(struct queue *q, const char *reason)
{
	const char *base = q->all->instance->conf->queue_base;
	const size_t len = strlen(base);
	struct buf text = { 0 };

	if (strncmp(reason, base, len) == 0)
		reason += len + strspn(reason + len, "/: ");
	(void)buf_add(&text, reason, strcspn(reason, ";"));
	reason_set(q->reason, sizeof(q->reason), buf_str(&text));
	buf_done(&text);
}

void
queue_fault(struct queue *q, const char *reason)
{
	q->faulty = true;
	q->check_at = 0;
	reason_set_fault(q, reason);
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

const struct worker_task queue_making = { "make", disk_make, on_made },
			 queue_making_again = { "make", disk_make_again,
				 on_made };

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
