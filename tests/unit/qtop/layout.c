/* The columns that fit, and what else depends on the width. */
#include "qtop/qtop.h"

#include "fake.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct model model;
static struct buf text;
static struct view view;

static void
done(void)
{
	buf_done(&text);
}

TestSuite(qtop_layout, .fini = done);

static const char *
titles(int width, uint32_t page, struct layout *ret_layout)
{
	layout_choose(&model, width, page, ret_layout);
	buf_reset(&text);
	cr_assert_eq(format_titles(ret_layout->shown, &text), 0);
	return buf_str(&text);
}

Test(qtop_layout, the_columns_that_matter_stay)
{
	static const struct {
		int width;
		const char *want;
		uint32_t hidden;
	} rows[] = {
		{ 200,
		    "QUEUE STATE          LOCAL    REMOTE LOAD%    IN ACTIVE "
		    "DEFERRED  HOLD CORRUPT RATE-IN RATE-OUT OLDEST RESTARTS "
		    "RCPTS FAILED EXPIRED IO-ERR UNTRIED NOTE",
		    0 },
		{ 80,
		    "QUEUE STATE         REMOTE LOAD%    IN ACTIVE DEFERRED  "
		    "HOLD CORRUPT OLDEST",
		    10 },
		{ 60,
		    "QUEUE STATE      LOAD%    IN DEFERRED  HOLD CORRUPT "
		    "OLDEST",
		    12 },
		{ 40, "QUEUE STATE      LOAD%  HOLD CORRUPT", 15 },
		{ 20, "QUEUE STATE", 18 },
		{ 11, "QUEUE  HOLD", 18 },
		{ 1, "QUEUE", 19 },
		{ -1, "QUEUE", 19 },
	};
	struct layout l;
	size_t i;

	fake_make(2);
	fake_sample(&model);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		cr_expect_str_eq(titles(rows[i].width, 0, &l), rows[i].want,
		    "width %d: %s", rows[i].width, buf_str(&text));
		cr_expect_eq(l.hidden, rows[i].hidden, "width %d: %u",
		    rows[i].width, l.hidden);
	}
}

/* Each thing that is not normal is shown at 80 columns. */
Test(qtop_layout, what_is_not_normal_is_always_shown)
{
	struct layout l;

	fake_make(2);
	fake.sched.rows[1].restarts = 1;
	fake_sample(&model);
	cr_expect_not_null(strstr(titles(80, 0, &l), "HOLD CORRUPT"));
	cr_expect(l.shown[COL_RESTARTS], "%s", buf_str(&text));
	cr_expect_not(l.shown[COL_ERRORS]);
	fake.queues[0].io_errors = 1;
	fake_sample(&model);
	(void)titles(80, 0, &l);
	cr_expect(l.shown[COL_RESTARTS] && l.shown[COL_ERRORS] &&
		l.shown[COL_HOLD] && l.shown[COL_CORRUPT] && l.shown[COL_STATE],
	    "%s", buf_str(&text));
}

/* Each width from a column on shows every column on some page, none twice but
 * QUEUE and STATE, and nothing beyond its edge. */
Test(qtop_layout, the_arrow_keys_reach_all_columns)
{
	struct layout l;
	uint32_t page;
	int width, i;

	fake_make(2);
	fake_sample(&model);
	for (width = 16; width < 200; width++) {
		int seen[NCOLS] = { 0 };

		for (page = 0; page < NCOLS; page++) {
			cr_expect_leq((int)strlen(titles(width, page, &l)),
			    width, "width %d: %s", width, buf_str(&text));
			if (l.page != page)
				break;
			for (i = 0; i < NCOLS; i++)
				seen[i] += l.shown[i];
		}
		cr_expect_eq(l.after, 0, "width %d", width);
		for (i = 0; i < NCOLS; i++)
			cr_expect(
			    seen[i] == 1 || (seen[i] > 1 && i <= COL_STATE),
			    "width %d: %s %d times", width, columns[i].key,
			    seen[i]);
	}
}

Test(qtop_layout, rows_are_no_wider_than_the_screen)
{
	struct layout l;
	int width;

	fake_make(1);
	memset(&fake.queues[0], 0x7f, sizeof(fake.queues[0]));
	fake_sample(&model);
	for (width = 5; width < 200; width++) {
		layout_choose(&model, width, 0, &l);
		l.shown[COL_NOTE] = false; /* as long as its text */
		buf_reset(&text);
		cr_assert_eq(format_row(&model.rows[0], l.shown, &text), 0);
		cr_expect_leq((int)text.len, width, "width %d", width);
	}
}

/* ---- lines of parts ---- */

Test(qtop_layout, a_summary_is_not_cut_in_a_word)
{
	static const struct {
		int width;
		const char *want;
	} rows[] = {
		{ 80,
		    "qscheduler t: pid 4711, 2 open (1 to 20), 2 on disk, "
		    "load 0% of 90%, fixed" },
		{ 70,
		    "qscheduler t: pid 4711, 2 open (1 to 20), load 0% of "
		    "90%, fixed" },
		{ 40, "qscheduler t: pid 4711, 2 open (1 to 20)" },
		{ 33, "qscheduler t: 2 open (1 to 20)" },
		{ 20, "qscheduler t: fixed" },
		{ 3, "qscheduler t: " },
	};
	size_t i;

	fake_make(2);
	fake_sample(&model);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		buf_reset(&text);
		cr_assert_eq(
		    format_summary(&model, "t", rows[i].width, &text), 0);
		cr_expect_str_eq(buf_str(&text), rows[i].want, "%d: %s",
		    rows[i].width, buf_str(&text));
	}
}

static const char *
keys(int width, uint32_t fit)
{
	struct layout l;
	const struct view_extent extent = { &l, fit };

	layout_choose(&model, width, view.columns, &l);
	view_filter(&view);
	buf_reset(&text);
	cr_assert_eq(view_keys(&view, &extent, width, &text), 0);
	return buf_str(&text);
}

Test(qtop_layout, the_line_of_keys)
{
	fake_make(3);
	fake_sample(&model);
	view = (struct view){ .model = &model, .delay = 2 * USEC_PER_SEC };
	cr_expect_str_eq(keys(80, 10),
	    "q quit  h help  right: +10 columns  p freeze  f show: all  "
	    "s sort: QUEUE");
	cr_expect_str_eq(keys(40, 2), "q quit  h help  right: +15 columns");
	cr_expect_str_eq(keys(200, 2),
	    "q quit  h help  up, down: 1-2 of 3  p freeze  f show: all  "
	    "s sort: QUEUE  +- every 2 s");
	view.columns = 1;
	cr_expect_not_null(strstr(keys(150, 2), "  left: columns"));
	cr_expect_not_null(strstr(keys(80, 2), "left, right: +2 columns"));
	cr_expect_not_null(strstr(keys(40, 2), "left, right: +13 columns"));
	view.frozen = true;
	view.age = 3 * USEC_PER_SEC;
	view.reversed = true;
	view.filter = FILTER_TROUBLE;
	view.delay = USEC_PER_SEC / 10;
	cr_expect_str_eq(keys(200, 2),
	    "q quit  h help  FROZEN for 3s: p goes on  f show: not normal  "
	    "s sort: QUEUE reversed  +- every 0.1 s");
}

Test(qtop_layout, filters)
{
	static const struct {
		enum view_filter filter;
		const char *want;
	} rows[] = {
		{ FILTER_ALL, "123456" },
		{ FILTER_TROUBLE, "2456" },
		{ FILTER_BUSY, "2356" },
	};
	uint32_t i, j;

	fake_make(6);
	fake.sched.rows[1].state = QUEUE_STATE_CLOSING;
	fake.queues[2].local_used = 1;
	fake.queues[3].hold = 1;
	fake.queues[4].read_only = 1;
	fake.queues[5].head.beat_mono = 0;
	fake_sample(&model);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		view =
		    (struct view){ .model = &model, .filter = rows[i].filter };
		view_filter(&view);
		buf_reset(&text);
		for (j = 0; j < view.nrows; j++)
			cr_assert_eq(
			    buf_printf(&text, "%u", view.rows[j]->sched.queue),
			    0);
		cr_expect_str_eq(
		    buf_str(&text), rows[i].want, "%u: %s", i, buf_str(&text));
	}
}

Test(qtop_layout, delays)
{
	static const struct {
		usec_t delay, shorter, longer; /* tenths of a second */
	} rows[] = {
		{ 1, 1, 2 },
		{ 20, 10, 50 },
		{ 33, 20, 50 },
		{ 600, 300, 3000 },
		{ 864000, 36000, 864000 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const usec_t delay = rows[i].delay * 100000;

		cr_expect_eq(view_shorter(delay), rows[i].shorter * 100000);
		cr_expect_eq(view_longer(delay), rows[i].longer * 100000);
	}
}

/* ---- messages by age ---- */

Test(qtop_layout, messages_by_age)
{
	uint32_t i;

	fake_make(2);
	for (i = 0; i < PAGE_AGES; i++)
		fake.queues[i % 2].age[i] = 100000 + i;
	fake.queues[0].age[0] = 7;
	fake_sample(&model);
	cr_assert_eq(format_age_titles(&text), 0);
	cr_expect_str_eq(buf_str(&text),
	    "QUEUE    <5   <10   <20   <40   <80  <160  <320  <640 <1280 "
	    "1280+ minutes old");
	cr_expect_leq(text.len, FORMAT_AGES_WIDTH);
	buf_reset(&text);
	cr_assert_eq(format_age_row(&model.rows[0], &text), 0);
	cr_expect_str_eq(buf_str(&text),
	    "    1     7     0  100k     0  100k     0  100k     0  100k     "
	    "0");
	buf_reset(&text);
	cr_assert_eq(format_age_row(&model.total, &text), 0);
	cr_expect_str_eq(buf_str(&text),
	    "TOTAL     7  100k  100k  100k  100k  100k  100k  100k  100k  "
	    "100k");
}
