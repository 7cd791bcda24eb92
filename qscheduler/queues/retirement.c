#include "qscheduler/queues/queues.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "ipc/msg.h"
#include "log/log.h"

/* Between two scans of the directories of a queue: when it says that it is
 * empty, and when it says something else or nothing. */
#define SCAN_EMPTY   (1 * USEC_PER_SEC)
#define SCAN_BLIND   (3 * USEC_PER_SEC)
/* A queue that cannot be sealed, or be run again, waits: more tries, or more
 * lines of them in the log, do not help a full or broken disk. */
#define SEAL_AGAIN   (10 * USEC_PER_SEC)
#define UNSEAL_AGAIN (10 * USEC_PER_SEC)
#define SAY_EVERY    (60 * USEC_PER_SEC)
/* Queues that get files are told at most so often. */
#define RESCAN_EVERY (3 * USEC_PER_SEC)
/* Directories of queues that do not run are scanned so often. */
#define SWEEP_EVERY  (60 * USEC_PER_SEC)

static const char *const steps[] = {
	[RETIRE_NO] = "open",
	[RETIRE_DRAINING] = "draining",
	[RETIRE_EVACUATING] = "evacuating",
	[RETIRE_STOPPING] = "empty, stopping",
	[RETIRE_SEALING] = "sealed",
	[RETIRE_UNSEALING] = "with mail, starting again",
};

static void
enter(struct queue *q, enum retirement_step step)
{
	log_debug("queue %" PRIu32 ": %s", q->number, steps[step]);
	q->retirement.step = step;
}

/* Injectors see the new state from this moment on. */
static void
show(struct queue *q, enum queue_state want)
{
	q->want = q->shown = want;
	q->changes++;
}

void
retirement_begin(struct queue *q, const char *why, usec_t now)
{
	q->retirement =
	    (struct retirement){ .since = now, .scanned_at = now - SCAN_BLIND };
	snprintf(q->retirement.why, sizeof(q->retirement.why), "%s", why);
	show(q, QUEUE_STATE_CLOSING);
	enter(q, RETIRE_DRAINING);
}

/* ---- evacuation ---- */

static uint32_t
list_open(const struct queues *all, usec_t now, uint32_t out[PAGE_QUEUES_MAX])
{
	uint32_t i, n = 0;

	for (i = 0; i < all->nqueues; i++)
		if (queue_is_usable(all->queues[i], now))
			out[n++] = all->queues[i]->number;
	return n;
}

static int
send_list(struct queue *q, const uint32_t *queues, uint32_t n)
{
	uint8_t bytes[4 * PAGE_QUEUES_MAX];
	const struct msg msg = { .type = MSG_HAND_OVER,
		.u.HAND_OVER = { .queues = { (const char *)bytes, 4 * n } } };
	uint32_t i, j;

	for (i = 0; i < n; i++)
		for (j = 0; j < 4; j++)
			bytes[4 * i + j] = (uint8_t)(queues[i] >> (8 * j));
	return child_send(&q->group.child[ROLE_QUEUE_SEND], &msg, -1);
}

/* A new queue-send is told, and so is a list that differs from the last one. */
static void
tell_list(struct queue *q, const uint32_t *queues, uint32_t n)
{
	struct retirement *t = &q->retirement;

	if (t->told_generation != q->group.generation)
		t->told = false;
	if (!queue_hears(q) ||
	    (t->told && t->ntargets == n &&
		memcmp(t->targets, queues, n * sizeof(*queues)) == 0))
		return;
	if (send_list(q, queues, n) < 0)
		return;
	if (!t->told) {
		/* The queue-send before it may have died before it told what it
		 * moved. */
		q->all->rescan |= t->told_generation != 0;
		t->moved_before += t->moved;
		t->moved = 0;
	}
	t->told = true;
	t->empty = false;
	t->told_generation = q->group.generation;
	memcpy(t->targets, queues, n * sizeof(*queues));
	t->ntargets = n;
}

void
retirement_on_handed(struct queue *q, uint64_t moved, uint64_t left)
{
	/* An operator spreads the mail of a queue that is not asked for it. */
	if (q->retirement.step != RETIRE_EVACUATING || !q->retirement.told) {
		q->all->rescan |= moved > 0;
		return;
	}
	q->all->rescan |= moved != q->retirement.moved;
	q->retirement.moved = moved;
	q->retirement.empty = left == 0;
}

/* ---- is it empty? ---- */

static void
on_mail(void *ctx, uint32_t number, const struct worker_result *result,
    struct buf *more)
{
	struct queues *all = ctx;
	struct queue *q = queue_find(all, number);

	if (q == NULL || all->stopping || q->faulty ||
	    (q->retirement.step != RETIRE_DRAINING &&
		q->retirement.step != RETIRE_EVACUATING) ||
	    result->r < 0 || disk_facts_of(more).mail)
		return;
	/* The last files that moved may not have been told. */
	all->rescan |= q->retirement.step == RETIRE_EVACUATING;
	enter(q, RETIRE_STOPPING);
	queue_stop(q);
}

static const struct worker_task scan = { "scan for mail", disk_mail, on_mail };

/* The page says when a scan is worth it, the scan whether mail is there. */
static void
scan_for_mail(struct queue *q, usec_t now)
{
	struct retirement *t = &q->retirement;
	usec_t pause = SCAN_BLIND;

	if (t->empty || (q->seen.fresh && q->seen.backlog == 0))
		pause = SCAN_EMPTY;
	if (now - t->scanned_at < pause || now < t->stop_at)
		return;
	t->scanned_at = now;
	(void)worker_start(q->all->workers, &scan, q->number, q->all);
}

static void
tick_draining(struct queue *q, usec_t now)
{
	if (now >= retirement_evacuates_at(q)) {
		log_info("queue %" PRIu32 ": what is left of its mail is "
			 "handed to the others",
		    q->number);
		enter(q, RETIRE_EVACUATING);
	}
	scan_for_mail(q, now);
}

static void
tick_evacuating(struct queue *q, usec_t now)
{
	uint32_t queues[PAGE_QUEUES_MAX];
	const uint32_t n = list_open(q->all, now, queues);

	tell_list(q, queues, n);
	scan_for_mail(q, now);
}

/* ---- the seal ---- */

static void
on_unsealed(void *ctx, uint32_t number, const struct worker_result *result,
    struct buf *more UNUSED)
{
	struct queues *all = ctx;
	struct queue *q = queue_find(all, number);

	if (q == NULL || q->retirement.step != RETIRE_UNSEALING ||
	    all->stopping)
		return;
	if (result->r < 0) {
		const usec_t now = clock_mono();

		q->retirement.unseal_at = now + UNSEAL_AGAIN;
		if (log_due(now, SAY_EVERY, &q->retirement.said))
			log_error("ALERT: queue %" PRIu32 " cannot be run "
				  "again: %s: tried again every %d s",
			    number, result->text,
			    (int)(UNSEAL_AGAIN / USEC_PER_SEC));
		return;
	}
	q->stopping = false;
	q->retirement.told = false;
	enter(q, RETIRE_DRAINING);
	queue_start(q);
}

static const struct worker_task unsealing = { "make", disk_make, on_unsealed };

static void
unseal(struct queue *q, usec_t now)
{
	if (now < q->retirement.unseal_at)
		return;
	q->retirement.unseal_at = now + SCAN_EMPTY;
	(void)worker_start(q->all->workers, &unsealing, q->number, q->all);
}

static void
tell_gone(const struct queue *q)
{
	const uint64_t moved = q->retirement.moved_before + q->retirement.moved;

	if (moved > 0)
		log_info("queue %" PRIu32 " is retired: %" PRIu64
			 " messages were handed to the others",
		    q->number, moved);
	else
		log_info("queue %" PRIu32 " is retired", q->number);
}

static void
not_sealed(struct queue *q, const struct worker_result *result, usec_t now)
{
	if (result->r == 0) {
		log_info("queue %" PRIu32 " got mail while it was sealed: it "
			 "is run again",
		    q->number);
	} else {
		log_error("queue %" PRIu32 " could not be sealed: %s: it is "
			  "run again",
		    q->number, result->text);
		q->retirement.stop_at = now + SEAL_AGAIN;
	}
	enter(q, RETIRE_UNSEALING);
	unseal(q, now);
}

static void
on_sealed(void *ctx, uint32_t number, const struct worker_result *result,
    struct buf *more UNUSED)
{
	struct queues *all = ctx;
	struct queue *q = queue_find(all, number);
	const usec_t now = clock_mono();

	if (q == NULL || q->retirement.step != RETIRE_SEALING || all->stopping)
		return;
	if (result->r == 1) {
		tell_gone(q);
		override_gone(q);
		queue_remove(q);
		all->events->show(all->ctx, now);
		return;
	}
	/* -EAGAIN: a process of an earlier supervisor, which is about to end,
	 * has a lock. */
	if (result->r != -EAGAIN)
		not_sealed(q, result, now);
}

static const struct worker_task sealing = { "seal", disk_seal, on_sealed };

static void
seal(struct queue *q, usec_t now)
{
	if (now - q->retirement.scanned_at < SCAN_EMPTY)
		return;
	q->retirement.scanned_at = now;
	(void)worker_start(q->all->workers, &sealing, q->number, q->all);
}

void
retirement_progress(struct queue *q)
{
	if (q->retirement.step != RETIRE_STOPPING || q->all->stopping ||
	    !group_is_down(&q->group))
		return;
	q->retirement.scanned_at = 0;
	enter(q, RETIRE_SEALING);
	seal(q, clock_mono());
}

/* ---- each second ---- */

void
retirement_tick(struct queue *q, usec_t now)
{
	static void (*const ticks[])(struct queue * q, usec_t now) = {
		[RETIRE_DRAINING] = tick_draining,
		[RETIRE_EVACUATING] = tick_evacuating,
		[RETIRE_SEALING] = seal,
		[RETIRE_UNSEALING] = unseal,
	};
	const enum retirement_step step = q->retirement.step;

	if (q->all->stopping || q->faulty || step >= ARRAY_LEN(ticks) ||
	    ticks[step] == NULL)
		return;
	ticks[step](q, now);
}

bool
retirement_cancel(struct queue *q)
{
	if (q->faulty ||
	    (q->retirement.step != RETIRE_DRAINING &&
		q->retirement.step != RETIRE_EVACUATING))
		return false;
	if (q->retirement.told && queue_hears(q))
		(void)send_list(q, NULL, 0);
	q->retirement = (struct retirement){ 0 };
	show(q, QUEUE_STATE_OPEN);
	return true;
}

/* A queue that does not run, with mail in it: it drains from the first moment,
 * and its mark is taken away before it starts. */
static void
adopt(struct queues *all, uint32_t number, usec_t now)
{
	struct queue *q = queue_new(all, number, QUEUE_STATE_CLOSING);

	if (q == NULL || queue_insert(q) < 0) {
		log_error("ALERT: queue %" PRIu32 " may hold mail and cannot "
			  "be run now: %s",
		    number, q == NULL ? "out of memory" : "too many queues");
		if (q != NULL)
			queue_free(&q);
		return;
	}
	log_info("queue %" PRIu32 " is not among those that run and may hold "
		 "mail: drained",
	    number);
	queue_note_disk(all, number);
	retirement_begin(q, "it may hold mail", now);
	q->faulty = true;
	q->first_check = FIRST_MAKE;
	inventory_check(q);
}

static void
on_swept(void *ctx, uint32_t from UNUSED, const struct worker_result *result,
    struct buf *more)
{
	struct queues *all = ctx;
	const usec_t now = clock_mono();
	uint32_t number;
	size_t at;

	if (result->r < 0 || all->stopping)
		return;
	for (at = 0; at + sizeof(number) <= more->len; at += sizeof(number)) {
		memcpy(&number, more->data + at, sizeof(number));
		if (queue_find(all, number) == NULL &&
		    (all->coming == NULL || all->coming->number != number))
			adopt(all, number, now);
	}
}

static const struct worker_task sweep = { "scan of directories that do not run",
	disk_sweep, on_swept };

/* Queues that drain or are disabled now are told as well: they may have got
 * something when they were not. A queue-send that is down scans when it starts.
 */
static void
tell_rescan(struct queues *all, usec_t now)
{
	const struct msg again = { .type = MSG_RESCAN };
	uint32_t i;

	if (!all->rescan || now < all->rescan_at)
		return;
	all->rescan = false;
	all->rescan_at = now + RESCAN_EVERY;
	for (i = 0; i < all->nqueues; i++)
		if (queue_hears(all->queues[i]) &&
		    child_send(&all->queues[i]->group.child[ROLE_QUEUE_SEND],
			&again, -1) < 0)
			all->rescan = true;
}

void
retirement_tick_all(struct queues *all, usec_t now)
{
	if (all->stopping)
		return;
	tell_rescan(all, now);
	if (now >= all->sweep_at) {
		all->sweep_at = now + SWEEP_EVERY;
		(void)worker_start(all->workers, &sweep, WORKER_ALL, all);
	}
}
