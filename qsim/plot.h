/* qsim/plot.h - how delays are spread, drawn in braille: a row of bars for one
 * set of delays, on an axis of time that grows by powers of ten.
 *
 * Rows of one plot share an axis. Soft: -ENOMEM.
 */
#ifndef QSIM_PLOT_H
#define QSIM_PLOT_H

#include "base/buf.h"

#define PLOT_WIDTH 60 /* characters */

struct plot_axis {
	double low, high; /* powers of ten of a second */
};

/* An axis that has room for these too; {0} is one for nothing yet. */
void plot_axis_add(struct plot_axis *axis, const double *delays, uint32_t n);
/* Lines of bars, each behind its label; the bars are as high as the share of
 * delays, the highest fills the lines. */
int plot_add_bars(const struct plot_axis *axis, const char *label,
    const double *delays, uint32_t n, struct buf *out);
int plot_add_axis(const struct plot_axis *axis, struct buf *out);

#endif
