/* qtop/column.h - the columns, one table: order, titles, text of a cell, order
 * of rows, help and manual come from it. Pure: a model in, text out. */
#ifndef QTOP_COLUMN_H
#define QTOP_COLUMN_H

#include "base/buf.h"
#include "qtop/model.h"

#define CELL_MAX 240

enum column_id {
	COL_QUEUE,
	COL_STATE,
	COL_LOCAL,
	COL_REMOTE,
	COL_LOAD,
	COL_IN,
	COL_ACTIVE,
	COL_DEFERRED,
	COL_HOLD,
	COL_CORRUPT,
	COL_RATE_IN,
	COL_RATE_OUT,
	COL_OLDEST,
	COL_RESTARTS,
	COL_NOTE,
	NCOLS,
};

struct column {
	const char *key, *title;
	int width;
	bool left; /* text, not a number */
	bool rest; /* the last: as long as its text */
	/* On a narrow screen the column of the highest rank goes first; 0
	 * stays.
	 */
	int rank;
	void (*fmt)(const struct model_row *row, char cell[CELL_MAX]);
	/* For sorting, largest first; NULL: not by this one. */
	uint64_t (*value)(const struct model_row *row);
	const char *help;
};

extern const struct column columns[NCOLS];

/* The total row is told by its state, which no queue that is shown has. */
bool row_is_total(const struct model_row *row);
/* Why it is not as it should be, or nothing. -ENOMEM. */
int note_add(const struct model_row *row, struct buf *out);
/* At most 5 characters: 99999, 123k, 1.2M … */
void count_format(uint64_t n, char cell[CELL_MAX]);
/* At most 5 characters: 59s, 12m, 3h, 5d, >999d; "-" for -1. */
void age_format(usec_t age, char cell[CELL_MAX]);

/* The next column that rows can be sorted by, around the end. */
enum column_id column_next_sort(enum column_id column);
/* Largest first, equal ones by number; by number for COL_QUEUE. */
void model_sort(struct model *model, enum column_id column);

#endif
