#include "qscheduler/queues/queues.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ipc/ask.h"
#include "log/log.h"
#include "qscheduler/queues/queues.h"

void
override_set_load(struct queue *q, uint32_t load_pct, usec_t until)
{
	q->override.load_pct = load_pct;
	q->override.load_until = until;
}

void
override_clear_load(struct queue *q)
{
	override_set_load(q, 0, 0);
}

void
override_disable(struct queue *q, usec_t until, const char *reason, size_t len)
{
	q->override.disabled_until = until;
	snprintf(q->override.reason, sizeof(q->override.reason), "%.*s",
	    (int)len, reason);
	q->all->events->overrides_changed(q->all->ctx);
}

void
override_enable(struct queue *q)
{
	override_disable(q, 0, "", 0);
}

void
override_tick(struct queue *q, usec_t now)
{
	if (q->override.load_until != 0 && !override_has_load(q, now))
		override_clear_load(q);
	if (q->override.disabled_until != 0 && !override_is_disabled(q, now)) {
		log_info("queue %" PRIu32 ": no longer disabled by hand: its "
			 "time is over",
		    q->number);
		override_enable(q);
	}
}

void
override_gone(struct queue *q)
{
	if (q->override.disabled_until != 0)
		q->all->events->overrides_changed(q->all->ctx);
}

void
override_show(const struct queue *q, usec_t now, struct sched_row *row)
{
	if (override_has_load(q, now)) {
		row->flags |= SCHED_ROW_MANUAL;
		row->load_pct = q->override.load_pct;
		row->manual_until_mono = q->override.load_until;
	}
	if (!override_is_disabled(q, now) || queue_is_faulty(q))
		return;
	row->flags |= SCHED_ROW_OVERRIDE;
	if (row->state != QUEUE_STATE_DISABLED)
		return;
	row->until_mono = q->override.disabled_until == USEC_NEVER
	    ? 0
	    : q->override.disabled_until;
	memcpy(row->reason, q->override.reason, sizeof(row->reason));
}

/* ---- over a restart ---- */

/* Rounded up, so that it is not over before its time. */
static int64_t
wall_second(usec_t until, usec_t now, usec_t wall)
{
	if (until == USEC_NEVER)
		return 0;
	return (wall + (until - now) + USEC_PER_SEC - 1) / USEC_PER_SEC;
}

static void
gather(const struct queues *all, usec_t now, struct override_rows *rows)
{
	const usec_t wall = clock_wall();
	uint32_t i;

	for (i = 0; i < all->nqueues; i++) {
		const struct queue *q = all->queues[i];
		struct override_row *row = &rows->rows[rows->n];

		if (!override_is_disabled(q, now))
			continue;
		row->queue = q->number;
		row->until_wall =
		    wall_second(q->override.disabled_until, now, wall);
		memcpy(row->reason, q->override.reason, sizeof(row->reason));
		rows->n++;
	}
}

int
override_write(const struct queues *all, usec_t as_of, struct buf *ret_error)
{
	struct override_rows *rows = calloc(1, sizeof(*rows));
	int r;

	if (rows == NULL) {
		(void)buf_add_str(ret_error, "out of memory");
		return -ENOMEM;
	}
	gather(all, as_of, rows);
	r = override_file_write(
	    all->base->fd, all->base->path, rows, ret_error);
	free(rows);
	return r;
}

static const struct override_row *
find_row(const struct override_rows *rows, uint32_t queue)
{
	uint32_t i;

	for (i = 0; i < rows->n; i++)
		if (rows->rows[i].queue == queue)
			return &rows->rows[i];
	return NULL;
}

static void
take_row(struct queue *q, const struct override_row *row, usec_t now)
{
	const int64_t wall = clock_wall() / USEC_PER_SEC;
	int64_t left = row->until_wall - wall;

	if (row->until_wall != 0 && left <= 0)
		return;
	if (left > ASK_SECONDS_MAX) /* the clock was set back */
		left = ASK_SECONDS_MAX;
	override_disable(q,
	    row->until_wall == 0 ? USEC_NEVER : now + left * USEC_PER_SEC,
	    row->reason, strlen(row->reason));
	log_info("queue %" PRIu32 ": still disabled by hand%s%s", q->number,
	    row->reason[0] == '\0' ? "" : ": ", row->reason);
}

bool
override_restore(struct queues *all, usec_t now)
{
	struct override_rows *rows = calloc(1, sizeof(*rows));
	struct buf error = { 0 };
	uint32_t i, taken = 0;
	bool unsaved;
	int r = -ENOMEM;

	if (rows != NULL)
		r = override_file_read(
		    all->base->fd, all->base->path, rows, &error);
	if (r < 0)
		log_warning("%s: ignored: no queue is disabled by hand",
		    error.len > 0 ? buf_str(&error) : strerror(-r));
	for (i = 0; r == 0 && i < all->nqueues; i++) {
		const struct override_row *row =
		    find_row(rows, all->queues[i]->number);

		if (row == NULL)
			continue;
		take_row(all->queues[i], row, now);
		taken++;
	}
	/* A damaged file stays until there is something to write. */
	unsaved = r == 0 && taken < rows->n;
	free(rows);
	buf_done(&error);
	return unsaved;
}
