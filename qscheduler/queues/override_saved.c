#include "qscheduler/queues/queues.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "ipc/ask.h"
#include "log/log.h"

/* ---- writing ---- */

/* Rounded up, so that it is not over before its time. */
static int64_t
seconds_left(usec_t until, usec_t now)
{
	return (until - now + USEC_PER_SEC - 1) / USEC_PER_SEC;
}

static void
add_row(struct override_rows *rows, const struct override_row *row)
{
	rows->rows[rows->n++] = *row;
}

static void
gather_queue(
    struct override_rows *rows, uint32_t number, const struct override *o)
{
	const usec_t now = rows->written.mono;
	struct override_row row = { .queue = number };

	if (now < o->disabled_until) {
		row.kind = OVERRIDE_DISABLED;
		row.left = o->disabled_until == USEC_NEVER
		    ? 0
		    : seconds_left(o->disabled_until, now);
		memcpy(row.reason, o->reason, sizeof(row.reason));
		add_row(rows, &row);
	}
	if (now < o->load_until) {
		row.kind = OVERRIDE_LOAD;
		row.left = seconds_left(o->load_until, now);
		row.value = o->load_pct;
		add_row(rows, &row);
	}
}

static void
gather(const struct queues *all, const struct override_count *count,
    struct override_rows *rows)
{
	const usec_t now = rows->written.mono;
	uint32_t i;

	for (i = 0; i < all->nqueues; i++)
		gather_queue(
		    rows, all->queues[i]->number, &all->queues[i]->override);
	for (i = 1; all->waiting != NULL && i <= QUEUE_NUM_MAX; i++)
		gather_queue(rows, i, &all->waiting[i]);
	if (count->count > 0 && (count->until == 0 || now < count->until))
		add_row(rows,
		    &(struct override_row){ .kind = OVERRIDE_COUNT,
			.value = count->count,
			.left = count->until == 0
			    ? 0
			    : seconds_left(count->until, now) });
}

int
override_write(const struct queues *all, const struct override_moment *moment,
    const struct override_count *count, struct buf *ret_error)
{
	struct override_rows *rows = calloc(1, sizeof(*rows));
	int r;

	if (rows == NULL) {
		(void)buf_add_str(ret_error, "out of memory");
		return -ENOMEM;
	}
	rows->written = *moment;
	gather(all, count, rows);
	r = override_file_write(
	    all->base->fd, all->base->path, rows, ret_error);
	free(rows);
	return r;
}

/* ---- reading ---- */

/* " for 2h", or nothing for what has no end. */
static const char *
describe_time(usec_t left, struct buf *out)
{
	buf_reset(out);
	if (left != USEC_NEVER && buf_add_str(out, " for ") == 0)
		(void)num_add_duration(out, left / USEC_PER_SEC * USEC_PER_SEC);
	return buf_str(out);
}

/* Where the settings of this queue go. NULL: no memory. */
static struct override *
find_place(struct queues *all, uint32_t number, const char **ret_note)
{
	struct queue *q = queue_find(all, number);

	*ret_note = "";
	if (q != NULL)
		return &q->override;
	if (all->waiting == NULL)
		all->waiting = calloc(QUEUE_NUM_MAX + 1, sizeof(*all->waiting));
	*ret_note = "; the queue is not run: that waits for it";
	return all->waiting == NULL ? NULL : &all->waiting[number];
}

static usec_t
deadline(usec_t left, usec_t now)
{
	return left == USEC_NEVER ? USEC_NEVER : now + left;
}

static void
restore_disabled(
    struct queues *all, const struct override_row *row, usec_t left, usec_t now)
{
	const char *note;
	struct override *o = find_place(all, row->queue, &note);
	struct buf time = { 0 };

	if (o == NULL) {
		log_warning("queue %" PRIu32 ": that it is disabled by hand "
			    "is forgotten: no memory",
		    row->queue);
		return;
	}
	o->disabled_until = deadline(left, now);
	memcpy(o->reason, row->reason, sizeof(o->reason));
	log_info("queue %" PRIu32 ": still disabled by hand%s%s%s%s",
	    row->queue, describe_time(left, &time),
	    row->reason[0] == '\0' ? "" : ": ", row->reason, note);
	buf_done(&time);
}

static void
restore_load(
    struct queues *all, const struct override_row *row, usec_t left, usec_t now)
{
	const char *note;
	struct override *o = find_place(all, row->queue, &note);
	struct buf time = { 0 };

	if (o == NULL) {
		log_warning("queue %" PRIu32 ": its load by hand is forgotten: "
			    "no memory",
		    row->queue);
		return;
	}
	o->load_until = deadline(left, now);
	o->load_pct = row->value;
	log_info("queue %" PRIu32 ": load %" PRIu32 " %% by hand, still%s%s",
	    row->queue, row->value, describe_time(left, &time), note);
	buf_done(&time);
}

/* True: its time is over. */
static bool
restore_row(struct queues *all, const struct override_rows *rows,
    const struct override_row *row, const struct override_moment *now,
    struct override_count *ret_count)
{
	usec_t left = row->left == 0
	    ? USEC_NEVER
	    : override_time_left(&rows->written, row->left, now);

	if (left > ASK_SECONDS_MAX * USEC_PER_SEC && left != USEC_NEVER)
		left = ASK_SECONDS_MAX * USEC_PER_SEC; /* of version 1 */
	if (left == 0) {
		log_info("%s %" PRIu32 ": what was set by hand is over",
		    row->kind == OVERRIDE_COUNT ? "count" : "queue",
		    row->kind == OVERRIDE_COUNT ? row->value : row->queue);
		return true;
	}
	if (row->kind == OVERRIDE_DISABLED)
		restore_disabled(all, row, left, now->mono);
	else if (row->kind == OVERRIDE_LOAD)
		restore_load(all, row, left, now->mono);
	else
		*ret_count = (struct override_count){ row->value,
			left == USEC_NEVER ? 0 : now->mono + left };
	return false;
}

/* Kept for a person to look at. */
static void
tell_damaged(const struct queues *all, int error, const struct buf *why)
{
	char name[32];
	int r = override_file_set_aside(all->base->fd, name);

	if (r < 0)
		log_error("ALERT: %s: nothing is set by hand; the file could "
			  "not be put aside (%s), the next change writes over "
			  "it",
		    why->len > 0 ? buf_str(why) : strerror(-error),
		    strerror(-r));
	else
		log_error("ALERT: %s: nothing is set by hand; the file is kept "
			  "as %s",
		    why->len > 0 ? buf_str(why) : strerror(-error), name);
}

bool
override_restore(struct queues *all, const struct override_moment *now,
    struct override_count *ret_count)
{
	struct override_rows *rows = calloc(1, sizeof(*rows));
	struct buf error = { 0 };
	bool unsaved = false;
	uint32_t i;
	int r = -ENOMEM;

	*ret_count = (struct override_count){ 0 };
	if (rows != NULL)
		r = override_file_read(
		    all->base->fd, all->base->path, rows, &error);
	if (r < 0)
		tell_damaged(all, r, &error);
	for (i = 0; r == 0 && i < rows->n; i++)
		unsaved |=
		    restore_row(all, rows, &rows->rows[i], now, ret_count);
	/* Times are counted from this boot on. */
	if (r == 0 && rows->version > 0)
		unsaved |= strcmp(rows->written.boot, now->boot) != 0;
	free(rows);
	buf_done(&error);
	return unsaved;
}
