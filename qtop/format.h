/* qtop/format.h - a model as lines of text, for the screen and for batch
 * output. Pure: nothing here knows a terminal or reads a clock.
 * Soft: -ENOMEM, the line is cut then.
 */
#ifndef QTOP_FORMAT_H
#define QTOP_FORMAT_H

#include "base/buf.h"
#include "qtop/column.h"

#define FORMAT_WIDE INT32_MAX /* a width that all columns fit */

/* How a line is to be drawn. */
enum line_kind {
	LINE_PLAIN,
	LINE_DIM,  /* nothing happens there */
	LINE_WARN, /* loaded, closing, disabled by hand */
	LINE_BAD,  /* stale, disabled for a fault, failing */
};

/* Which columns fit into so many characters. */
void format_choose(int width, bool ret_shown[NCOLS]);

/* Each appends one line without its newline. */

/* "qscheduler mine: pid 4711, 2 open (1 to 20), 2 on disk, …" */
int format_summary(
    const struct model *model, const char *instance, struct buf *out);
int format_titles(const bool shown[NCOLS], struct buf *out);
int format_row(
    const struct model_row *row, const bool shown[NCOLS], struct buf *out);
enum line_kind
format_row_kind(const struct model *model, const struct model_row *row);
/* "last change 5m ago: queue 6 added …", or nothing. */
int format_change(const struct model *model, struct buf *out);
/* "3: by hand for 2h: new disk", or nothing. */
int format_note(const struct model_row *row, struct buf *out);
/* "threshold = 90.00 , qcount = 5, qconf = 5", as parsers know it, and more
 * behind it. */
int format_threshold(const struct model *model, struct buf *out);
/* What is wrong with the whole; nothing is appended when nothing is. */
int format_trouble(
    const struct model *model, const char *instance, struct buf *out);

/* All of it, for batch output, with newlines. */
int
format_batch(const struct model *model, const char *instance, struct buf *out);

#endif
