#include "qctl/act/spread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "ipc/page_text.h"

#define NAMED(t) (((t)->options.select.keys & 1u << SELECT_QUEUE) != 0)

/* ---- how many from where to where ---- */

/* The queue that has most and can give; NULL: none. */
static struct spread_queue *
fullest(struct spread_plan *plan)
{
	struct spread_queue *q, *best = NULL;

	for (q = plan->queues; q < plan->queues + plan->nqueues; q++)
		if (q->gives && q->waiting > 0 &&
		    (best == NULL || q->backlog > best->backlog))
			best = q;
	return best;
}

/* The queue that has least and can take a message of `from`; NULL: none that
 * would still have less than that one. */
static struct spread_queue *
emptiest(struct spread_plan *plan, const struct spread_queue *from)
{
	struct spread_queue *q, *best = NULL;

	for (q = plan->queues; q < plan->queues + plan->nqueues; q++)
		if (q != from && q->takes && q->room > 0 &&
		    q->volume == from->volume &&
		    (best == NULL || q->backlog < best->backlog))
			best = q;
	return best == NULL || from->backlog <= best->backlog ||
		from->backlog - best->backlog < 2
	    ? NULL
	    : best;
}

void
spread_level(struct spread_plan *plan)
{
	struct spread_queue *from, *to;

	memset(plan->moves, 0, sizeof(plan->moves));
	while ((from = fullest(plan)) != NULL) {
		to = emptiest(plan, from);
		if (to == NULL) {
			from->waiting = 0;
			continue;
		}
		plan->moves[from - plan->queues][to - plan->queues]++;
		from->waiting--;
		from->backlog -= from->backlog == UINT64_MAX ? 0 : 1;
		to->backlog++;
		to->room--;
	}
}

/* ---- the figures that are published ---- */

static uint64_t
add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	/* UINT64_MAX is no number of messages. */
	return __builtin_add_overflow(a, b, &sum) || sum == UINT64_MAX
	    ? UINT64_MAX - 1
	    : sum;
}

static uint32_t
load_of(const struct sched_row *row, const struct queue_page *page)
{
	return (row->flags & SCHED_ROW_MANUAL) != 0 ? row->load_pct
						    : queue_page_load(page);
}

uint64_t
spread_backlog(const struct queue_page *page)
{
	return add(add(add(page->active, page->incoming), page->maildrop),
	    add(page->deferred, page->untried));
}

static void
judge_open(const struct task *t, const struct sched_page *sched,
    const struct sched_row *row, struct spread_queue *q)
{
	struct queue_page page;
	uint64_t active;
	bool full;

	if (queue_page_read(t->instance, row->queue, &page) < 0 ||
	    page.queue != row->queue || page_stale(&page.head, clock_mono()))
		return;
	active = add(page.active, page.incoming);
	full = load_of(row, &page) >= sched->threshold_pct ||
	    page.active >= t->active_limit;
	q->backlog = spread_backlog(&page);
	q->gives = full;
	q->takes = !full && page.disabled == 0 && page.read_only == 0 &&
	    (row->flags &
		(SCHED_ROW_OVERRIDE | SCHED_ROW_SILENT | SCHED_ROW_LATE |
		    SCHED_ROW_NO_MAIL)) == 0 &&
	    active < t->active_limit;
	q->room = q->takes ? t->active_limit - active : 0;
}

/* The mail of a queue that closes goes by itself. One that is out of use gives
 * all it has, when it was named: a message that ends the processes of its queue
 * would end those of the next one. */
static void
judge(const struct task *t, const struct sched_page *sched,
    const struct sched_row *row, struct spread_queue *q)
{
	char path[4096];
	struct stat st;

	*q = (struct spread_queue){ .queue = row->queue };
	snprintf(path, sizeof(path), "%s/queue%" PRIu32, t->base, row->queue);
	if (stat(path, &st) < 0)
		return;
	q->volume = st.st_dev;
	if (row->state == QUEUE_STATE_OPEN)
		judge_open(t, sched, row, q);
	else if (row->state != QUEUE_STATE_CLOSING && NAMED(t)) {
		q->gives = true;
		q->backlog = UINT64_MAX;
	}
}

static int
read_queues(const struct task *t, struct spread_plan *plan)
{
	struct sched_page *sched = malloc(sizeof(*sched));
	size_t i;
	int r = sched == NULL ? -ENOMEM : sched_page_read(t->instance, sched);

	if (r == 0 && page_stale(&sched->head, clock_mono()))
		r = -ENOENT;
	for (i = 0; r == 0 && i < PAGE_QUEUES_MAX; i++)
		if (sched->rows[i].state != QUEUE_STATE_NONE)
			judge(t, sched, &sched->rows[i],
			    &plan->queues[plan->nqueues++]);
	free(sched);
	return r;
}

/* ---- messages ---- */

static struct spread_queue *
find(struct spread_plan *plan, uint32_t queue)
{
	struct spread_queue *q;

	for (q = plan->queues; q < plan->queues + plan->nqueues; q++)
		if (q->queue == queue)
			return q;
	return NULL;
}

/* Messages for one queue are one after the other, so that queue-send opens it
 * once. 0: the message stays. */
static uint32_t
take_place(struct spread_plan *plan, const struct target *target)
{
	const struct spread_queue *from = find(plan, target->queue);
	uint32_t *moves;
	size_t i;

	if (from == NULL)
		return 0;
	moves = plan->moves[from - plan->queues];
	for (i = 0; i < plan->nqueues; i++)
		if (moves[i] > 0) {
			moves[i]--;
			return plan->queues[i].queue;
		}
	return 0;
}

static void
tell_moves(const struct task *t, const struct spread_plan *plan)
{
	size_t i, k;

	for (i = 0; i < plan->nqueues; i++)
		for (k = 0; k < plan->nqueues; k++)
			if (plan->moves[i][k] > 0)
				task_tell(&t->options,
				    "queue %" PRIu32 " to queue %" PRIu32
				    ": %" PRIu32,
				    plan->queues[i].queue,
				    plan->queues[k].queue, plan->moves[i][k]);
}

static void
tell_stay(const struct task *t, size_t count, const char *why)
{
	if (count > 0)
		task_tell(&t->options, "%zu message%s stay%s: %s", count,
		    count == 1 ? "" : "s", count == 1 ? "s" : "", why);
}

/* Takes messages out that stay. */
static void
assign(struct task *t, struct spread_plan *plan)
{
	size_t i, n = 0, not_full = 0, no_room = 0;

	for (i = 0; i < t->ntargets; i++) {
		const struct spread_queue *q = find(plan, t->targets[i].queue);

		t->targets[i].to = take_place(plan, &t->targets[i]);
		if (t->targets[i].to != 0)
			t->targets[n++] = t->targets[i];
		else if (q == NULL || !q->gives)
			not_full++;
		else
			no_room++;
	}
	t->ntargets = n;
	tell_stay(t, not_full, "the queue is not full");
	tell_stay(t, no_room, "no open queue has room and less mail");
}

int
spread_targets(struct task *t)
{
	struct spread_plan *plan = calloc(1, sizeof(*plan));
	char absent[PAGE_ABSENT_SIZE];
	struct spread_queue *q;
	size_t i;
	int r = plan == NULL ? -ENOMEM : read_queues(t, plan);

	for (i = 0; r == 0 && i < t->ntargets; i++)
		if ((q = find(plan, t->targets[i].queue)) != NULL)
			q->waiting++;
	if (r == 0) {
		spread_level(plan);
		tell_moves(t, plan);
		assign(t, plan);
	} else
		task_tell(&t->options, "no queue is known to have room: %s",
		    r == -ENOENT ? page_absent_text(absent) : strerror(-r));
	free(plan);
	return r;
}
