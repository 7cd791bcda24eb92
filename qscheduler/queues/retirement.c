#include "qscheduler/supervisor/super.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "ipc/msg.h"
#include "log/log.h"

/* Between two looks at the directories of a queue: when it says that it is
 * empty, and when it says something else or nothing. */
#define LOOK_EMPTY   (1 * USEC_PER_SEC)
#define LOOK_BLIND   (3 * USEC_PER_SEC)
/* A queue that cannot be sealed, or be run again, now: a full or broken disk
 * is not helped by more tries, or by more lines of it in the log. */
#define SEAL_AGAIN   (10 * USEC_PER_SEC)
#define UNSEAL_AGAIN (10 * USEC_PER_SEC)
#define SAY_EVERY    (60 * USEC_PER_SEC)
/* Queues that get files are told at most so often. */
#define RESCAN_EVERY (3 * USEC_PER_SEC)
/* Directories of queues that are not run are looked at so often. */
#define SWEEP_EVERY  (60 * USEC_PER_SEC)

static const char *const steps[] = {
	[RETIRE_NO] = "open",
	[RETIRE_CLOSING] = "closing",
	[RETIRE_GIVING] = "giving its mail to others",
	[RETIRE_STOPPING] = "empty, stopping",
	[RETIRE_SEALING] = "sealed",
	[RETIRE_UNSEALING] = "with mail, starting again",
};

static void
enter(struct queue *q, enum retire_step step)
{
	log_debug("queue %" PRIu32 ": %s", q->number, steps[step]);
	q->retire.step = step;
}

usec_t
retire_gives_at(const struct queue *q)
{
	usec_t at;

	if (q->retire.step == RETIRE_NO ||
	    __builtin_add_overflow(
		q->retire.since, q->super->conf->queue_drain_time, &at))
		return USEC_NEVER;
	return at;
}

/* Seen by injectors from this moment on. */
static void
show(struct queue *q, enum queue_state want)
{
	q->want = q->shown = want;
	q->changes++;
}

void
retire_begin(struct queue *q, const char *why, usec_t now)
{
	q->retire =
	    (struct retire){ .since = now, .looked_at = now - LOOK_BLIND };
	snprintf(q->retire.why, sizeof(q->retire.why), "%s", why);
	show(q, QUEUE_STATE_CLOSING);
	enter(q, RETIRE_CLOSING);
}

void
retire_adopt(struct queue *q, const char *why, usec_t now)
{
	retire_begin(q, why, now);
	q->closing = true;
	enter(q, RETIRE_UNSEALING);
}

/* ---- handing over ---- */

static bool
is_up(const struct queue *q)
{
	const struct child *send = &q->children[ROLE_QUEUE_SEND];

	return send->proc.state == PROC_UP && child_is_joinable(send);
}

static uint32_t
list_open(const struct super *s, usec_t now, uint32_t out[PAGE_QUEUES_MAX])
{
	uint32_t i, n = 0;

	for (i = 0; i < s->nqueues; i++)
		if (queue_is_usable(s->queues[i], now))
			out[n++] = s->queues[i]->number;
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
	return child_send(&q->children[ROLE_QUEUE_SEND], &msg, -1);
}

/* Each new queue-send is told, and each list that is not the last one. */
static void
tell_list(struct queue *q, const uint32_t *queues, uint32_t n)
{
	struct retire *t = &q->retire;

	if (t->told_group != q->group)
		t->told = false;
	if (!is_up(q) ||
	    (t->told && t->ngiven == n &&
		memcmp(t->given, queues, n * sizeof(*queues)) == 0))
		return;
	if (send_list(q, queues, n) < 0)
		return;
	if (!t->told) {
		/* The one before may have died before it told what it moved. */
		q->super->rescan |= t->told_group != 0;
		t->moved_before += t->moved;
		t->moved = 0;
	}
	t->told = true;
	t->empty = false;
	t->told_group = q->group;
	memcpy(t->given, queues, n * sizeof(*queues));
	t->ngiven = n;
}

void
retire_on_handed(struct queue *q, const struct msg_HANDED *frame)
{
	if (q->retire.step != RETIRE_GIVING || !q->retire.told)
		return;
	q->super->rescan |= frame->moved != q->retire.moved;
	q->retire.moved = frame->moved;
	q->retire.empty = frame->left == 0;
}

/* ---- is it empty? ---- */

static void
on_mail(struct super *s, uint32_t number, const struct look_result *result,
    struct buf *more UNUSED)
{
	struct queue *q = queue_find(s, number);

	if (q == NULL || s->stopping || q->disabled ||
	    (q->retire.step != RETIRE_CLOSING &&
		q->retire.step != RETIRE_GIVING) ||
	    result->r < 0 || result->facts.mail)
		return;
	/* The last of it may not have been told. */
	s->rescan |= q->retire.step == RETIRE_GIVING;
	enter(q, RETIRE_STOPPING);
	queue_close(q);
}

/* The page says when a look is worth it, the look what is so. */
static void
look_for_mail(struct queue *q, usec_t now)
{
	struct retire *t = &q->retire;
	usec_t pause = LOOK_BLIND;

	if (t->empty || (q->seen.fresh && q->seen.backlog == 0))
		pause = LOOK_EMPTY;
	if (now - t->looked_at < pause || now < t->stop_at)
		return;
	t->looked_at = now;
	(void)look_start(q->super, LOOK_MAIL, q->number, on_mail);
}

static void
tick_closing(struct queue *q, usec_t now)
{
	if (now >= retire_gives_at(q)) {
		log_info("queue %" PRIu32 ": what is left of its mail is "
			 "handed to the others",
		    q->number);
		enter(q, RETIRE_GIVING);
	}
	look_for_mail(q, now);
}

static void
tick_giving(struct queue *q, usec_t now)
{
	uint32_t queues[PAGE_QUEUES_MAX];
	const uint32_t n = list_open(q->super, now, queues);

	tell_list(q, queues, n);
	look_for_mail(q, now);
}

/* ---- the seal ---- */

static void
on_unsealed(struct super *s, uint32_t number, const struct look_result *result,
    struct buf *more UNUSED)
{
	struct queue *q = queue_find(s, number);

	if (q == NULL || q->retire.step != RETIRE_UNSEALING || s->stopping)
		return;
	if (result->r < 0) {
		const usec_t now = clock_mono();

		q->retire.unseal_at = now + UNSEAL_AGAIN;
		if (log_due(now, SAY_EVERY, &q->retire.said))
			log_error("ALERT: queue %" PRIu32 " cannot be run "
				  "again: %s: tried again every %d s",
			    number, result->text,
			    (int)(UNSEAL_AGAIN / USEC_PER_SEC));
		return;
	}
	q->closing = false;
	q->retire.told = false;
	enter(q, RETIRE_CLOSING);
	queue_start(q);
}

static void
unseal(struct queue *q, usec_t now)
{
	if (now < q->retire.unseal_at)
		return;
	q->retire.unseal_at = now + LOOK_EMPTY;
	(void)look_start(q->super, LOOK_MAKE, q->number, on_unsealed);
}

static void
tell_gone(const struct queue *q)
{
	const uint64_t moved = q->retire.moved_before + q->retire.moved;

	if (moved > 0)
		log_info("queue %" PRIu32 " is retired: %" PRIu64
			 " messages were handed to the others",
		    q->number, moved);
	else
		log_info("queue %" PRIu32 " is retired", q->number);
}

static void
not_sealed(struct queue *q, const struct look_result *result, usec_t now)
{
	if (result->r == 0) {
		log_info("queue %" PRIu32 " got mail while it was sealed: it "
			 "is run again",
		    q->number);
	} else {
		log_error("queue %" PRIu32 " could not be sealed: %s: it is "
			  "run again",
		    q->number, result->text);
		q->retire.stop_at = now + SEAL_AGAIN;
	}
	enter(q, RETIRE_UNSEALING);
	unseal(q, now);
}

static void
on_sealed(struct super *s, uint32_t number, const struct look_result *result,
    struct buf *more UNUSED)
{
	struct queue *q = queue_find(s, number);
	const usec_t now = clock_mono();

	if (q == NULL || q->retire.step != RETIRE_SEALING || s->stopping)
		return;
	if (result->r == 1) {
		tell_gone(q);
		queue_remove(q);
		publish(s, now);
		return;
	}
	/* A process of an earlier supervisor, which is about to end. */
	if (result->r != -EAGAIN)
		not_sealed(q, result, now);
}

static void
seal(struct queue *q, usec_t now)
{
	if (now - q->retire.looked_at < LOOK_EMPTY)
		return;
	q->retire.looked_at = now;
	(void)look_start(q->super, LOOK_SEAL, q->number, on_sealed);
}

void
retire_progress(struct queue *q)
{
	if (q->retire.step != RETIRE_STOPPING || q->super->stopping ||
	    !queue_is_down(q))
		return;
	q->retire.looked_at = 0;
	enter(q, RETIRE_SEALING);
	seal(q, clock_mono());
}

/* ---- each second ---- */

void
retire_tick(struct queue *q, usec_t now)
{
	static void (*const ticks[])(struct queue * q, usec_t now) = {
		[RETIRE_CLOSING] = tick_closing,
		[RETIRE_GIVING] = tick_giving,
		[RETIRE_SEALING] = seal,
		[RETIRE_UNSEALING] = unseal,
	};
	const enum retire_step step = q->retire.step;

	if (q->super->stopping || q->disabled || step >= ARRAY_LEN(ticks) ||
	    ticks[step] == NULL)
		return;
	ticks[step](q, now);
}

bool
retire_cancel(struct queue *q, usec_t now UNUSED)
{
	if (q->disabled ||
	    (q->retire.step != RETIRE_CLOSING &&
		q->retire.step != RETIRE_GIVING))
		return false;
	if (q->retire.told && is_up(q))
		(void)send_list(q, NULL, 0);
	q->retire = (struct retire){ 0 };
	show(q, QUEUE_STATE_OPEN);
	return true;
}

static void
adopt(struct super *s, uint32_t number, usec_t now)
{
	struct queue *q = queue_new(s, number, QUEUE_STATE_CLOSING);

	if (q == NULL || queue_insert(q) < 0) {
		log_error("ALERT: queue %" PRIu32 " holds mail and cannot be "
			  "run now: %s",
		    number, q == NULL ? "out of memory" : "too many queues");
		if (q != NULL)
			queue_free(&q);
		return;
	}
	log_info("queue %" PRIu32 " is not among those that run and holds "
		 "mail: drained",
	    number);
	queue_note_disk(s, number);
	retire_adopt(q, "mail was found in it", now);
}

static void
on_swept(struct super *s, uint32_t from UNUSED,
    const struct look_result *result, struct buf *more UNUSED)
{
	const usec_t now = s->grow.looked_at;
	uint32_t number;

	if (result->r < 0 || s->stopping)
		return;
	for (number = 1; number <= QUEUE_NUM_MAX; number++)
		if (result->mail[number] && queue_find(s, number) == NULL &&
		    (s->grow.coming == NULL ||
			s->grow.coming->number != number))
			adopt(s, number, now);
}

/* Also to those that are closed or disabled now: they may have been given
 * something when they were not. One that is down looks when it starts. */
static void
tell_rescan(struct super *s, usec_t now)
{
	const struct msg again = { .type = MSG_RESCAN };
	uint32_t i;

	if (!s->rescan || now < s->rescan_at)
		return;
	s->rescan = false;
	s->rescan_at = now + RESCAN_EVERY;
	for (i = 0; i < s->nqueues; i++)
		if (is_up(s->queues[i]) &&
		    child_send(&s->queues[i]->children[ROLE_QUEUE_SEND], &again,
			-1) < 0)
			s->rescan = true;
}

void
retire_tick_all(struct super *s, usec_t now)
{
	if (s->stopping)
		return;
	tell_rescan(s, now);
	if (now >= s->sweep_at) {
		s->sweep_at = now + SWEEP_EVERY;
		(void)look_start(s, LOOK_SWEEP, LOOK_ALL, on_swept);
	}
}
