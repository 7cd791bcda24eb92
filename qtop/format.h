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
	LINE_WARN, /* loaded, closing */
	LINE_BAD,  /* stale, disabled, failing */
};

/* Which columns fit into so many characters. */
void format_choose(int width, bool ret_shown[NCOLS]);

/* Each appends one line without its newline. */

/* "qscheduler mine: 2 queues in use, 2 on disk, …" */
int format_summary(
    const struct model *model, const char *instance, struct buf *out);
int format_titles(const bool shown[NCOLS], struct buf *out);
int format_row(
    const struct model_row *row, const bool shown[NCOLS], struct buf *out);
enum line_kind
format_row_kind(const struct model *model, const struct model_row *row);
/* "threshold = 90.00 , qcount = 5, qconf = 5", as parsers know it. */
int format_threshold(const struct model *model, struct buf *out);
/* What is wrong with the whole; nothing is appended when nothing is. */
int format_trouble(
    const struct model *model, const char *instance, struct buf *out);

/* All of it, for batch output, with newlines. */
int
format_batch(const struct model *model, const char *instance, struct buf *out);

#endif
