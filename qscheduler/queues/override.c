#include "qscheduler/supervisor/super.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ipc/ask.h"
#include "log/log.h"
#include "qscheduler/queues/override_file.h"

bool
hand_has_load(const struct queue *q, usec_t now)
{
	return now < q->hand.load_until;
}

bool
hand_is_disabled(const struct queue *q, usec_t now)
{
	return now < q->hand.disabled_until;
}

void
hand_set_load(struct queue *q, uint32_t load_pct, usec_t until)
{
	q->hand.load_pct = load_pct;
	q->hand.load_until = until;
}

void
hand_clear_load(struct queue *q)
{
	hand_set_load(q, 0, 0);
}

void
hand_disable(struct queue *q, usec_t until, const char *reason, size_t len)
{
	q->hand.disabled_until = until;
	snprintf(
	    q->hand.reason, sizeof(q->hand.reason), "%.*s", (int)len, reason);
	store_changed(q->super);
}

void
hand_enable(struct queue *q)
{
	hand_disable(q, 0, "", 0);
}

void
hand_tick(struct queue *q, usec_t now)
{
	if (q->hand.load_until != 0 && !hand_has_load(q, now))
		hand_clear_load(q);
	if (q->hand.disabled_until != 0 && !hand_is_disabled(q, now)) {
		log_info("queue %" PRIu32 ": no longer disabled by hand: its "
			 "time is over",
		    q->number);
		hand_enable(q);
	}
}

void
hand_gone(struct queue *q)
{
	if (q->hand.disabled_until != 0)
		store_changed(q->super);
}

void
hand_show(const struct queue *q, usec_t now, struct sched_row *row)
{
	if (hand_has_load(q, now)) {
		row->flags |= SCHED_ROW_MANUAL;
		row->load_pct = q->hand.load_pct;
		row->manual_until_mono = q->hand.load_until;
	}
	if (!hand_is_disabled(q, now) || queue_is_faulty(q))
		return;
	row->flags |= SCHED_ROW_HAND;
	if (row->state != QUEUE_STATE_DISABLED)
		return;
	row->until_mono =
	    q->hand.disabled_until == USEC_NEVER ? 0 : q->hand.disabled_until;
	memcpy(row->reason, q->hand.reason, sizeof(row->reason));
}

/* ---- over a restart ---- */

/* Rounded up: not over before its time. */
static int64_t
wall_second(usec_t until, usec_t now, usec_t wall)
{
	if (until == USEC_NEVER)
		return 0;
	return (wall + (until - now) + USEC_PER_SEC - 1) / USEC_PER_SEC;
}

static void
gather(const struct super *s, usec_t now, struct byhand *rows)
{
	const usec_t wall = clock_wall();
	uint32_t i;

	for (i = 0; i < s->nqueues; i++) {
		const struct queue *q = s->queues[i];
		struct byhand_row *row = &rows->rows[rows->n];

		if (!hand_is_disabled(q, now))
			continue;
		row->queue = q->number;
		row->until_wall =
		    wall_second(q->hand.disabled_until, now, wall);
		memcpy(row->reason, q->hand.reason, sizeof(row->reason));
		rows->n++;
	}
}

int
hand_write(const struct super *s, struct buf *ret_error)
{
	struct byhand *rows = calloc(1, sizeof(*rows));
	int r;

	if (rows == NULL) {
		(void)buf_add_str(ret_error, "out of memory");
		return -ENOMEM;
	}
	gather(s, s->store.as_of, rows);
	r = byhand_write(s->base.fd, s->base.path, rows, ret_error);
	free(rows);
	return r;
}

static const struct byhand_row *
find_row(const struct byhand *rows, uint32_t queue)
{
	uint32_t i;

	for (i = 0; i < rows->n; i++)
		if (rows->rows[i].queue == queue)
			return &rows->rows[i];
	return NULL;
}

static void
take_row(struct queue *q, const struct byhand_row *row, usec_t now)
{
	const int64_t wall = clock_wall() / USEC_PER_SEC;
	int64_t left = row->until_wall - wall;

	if (row->until_wall != 0 && left <= 0)
		return;
	if (left > ASK_SECONDS_MAX) /* the clock was set back */
		left = ASK_SECONDS_MAX;
	hand_disable(q,
	    row->until_wall == 0 ? USEC_NEVER : now + left * USEC_PER_SEC,
	    row->reason, strlen(row->reason));
	log_info("queue %" PRIu32 ": still disabled by hand%s%s", q->number,
	    row->reason[0] == '\0' ? "" : ": ", row->reason);
}

void
hand_restore(struct super *s, usec_t now)
{
	struct byhand *rows = calloc(1, sizeof(*rows));
	struct buf error = { 0 };
	uint32_t i, taken = 0;
	int r = -ENOMEM;

	if (rows != NULL)
		r = byhand_read(s->base.fd, s->base.path, rows, &error);
	if (r < 0)
		log_warning("%s: ignored: no queue is disabled by hand",
		    error.len > 0 ? buf_str(&error) : strerror(-r));
	for (i = 0; r == 0 && i < s->nqueues; i++) {
		const struct byhand_row *row =
		    find_row(rows, s->queues[i]->number);

		if (row == NULL)
			continue;
		take_row(s->queues[i], row, now);
		taken++;
	}
	/* A damaged file stays until there is something to write. */
	s->store.unsaved = r == 0 && taken < rows->n;
	free(rows);
	buf_done(&error);
}
