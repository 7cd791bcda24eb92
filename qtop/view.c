#include "qtop/qtop.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- rows ---- */

static bool
has_trouble(const struct model_row *row)
{
	int i;

	if (row_is_faulty(row) || row->sched.state != QUEUE_STATE_OPEN)
		return true;
	for (i = 0; i < NCOLS; i++)
		if (columns[i].is_alarm && columns[i].value(row) != 0)
			return true;
	return false;
}

static bool
is_let_through(const struct view *v, const struct model_row *row)
{
	if (v->filter == FILTER_TROUBLE)
		return has_trouble(row);
	if (v->filter == FILTER_BUSY)
		return format_row_kind(v->model, row) != LINE_DIM;
	return true;
}

void
view_filter(struct view *v)
{
	uint32_t i;

	v->nrows = 0;
	for (i = 0; i < v->model->nrows; i++)
		if (is_let_through(v, &v->model->rows[i]))
			v->rows[v->nrows++] = &v->model->rows[i];
}

/* ---- the time between two readings ---- */

static const usec_t delays[] = { DELAY_MIN, 200000, 500000, 1 * USEC_PER_SEC,
	2 * USEC_PER_SEC, 5 * USEC_PER_SEC, 10 * USEC_PER_SEC,
	30 * USEC_PER_SEC, 60 * USEC_PER_SEC, 300 * USEC_PER_SEC,
	3600 * USEC_PER_SEC, DELAY_MAX };

usec_t
view_shorter(usec_t delay)
{
	size_t i;

	for (i = ARRAY_LEN(delays); i > 0; i--)
		if (delays[i - 1] < delay)
			return delays[i - 1];
	return DELAY_MIN;
}

usec_t
view_longer(usec_t delay)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(delays); i++)
		if (delays[i] > delay)
			return delays[i];
	return DELAY_MAX;
}

/* ---- the line of keys ---- */

static const char *const filter_names[NFILTERS] = {
	[FILTER_ALL] = "all",
	[FILTER_TROUBLE] = "not normal",
	[FILTER_BUSY] = "busy",
};

enum {
	PART_QUIT,
	PART_HELP,
	PART_COLUMNS,
	PART_ROWS,
	PART_FROZEN,
	PART_FILTER,
	PART_SORT,
	PART_DELAY,
	NPARTS,
};

static void
tell_columns(const struct layout *l, struct line_part *part)
{
	const uint32_t n = l->page == 0 ? l->hidden : l->after;

	if (n > 0)
		part_set(part, 0, "%sright: +%" PRIu32 " column%s",
		    l->page == 0 ? "" : "left, ", n, n == 1 ? "" : "s");
	else if (l->page > 0)
		part_set(part, 0, "left: columns");
}

static void
tell_rows(const struct view *v, uint32_t fit, struct line_part *part)
{
	if (fit == 0 || v->nrows <= fit)
		return;
	part_set(part, 4, "up, down: %" PRIu32 "-%" PRIu32 " of %" PRIu32,
	    v->first + 1, v->first + fit, v->nrows);
}

static void
tell_frozen(const struct view *v, struct line_part *part)
{
	char age[CELL_MAX];

	age_format(v->age, age);
	part_set(part, 1, "FROZEN for %s: p goes on", age);
}

int
view_keys(const struct view *v, const struct view_extent *extent, int width,
    struct buf *out)
{
	struct line_part p[NPARTS] = { 0 };

	part_set(&p[PART_QUIT], 2, "q quit");
	part_set(&p[PART_HELP], 3, "h help");
	tell_columns(extent->layout, &p[PART_COLUMNS]);
	tell_rows(v, extent->rows, &p[PART_ROWS]);
	if (v->frozen)
		tell_frozen(v, &p[PART_FROZEN]);
	else
		part_set(&p[PART_FROZEN], 7, "p freeze");
	part_set(&p[PART_FILTER], v->filter == FILTER_ALL ? 6 : 1, "f show: %s",
	    filter_names[v->filter]);
	part_set(&p[PART_SORT], 5, "s sort: %s%s", columns[v->sort].title,
	    v->reversed ? " reversed" : "");
	part_set(&p[PART_DELAY], 8, "+- every %g s",
	    (double)v->delay / (double)USEC_PER_SEC);
	return format_parts(p, NPARTS, "  ", width, out);
}
