#include "qtop/model.h"

#define RANK_ALARM 2 /* after QUEUE and STATE */
#define STATE_STAYS                                              \
	26 /* a width that QUEUE, STATE and any other column fit \
	    */

/* Room is counted with the blank in front of each column, the first as well. */
static int
room_of(enum column_id column)
{
	return columns[column].width + 1;
}

static bool
has_alarm(const struct model *model, enum column_id column)
{
	uint32_t i;

	if (!columns[column].is_alarm)
		return false;
	for (i = 0; i < model->nrows; i++)
		if (columns[column].value(&model->rows[i]) != 0)
			return true;
	return false;
}

static int
rank_of(const struct model *model, enum column_id column)
{
	return has_alarm(model, column) ? RANK_ALARM : columns[column].rank;
}

/* The column of the lowest rank that is left and fits; NCOLS: none. */
static enum column_id
next_by_rank(const struct model *model, const bool left[NCOLS], int room)
{
	enum column_id best = NCOLS, i;
	int best_rank = 0;

	for (i = 0; i < NCOLS; i++) {
		const int rank = rank_of(model, i);

		if (left[i] && room_of(i) <= room &&
		    (best == NCOLS || rank < best_rank)) {
			best = i;
			best_rank = rank;
		}
	}
	return best;
}

static void
take(struct layout *l, bool left[NCOLS], enum column_id column, int *room)
{
	l->shown[column] = true;
	left[column] = false;
	*room -= room_of(column);
}

static void
fill_first(
    const struct model *model, struct layout *l, bool left[NCOLS], int room)
{
	enum column_id column;

	take(l, left, COL_QUEUE, &room); /* something is always shown */
	while ((column = next_by_rank(model, left, room)) < NCOLS)
		take(l, left, column, &room);
}

/* The next page: what is left, in the order of the table. False: nothing that
 * is left fits. The last column is as long as its text, so with a page of its
 * own it needs room for its title only. */
static bool
fill_next(struct layout *l, bool left[NCOLS], int width, int room)
{
	bool any = false, unused[NCOLS] = { false };
	enum column_id i;

	take(l, unused, COL_QUEUE, &room);
	if (width >= STATE_STAYS)
		take(l, left, COL_STATE, &room);
	for (i = 0; i < NCOLS; i++) {
		const bool alone = columns[i].rest && !any && room >= 5;

		if (!left[i] || (room_of(i) > room && !alone))
			continue;
		take(l, left, i, &room);
		any = true;
	}
	return any;
}

static void
count(struct layout *l, const bool left[NCOLS])
{
	int i;

	l->hidden = l->after = 0;
	for (i = 0; i < NCOLS; i++) {
		l->hidden += !l->shown[i];
		l->after += left[i];
	}
}

void
layout_choose(const struct model *model, int width, uint32_t page,
    struct layout *ret_layout)
{
	const int room = width == LAYOUT_WIDE ? width : width + 1;
	bool left[NCOLS];
	uint32_t i;

	for (i = 0; i < NCOLS; i++)
		left[i] = true;
	*ret_layout = (struct layout){ 0 };
	fill_first(model, ret_layout, left, room);
	count(ret_layout, left);
	for (i = 1; i <= page && ret_layout->after > 0; i++) {
		struct layout next = { .page = i };

		if (!fill_next(&next, left, width, room))
			return;
		count(&next, left);
		*ret_layout = next;
	}
}
