#include "qtop/model.h"

#include "fake.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct model model;
static struct buf text;

static void
done(void)
{
	buf_done(&text);
}

TestSuite(qtop_format, .fini = done);

Test(qtop_format, every_column_is_complete)
{
	int i;

	for (i = 0; i < NCOLS; i++) {
		const struct column *c = &columns[i];

		cr_assert(c->key != NULL && c->title != NULL &&
			c->help != NULL && c->fmt != NULL,
		    "column %d", i);
		cr_expect_geq(c->width, (int)strlen(c->title), "%s", c->key);
		cr_expect_lt(c->width, CELL_MAX, "%s", c->key);
	}
}

Test(qtop_format, counts)
{
	static const struct {
		uint64_t n;
		const char *want;
	} rows[] = {
		{ 0, "0" },
		{ 99999, "99999" },
		{ 100000, "100k" },
		{ 999999, "999k" },
		{ 1000000, "1.0M" },
		{ 1250000, "1.2M" },
		{ 10000000, "10M" },
		{ 999999999, "999M" },
		{ 1000000000, "1.0G" },
		{ UINT64_MAX, "18E" },
	};
	char cell[CELL_MAX];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		count_format(rows[i].n, cell);
		cr_expect_str_eq(cell, rows[i].want);
	}
}

Test(qtop_format, ages)
{
	static const struct {
		usec_t age;
		const char *want;
	} rows[] = {
		{ -1, "-" },
		{ INT64_MIN, "-" },
		{ 0, "0s" },
		{ 99 * USEC_PER_SEC, "99s" },
		{ 100 * USEC_PER_SEC, "1m" },
		{ 99 * 60 * USEC_PER_SEC, "99m" },
		{ 100 * 60 * USEC_PER_SEC, "1h" },
		{ 47 * 3600 * USEC_PER_SEC, "47h" },
		{ 48 * 3600 * USEC_PER_SEC, "2d" },
		{ 999 * 86400 * USEC_PER_SEC, "999d" },
		{ 1000 * 86400 * USEC_PER_SEC, ">999d" },
		{ USEC_NEVER, ">999d" },
	};
	char cell[CELL_MAX];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		age_format(rows[i].age, cell);
		cr_expect_str_eq(cell, rows[i].want);
	}
}

/* Each cell of a model by its column. */
Test(qtop_format, cells)
{
	static const struct {
		enum column_id column;
		const char *want;
	} rows[] = {
		{ COL_QUEUE, "1" },
		{ COL_STATE, "closing" },
		{ COL_LOCAL, "5/10" },
		{ COL_REMOTE, "0/20" },
		{ COL_LOAD, "50" },
		{ COL_IN, "3" },
		{ COL_ACTIVE, "4" },
		{ COL_DEFERRED, "123k" },
		{ COL_UNTRIED, "17" },
		{ COL_HOLD, "6" },
		{ COL_CORRUPT, "7" },
		{ COL_RATE_IN, "1.05" },
		{ COL_RATE_OUT, "12.30" },
		{ COL_OLDEST, "61s" },
		{ COL_RESTARTS, "9" },
		{ COL_RECIPIENTS, "10" },
		{ COL_FAILED, "11" },
		{ COL_EXPIRED, "12" },
		{ COL_ERRORS, "13" },
		{ COL_NOTE, "" },
	};
	char cell[CELL_MAX];
	size_t i;

	fake_make(1);
	fake.sched.rows[0].state = QUEUE_STATE_CLOSING;
	fake.sched.rows[0].restarts = 9;
	fake.queues[0].local_used = 5;
	fake.queues[0].maildrop = 1;
	fake.queues[0].incoming = 2;
	fake.queues[0].active = 4;
	fake.queues[0].deferred = 123456;
	fake.queues[0].untried = 17;
	fake.queues[0].hold = 6;
	fake.queues[0].corrupt = 7;
	fake.queues[0].active_recipients = 10;
	fake.queues[0].failed = 11;
	fake.queues[0].expired = 12;
	fake.queues[0].io_errors = 13;
	fake.queues[0].rate_in = 105;
	fake.queues[0].rate_out = 1230;
	fake.queues[0].oldest_wall = FAKE_WALL - 61 * USEC_PER_SEC;
	fake_sample(&model);
	cr_assert_eq(ARRAY_LEN(rows), NCOLS);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		columns[rows[i].column].fmt(&model.rows[0], cell);
		cr_expect_str_eq(cell, rows[i].want, "%s: %s",
		    columns[rows[i].column].key, cell);
	}
}

#define UNPUBLISHED INT64_MAX

Test(qtop_format, notes_and_kinds)
{
	static const struct {
		const char *want;
		uint32_t state;
		int error;
		usec_t beat_age, manual;
		uint32_t read_only, scan_only;
		int32_t used;
		enum line_kind kind;
	} rows[] = {
		{ "", QUEUE_STATE_OPEN, 0, 1, 0, 0, 0, 0, LINE_DIM },
		{ "", QUEUE_STATE_OPEN, 0, 1, 0, 0, 0, 1, LINE_PLAIN },
		{ "", QUEUE_STATE_OPEN, 0, 1, 0, 0, 0, 9, LINE_LOADED },
		{ "", QUEUE_STATE_CLOSING, 0, 1, 0, 0, 0, 0, LINE_CLOSED },
		{ "", QUEUE_STATE_CLOSING, 0, 1, 0, 0, 0, 9, LINE_CLOSED },
		{ "for a fault", QUEUE_STATE_DISABLED, 0, 1, 0, 0, 0, 0,
		    LINE_BAD },
		{ "", QUEUE_STATE_QUARANTINED, 0, 1, 0, 0, 0, 0, LINE_BAD },
		{ "load by hand for 7s", QUEUE_STATE_OPEN, 0, 1, 7, 0, 0, 1,
		    LINE_PLAIN },
		{ "no doorbell: scanning", QUEUE_STATE_OPEN, 0, 1, 7, 0, 1, 1,
		    LINE_BAD },
		{ "disk: no delivery starts", QUEUE_STATE_OPEN, 0, 1, 0, 1, 1,
		    1, LINE_BAD },
		{ "stale for 11s", QUEUE_STATE_OPEN, 0, 11, 0, 1, 0, 1,
		    LINE_BAD },
		{ "nothing published yet", QUEUE_STATE_OPEN, 0, UNPUBLISHED, 0,
		    0, 0, 1, LINE_BAD },
		{ "no page: Permission denied", QUEUE_STATE_OPEN, -EACCES, 99,
		    0, 0, 0, 1, LINE_BAD },
	};
	char cell[CELL_MAX];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		fake_make(1);
		fake.queue_error = rows[i].error;
		fake.sched.rows[0].state = rows[i].state;
		fake.sched.rows[0].load_pct = 5;
		fake.sched.rows[0].flags = SCHED_ROW_MANUAL;
		fake.sched.rows[0].manual_until_mono =
		    FAKE_MONO + rows[i].manual * USEC_PER_SEC;
		fake.queues[0].head.beat_mono = rows[i].beat_age == UNPUBLISHED
		    ? 0
		    : FAKE_MONO - rows[i].beat_age * USEC_PER_SEC;
		fake.queues[0].read_only = rows[i].read_only;
		fake.queues[0].scan_only = rows[i].scan_only;
		fake.queues[0].local_used = rows[i].used;
		fake_sample(&model);
		columns[COL_NOTE].fmt(&model.rows[0], cell);
		cr_expect_str_eq(cell, rows[i].want, "row %zu: %s", i, cell);
		cr_expect_eq(format_row_kind(&model, &model.rows[0]),
		    rows[i].kind, "row %zu", i);
	}
}

/* Why it is not open, and until when. */
Test(qtop_format, reasons)
{
	static const struct {
		struct sched_row row;
		const char *want;
		enum line_kind kind;
	} rows[] = {
		{ { .state = QUEUE_STATE_DISABLED,
		      .flags = SCHED_ROW_OVERRIDE,
		      .until_mono = FAKE_MONO + 7200 * USEC_PER_SEC,
		      .reason = "new disk" },
		    "by hand for 2h: new disk", LINE_CLOSED },
		{ { .state = QUEUE_STATE_DISABLED,
		      .flags = SCHED_ROW_OVERRIDE },
		    "by hand for ever", LINE_CLOSED },
		{ { .state = QUEUE_STATE_DISABLED, .reason = "not mounted" },
		    "for a fault: not mounted", LINE_BAD },
		{ { .state = QUEUE_STATE_QUARANTINED,
		      .until_mono = FAKE_MONO + 5 * USEC_PER_SEC,
		      .reason = "todo-proc, signal 11" },
		    "tried again in 5s: todo-proc, signal 11", LINE_BAD },
		{ { .state = QUEUE_STATE_CLOSING,
		      .until_mono = FAKE_MONO + 600 * USEC_PER_SEC },
		    "hands its mail over in 10m", LINE_CLOSED },
		{ { .state = QUEUE_STATE_CLOSING,
		      .flags = SCHED_ROW_EVACUATING,
		      .reason = "idle" },
		    "hands its mail over: idle", LINE_CLOSED },
		{ { .state = QUEUE_STATE_CLOSING }, "", LINE_CLOSED },
		{ { .state = QUEUE_STATE_OPEN,
		      .flags = SCHED_ROW_SILENT,
		      .reason = "deliver-smtp/1 has given no sign" },
		    "a process hangs: deliver-smtp/1 has given no sign",
		    LINE_BAD },
		{ { .state = QUEUE_STATE_OPEN,
		      .flags = SCHED_ROW_FULL,
		      .reason = "/q has no inodes free" },
		    "no new mail: /q has no inodes free", LINE_BAD },
		{ { .state = QUEUE_STATE_OPEN,
		      .flags = SCHED_ROW_LATE,
		      .reason = "disk late for 12 s (a move waits)" },
		    "disk late for 12 s (a move waits)", LINE_BAD },
		{ { .state = QUEUE_STATE_OPEN, .reason = "an old page" }, "",
		    LINE_DIM },
		{ { .state = QUEUE_STATE_OPEN,
		      .flags = SCHED_ROW_MANUAL,
		      .load_pct = 95,
		      .manual_until_mono = FAKE_MONO + 99 * USEC_PER_SEC },
		    "load by hand for 99s", LINE_LOADED },
		{ { .state = QUEUE_STATE_DISABLED,
		      .flags = SCHED_ROW_OVERRIDE,
		      .reason = "\x1b[2J\x1b]0;x\x07\xff\xc2\x9b" },
		    "by hand for ever: ?[2J?]0;x????", LINE_CLOSED },
	};
	char cell[CELL_MAX];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		fake_make(1);
		fake.sched.rows[0] = rows[i].row;
		fake.sched.rows[0].queue = 1;
		fake_sample(&model);
		columns[COL_NOTE].fmt(&model.rows[0], cell);
		cr_expect_str_eq(cell, rows[i].want, "row %zu: %s", i, cell);
		cr_expect_eq(format_row_kind(&model, &model.rows[0]),
		    rows[i].kind, "row %zu", i);
	}
	fake.queue_error = -ENOENT;
	fake.sched.rows[0].reason[0] = '\0';
	fake_sample(&model);
	buf_reset(&text);
	cr_expect_eq(format_note(&model.rows[0], &text), 0);
	cr_expect_str_eq(buf_str(&text),
	    "1: by hand for ever; no page: No such file or directory");
}

Test(qtop_format, the_last_change)
{
	fake_make(1);
	fake_sample(&model);
	cr_expect_eq(format_change(&model, &text), 0);
	cr_expect_str_empty(buf_str(&text));
	fake.sched.change_wall = FAKE_WALL - 300 * USEC_PER_SEC;
	snprintf(fake.sched.change, sizeof(fake.sched.change),
	    "queue 2 added: load 95 %%\x1b[0m");
	fake_sample(&model);
	cr_expect_eq(format_change(&model, &text), 0);
	cr_expect_str_eq(
	    buf_str(&text), "last change 5m ago: queue 2 added: load 95 %?[0m");
	buf_reset(&text);
	cr_expect_eq(format_batch(&model, "t", &text), 0);
	cr_expect_not_null(strstr(buf_str(&text), "fixed\nlast change 5m ago"));
}

/* What a queue has not told is not shown as nothing. */
Test(qtop_format, I10_unknown_is_not_zero)
{
	static const enum column_id unknown[] = { COL_LOAD, COL_IN, COL_ACTIVE,
		COL_DEFERRED, COL_UNTRIED, COL_HOLD, COL_CORRUPT };
	char cell[CELL_MAX];
	size_t i;

	fake_make(1);
	fake.queue_error = -ENOENT;
	fake_sample(&model);
	for (i = 0; i < ARRAY_LEN(unknown); i++) {
		columns[unknown[i]].fmt(&model.rows[0], cell);
		cr_expect_str_eq(cell, "?");
	}
}

/* Cells are as wide as their columns whatever they hold, so columns stay
 * where they are. */
Test(qtop_format, I12_absurd_values_fit_their_columns)
{
	char cell[CELL_MAX];
	uint32_t i, c;

	fake_make(PAGE_QUEUES_MAX);
	for (i = 0; i < PAGE_QUEUES_MAX; i++) {
		struct queue_page *p = &fake.queues[i];

		/* Not clamped, as a reader would have it. */
		memset((char *)p, i % 2 == 0 ? 0xff : 0x7f, sizeof(*p));
		fake.sched.rows[i].state = i % 7;
		fake.sched.rows[i].queue = 4095 - i;
		fake.sched.rows[i].restarts = UINT32_MAX;
		fake.sched.rows[i].load_pct = UINT32_MAX - i;
		fake.sched.rows[i].manual_until_mono =
		    i % 3 == 0 ? INT64_MAX : INT64_MIN;
	}
	fake_sample(&model);
	for (c = 0; c < NCOLS; c++) {
		for (i = 0; i < model.nrows && !columns[c].rest; i++) {
			columns[c].fmt(&model.rows[i], cell);
			cr_expect_leq((int)strlen(cell), columns[c].width,
			    "%s: %s", columns[c].key, cell);
		}
		columns[c].fmt(&model.total, cell);
		cr_expect_leq((int)strlen(cell), columns[c].width,
		    "total %s: %s", columns[c].key, cell);
	}
}

/* ---- lines ---- */

Test(qtop_format, batch)
{
	fake_make(2);
	fake.queues[1].local_used = 5;
	fake_sample(&model);
	cr_assert_eq(format_batch(&model, "mine", &text), 0);
	cr_expect_str_eq(buf_str(&text),
	    "qscheduler mine: pid 4711, 2 open (1 to 20), 2 on disk, load "
	    "25% of 90%, fixed\n"
	    "QUEUE STATE          LOCAL    REMOTE LOAD%    IN ACTIVE DEFERRED"
	    "  HOLD CORRUPT RATE-IN RATE-OUT OLDEST RESTARTS RCPTS FAILED "
	    "EXPIRED IO-ERR UNTRIED NOTE\n"
	    "TOTAL                 5/20      0/40    25     0      0        0"
	    "     0       0    0.00     0.00      -        0     0      0 "
	    "      0      0       0\n"
	    "    1 open            0/10      0/20     0     0      0        0"
	    "     0       0    0.00     0.00      -        0     0      0 "
	    "      0      0       0\n"
	    "    2 open            5/10      0/20    50     0      0        0"
	    "     0       0    0.00     0.00      -        0     0      0 "
	    "      0      0       0\n"
	    "threshold = 90.00 , qcount = 2, qconf = 2, qmin = 1, qmax = 20, "
	    "mean = 25.00, count_by_hand = 0, changes = 0\n");
}

Test(qtop_format, A5_trouble_is_told)
{
	static const struct {
		int error;
		usec_t age;
		const char *want;
	} rows[] = {
		{ 0, 1, "" },
		{ 0, 14,
		    "/t.qscheduler: STALE: no sign of life of the supervisor "
		    "for 14s" },
		{ -ENOENT, 1,
		    "instance t: no supervisor of this instance is "
		    "running: start qscheduler" },
		{ -EBADMSG, 1,
		    "/t.qscheduler: damaged, or of another version" },
		{ -EACCES, 1, "/t.qscheduler: Permission denied" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		fake_make(1);
		fake.sched_error = rows[i].error;
		fake.sched.head.beat_mono =
		    FAKE_MONO - rows[i].age * USEC_PER_SEC;
		fake_sample(&model);
		buf_reset(&text);
		cr_assert_eq(format_trouble(&model, "t", &text), 0);
		cr_expect_str_eq(buf_str(&text), rows[i].want);
	}
}

Test(qtop_format, summary)
{
	fake_make(2);
	fake.sched.dynamic = 1;
	fake.sched.mean_load_pct = 45; /* of a second ago */
	fake.queues[1].local_used = 8;
	fake.sched.held_count = 4;
	fake.sched.held_until_mono = FAKE_MONO + 120 * USEC_PER_SEC;
	fake_sample(&model);
	cr_assert_eq(format_summary(&model, "", LAYOUT_WIDE, &text), 0);
	cr_expect_str_eq(buf_str(&text),
	    "qscheduler: pid 4711, 2 open (1 to 20), 2 on disk, load 40% of "
	    "90%, dynamic, 4 queues wanted by hand for 2m");
	buf_reset(&text);
	fake.sched_error = -ENOENT;
	fake_sample(&model);
	cr_assert_eq(format_summary(&model, "x", LAYOUT_WIDE, &text), 0);
	cr_expect_str_eq(buf_str(&text), "qscheduler x: not running");
}

/* ---- order ---- */

static const char *
order(enum column_id column, bool reversed)
{
	uint32_t i;

	buf_reset(&text);
	model_sort(&model, column, reversed);
	for (i = 0; i < model.nrows; i++)
		cr_assert_eq(
		    buf_printf(&text, "%u", model.rows[i].sched.queue), 0);
	return buf_str(&text);
}

Test(qtop_format, sorted)
{
	fake_make(4);
	fake.queues[1].local_used = 5;
	fake.queues[3].local_used = 9;
	fake.queues[2].deferred = UINT64_MAX;
	fake.queues[0].oldest_wall = 1;
	fake.queues[3].read_only = 1;
	fake.sched.rows[2].state = QUEUE_STATE_CLOSING;
	fake_sample(&model);
	cr_expect_str_eq(order(COL_LOAD, false), "4213");
	cr_expect_str_eq(order(COL_LOAD, true), "1324", "equal: by number");
	cr_expect_str_eq(order(COL_DEFERRED, false), "3124");
	cr_expect_str_eq(order(COL_OLDEST, false), "1234");
	cr_expect_str_eq(order(COL_OLDEST, true), "2341");
	cr_expect_str_eq(order(COL_QUEUE, false), "1234");
	cr_expect_str_eq(order(COL_QUEUE, true), "4321");
	cr_expect_str_eq(order(COL_STATE, false), "4312", "the gravest first");
}

Test(qtop_format, sort_key_goes_round_both_ways)
{
	enum column_id c = COL_QUEUE;
	int n = 0;

	do {
		const enum column_id before = c;

		c = column_next_sort(c);
		cr_assert_not_null(columns[c].value);
		cr_assert_eq(column_last_sort(c), before);
		cr_assert_lt(++n, NCOLS + 1);
	} while (c != COL_QUEUE);
	cr_expect_gt(n, 5);
}
