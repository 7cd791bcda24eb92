/* qtop/draw.h - a model on the screen of curses, whatever its size. Nothing
 * that a page says reaches the terminal but as characters that can be shown
 * (A7). Order of lines: summary; trouble, or the last change; titles; total;
 * queues; notes, when their column has no room; keys. */
#ifndef QTOP_DRAW_H
#define QTOP_DRAW_H

#include "qtop/column.h"

struct view {
	const struct model *model; /* sorted */
	const char *instance;
	enum column_id sort;
	uint32_t first; /* row at the top; drawing keeps it in range */
	bool help;
};

/* Once, when the terminal is there. */
void draw_prepare(void);
void draw_view(struct view *view);
/* So many rows of queues fit. */
uint32_t draw_rows_shown(const struct view *view);

#endif
