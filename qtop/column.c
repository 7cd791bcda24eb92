#include "qtop/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "ipc/page_text.h"

#define STATE_WIDTH 10 /* with it, ten columns fit 80 characters */

bool
row_is_total(const struct model_row *row)
{
	return row->sched.state == QUEUE_STATE_NONE;
}

bool
row_is_faulty(const struct model_row *row)
{
	const bool by_hand = (row->sched.flags & SCHED_ROW_OVERRIDE) != 0;

	if (row_is_total(row))
		return false;
	return row->error < 0 || row->stale || row->page.read_only != 0 ||
	    row->page.scan_only != 0 ||
	    (row->sched.flags &
		(SCHED_ROW_SILENT | SCHED_ROW_LATE | SCHED_ROW_NO_MAIL)) != 0 ||
	    (row->sched.state == QUEUE_STATE_DISABLED && !by_hand) ||
	    row->sched.state == QUEUE_STATE_QUARANTINED;
}

/* ---- numbers ---- */

/* The number itself up to max, else with a unit, in 4 characters at most. */
static void
count_format_above(uint64_t n, uint64_t max, char cell[CELL_MAX])
{
	static const char units[] = "kMGTPE";
	uint64_t unit = 1000;
	size_t i = 0;

	if (n <= max) {
		snprintf(cell, CELL_MAX, "%" PRIu64, n);
		return;
	}
	while (i < sizeof(units) - 2 && n / unit >= 1000) {
		unit *= 1000;
		i++;
	}
	if (n / unit >= 10)
		snprintf(cell, CELL_MAX, "%" PRIu64 "%c", n / unit, units[i]);
	else
		snprintf(cell, CELL_MAX, "%" PRIu64 ".%" PRIu64 "%c", n / unit,
		    n % unit / (unit / 10), units[i]);
}

void
count_format(uint64_t n, char cell[CELL_MAX])
{
	count_format_above(n, 99999, cell);
}

void
age_format(usec_t age, char cell[CELL_MAX])
{
	struct buf text = { 0 };
	int r = num_add_span(&text, age);

	snprintf(cell, CELL_MAX, "%s", r < 0 ? "?" : buf_str(&text));
	buf_done(&text);
}

/* Hundredths per second. */
static void
rate_format(uint64_t rate, char cell[CELL_MAX])
{
	if (rate < 1000000)
		snprintf(cell, CELL_MAX, "%" PRIu64 ".%02" PRIu64, rate / 100,
		    rate % 100);
	else
		count_format(rate / 100, cell);
}

static void
ratio_format(int32_t used, int32_t limit, char cell[CELL_MAX])
{
	char above[CELL_MAX], below[CELL_MAX];

	if (used == 0 && limit == 0) {
		snprintf(cell, CELL_MAX, "-");
		return;
	}
	count_format_above(used < 0 ? 0 : (uint64_t)used, 9999, above);
	count_format_above(limit < 0 ? 0 : (uint64_t)limit, 9999, below);
	snprintf(cell, CELL_MAX, "%.8s/%.8s", above, below);
}

/* A value without a page is unknown, not 0. */
static void
count_of(const struct model_row *row, uint64_t n, char cell[CELL_MAX])
{
	if (row->error < 0)
		snprintf(cell, CELL_MAX, "?");
	else
		count_format(n, cell);
}

/* ---- cells ---- */

static void
fmt_queue(const struct model_row *row, char cell[CELL_MAX])
{
	if (row_is_total(row))
		snprintf(cell, CELL_MAX, "TOTAL");
	else
		snprintf(cell, CELL_MAX, "%" PRIu32, row->sched.queue);
}

static void
fmt_state(const struct model_row *row, char cell[CELL_MAX])
{
	snprintf(cell, CELL_MAX, "%.*s", STATE_WIDTH,
	    row_is_total(row) ? "" : page_state_text(&row->sched));
}

static void
fmt_local(const struct model_row *row, char cell[CELL_MAX])
{
	ratio_format(row->page.local_used, row->page.local_limit, cell);
}

static void
fmt_remote(const struct model_row *row, char cell[CELL_MAX])
{
	ratio_format(row->page.remote_used, row->page.remote_limit, cell);
}

static void
fmt_load(const struct model_row *row, char cell[CELL_MAX])
{
	if (row->error < 0 && !row->manual)
		snprintf(cell, CELL_MAX, "?");
	else if (row->load_pct > 9999)
		snprintf(cell, CELL_MAX, ">9999");
	else
		snprintf(cell, CELL_MAX, "%" PRIu32 "%s", row->load_pct,
		    row->manual ? "*" : "");
}

#define COUNT_CELL(name, field)                                   \
	static uint64_t value_##name(const struct model_row *row) \
	{                                                         \
		return row->field;                                \
	}                                                         \
	static void fmt_##name(                                   \
	    const struct model_row *row, char cell[CELL_MAX])     \
	{                                                         \
		count_of(row, row->field, cell);                  \
	}

/* clang-format off */
COUNT_CELL(in, in)
COUNT_CELL(active, page.active)
COUNT_CELL(untried, page.untried)
COUNT_CELL(deferred, page.deferred)
COUNT_CELL(hold, page.hold)
COUNT_CELL(corrupt, page.corrupt)
COUNT_CELL(recipients, page.active_recipients)
COUNT_CELL(failed, page.failed)
COUNT_CELL(expired, page.expired)
COUNT_CELL(errors, page.io_errors)
/* clang-format on */

static void
fmt_rate_in(const struct model_row *row, char cell[CELL_MAX])
{
	rate_format(row->page.rate_in, cell);
}

static void
fmt_rate_out(const struct model_row *row, char cell[CELL_MAX])
{
	rate_format(row->page.rate_out, cell);
}

static void
fmt_oldest(const struct model_row *row, char cell[CELL_MAX])
{
	age_format(row->oldest_age, cell);
}

static void
fmt_restarts(const struct model_row *row, char cell[CELL_MAX])
{
	count_format(row->sched.restarts, cell);
}

/* The gravest of: the state of its page, a missing page, an operator's load. */
static int
note_page(const struct model_row *row, struct buf *out)
{
	int r;

	if (row->error < 0)
		return buf_printf(out, "no page: %s", strerror(-row->error));
	if (row->stale && row->page.head.beat_mono == 0)
		return buf_add_str(out, "nothing published yet");
	if (row->stale) {
		r = buf_add_str(out, "stale for ");
		return r < 0 ? r : num_add_span(out, row->page_age);
	}
	if (row->page.read_only != 0)
		return buf_add_str(out, "disk: no delivery starts");
	if (row->page.scan_only != 0)
		return buf_add_str(out, "no doorbell: scanning");
	if (!row->manual)
		return 0;
	r = buf_add_str(out, "load by hand for ");
	return r < 0 ? r : num_add_span(out, row->manual_left);
}

int
note_add(const struct model_row *row, struct buf *out)
{
	const size_t start = out->len;
	struct buf page = { 0 };
	int r;

	if (row_is_total(row))
		return 0;
	r = page_text_row(&row->sched, row->now_mono, out);
	if (r == 0)
		r = note_page(row, &page);
	if (r == 0 && page.len > 0)
		r = buf_printf(
		    out, "%s%s", out->len > start ? "; " : "", buf_str(&page));
	buf_done(&page);
	return r;
}

static void
fmt_note(const struct model_row *row, char cell[CELL_MAX])
{
	struct buf text = { 0 };
	int r = note_add(row, &text);

	snprintf(cell, CELL_MAX, "%s", r < 0 ? "?" : buf_str(&text));
	buf_done(&text);
}

/* ---- values to sort by ---- */

static uint64_t
value_queue(const struct model_row *row)
{
	return UINT32_MAX - row->sched.queue;
}

/* The gravest is the largest. */
static uint64_t
value_state(const struct model_row *row)
{
	if (row_is_faulty(row))
		return 2;
	return row->sched.state != QUEUE_STATE_OPEN;
}

static uint64_t
value_load(const struct model_row *row)
{
	return row->load_pct;
}

static uint64_t
value_rate_in(const struct model_row *row)
{
	return row->page.rate_in;
}

static uint64_t
value_rate_out(const struct model_row *row)
{
	return row->page.rate_out;
}

static uint64_t
value_oldest(const struct model_row *row)
{
	return row->oldest_age < 0 ? 0 : (uint64_t)row->oldest_age;
}

static uint64_t
value_restarts(const struct model_row *row)
{
	return row->sched.restarts;
}

/* ---- the table ---- */

/* clang-format off */
const struct column columns[NCOLS] = {
	[COL_QUEUE] = { .key = "queue", .title = "QUEUE", .width = 5,
	    .fmt = fmt_queue, .value = value_queue,
	    .help = "number of the queue" },
	[COL_STATE] = { .key = "state", .title = "STATE", .width = STATE_WIDTH,
	    .rank = 1, .left = true, .fmt = fmt_state, .value = value_state,
	    .help = "open, full, read-only, closing, disabled, or quarantine: it keeps failing" },
	[COL_LOCAL] = { .key = "local", .title = "LOCAL", .width = 9,
	    .rank = 11, .fmt = fmt_local,
	    .help = "local deliveries running, and how many may" },
	[COL_REMOTE] = { .key = "remote", .title = "REMOTE", .width = 9,
	    .rank = 10, .fmt = fmt_remote,
	    .help = "remote deliveries running, and how many may" },
	[COL_LOAD] = { .key = "load", .title = "LOAD%", .width = 5,
	    .rank = 5, .fmt = fmt_load, .value = value_load,
	    .help = "largest of both and the busiest transport; * by hand; TOTAL: mean of open ones" },
	[COL_IN] = { .key = "in", .title = "IN", .width = 5,
	    .rank = 8, .fmt = fmt_in, .value = value_in,
	    .help = "messages accepted and not yet in the active queue" },
	[COL_ACTIVE] = { .key = "active", .title = "ACTIVE", .width = 6,
	    .rank = 9, .fmt = fmt_active, .value = value_active,
	    .help = "messages being delivered, or waiting for a delivery that is free" },
	[COL_DEFERRED] = { .key = "deferred", .title = "DEFERRED", .width = 8,
	    .rank = 6, .fmt = fmt_deferred, .value = value_deferred,
	    .help = "messages that were tried and wait for the next attempt" },
	[COL_HOLD] = { .key = "hold", .title = "HOLD", .width = 5,
	    .rank = 3, .is_alarm = true, .is_emphasised = true, .fmt = fmt_hold, .value = value_hold,
	    .help = "messages in hold/: agents died of them, or an operator put them there; not tried again" },
	[COL_CORRUPT] = { .key = "corrupt", .title = "CORRUPT", .width = 7,
	    .rank = 4, .is_alarm = true, .is_emphasised = true, .fmt = fmt_corrupt, .value = value_corrupt,
	    .help = "damaged files, kept for the operator" },
	[COL_RATE_IN] = { .key = "rate-in", .title = "RATE-IN", .width = 7,
	    .rank = 13, .fmt = fmt_rate_in, .value = value_rate_in,
	    .help = "messages taken in per second, last minute" },
	[COL_RATE_OUT] = { .key = "rate-out", .title = "RATE-OUT", .width = 8,
	    .rank = 12, .fmt = fmt_rate_out, .value = value_rate_out,
	    .help = "messages finished per second, last minute" },
	[COL_OLDEST] = { .key = "oldest", .title = "OLDEST", .width = 6,
	    .rank = 7, .fmt = fmt_oldest, .value = value_oldest,
	    .help = "age of the oldest message that is active or deferred" },
	[COL_RESTARTS] = { .key = "restarts", .title = "RESTARTS", .width = 8,
	    .rank = 15, .is_alarm = true, .fmt = fmt_restarts, .value = value_restarts,
	    .help = "how often processes of the queue were started again" },
	[COL_RECIPIENTS] = { .key = "recipients", .title = "RCPTS", .width = 5,
	    .rank = 19, .fmt = fmt_recipients, .value = value_recipients,
	    .help = "recipients of active messages that are in memory" },
	[COL_FAILED] = { .key = "failed", .title = "FAILED", .width = 6,
	    .rank = 17, .fmt = fmt_failed, .value = value_failed,
	    .help = "recipients that failed for good, since queue-send started" },
	[COL_EXPIRED] = { .key = "expired", .title = "EXPIRED", .width = 7,
	    .rank = 18, .fmt = fmt_expired, .value = value_expired,
	    .help = "recipients given up as too old, since queue-send started" },
	[COL_ERRORS] = { .key = "errors", .title = "IO-ERR", .width = 6,
	    .rank = 16, .is_alarm = true, .fmt = fmt_errors, .value = value_errors,
	    .help = "errors of the disk, since queue-send started" },
	[COL_UNTRIED] = { .key = "untried", .title = "UNTRIED", .width = 7,
	    .rank = 20, .is_alarm = true, .fmt = fmt_untried, .value = value_untried,
	    .help = "messages not tried yet: their destination has its share of the active queue" },
	[COL_NOTE] = { .key = "note", .title = "NOTE", .width = 36,
	    .rank = 14, .left = true, .rest = true, .fmt = fmt_note,
	    .help = "why it is not open and until when, faults, loads that an operator set" },
};
/* clang-format on */

/* ---- the order of rows ---- */

enum column_id
column_next_sort(enum column_id column)
{
	do {
		column = (column + 1) % NCOLS;
	} while (columns[column].value == NULL);
	return column;
}

enum column_id
column_last_sort(enum column_id column)
{
	do {
		column = (column + NCOLS - 1) % NCOLS;
	} while (columns[column].value == NULL);
	return column;
}

struct order {
	enum column_id column;
	bool reversed;
};

static int
compare(const void *a, const void *b, void *arg)
{
	const struct model_row *x = a, *y = b;
	const struct order *order = arg;
	const uint64_t vx = columns[order->column].value(x);
	const uint64_t vy = columns[order->column].value(y);

	if (vx != vy)
		return (vx > vy) != order->reversed ? -1 : 1;
	return (x->sched.queue > y->sched.queue) -
	    (x->sched.queue < y->sched.queue);
}

void
model_sort(struct model *model, enum column_id column, bool reversed)
{
	struct order order = { column, reversed };

	ASSERT(columns[column].value != NULL);
	qsort_r(
	    model->rows, model->nrows, sizeof(model->rows[0]), compare, &order);
}
