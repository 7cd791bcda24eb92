/* qtop/qtop.h - the command qtop(8), and the source of each part:
 *
 *	qtop      the command
 *	options   the command line
 *	batch     `qtop -b`: plain text
 *	screen    the live screen (ncurses)
 *	draw      a model on the screen
 *
 * model.h has the parts without terminal and clock.
 */
#ifndef QTOP_QTOP_H
#define QTOP_QTOP_H

#include "qtop/model.h"

/* All but main(). Exit codes: 0; 1 nothing to show, or output that cannot be
 * written; 64 usage; 78 configuration. */
int qtop_main(int argc, char **argv);

/* ---- options: -EINVAL with the complaint in *ret_error ----
 *
 * A complaint is printable and short, whatever was typed. */

#define OPTIONS_USAGE                                             \
	"usage: qtop [-b] [-d SECONDS] [-n COUNT] [-i INSTANCE |" \
	" -c FILE]"

enum task {
	TASK_SCREEN,
	TASK_BATCH,
	TASK_HELP,
	TASK_VERSION,
};

struct options {
	enum task task;
	usec_t delay;
	uint64_t count;        /* of readings; 0: for ever */
	const char *instance;  /* -i, NULL */
	const char *conf_path; /* -c, NULL */
};

int options_parse(
    int argc, char **argv, struct options *ret_options, struct buf *ret_error);
/* A line for each option. -ENOMEM. */
int options_help(struct buf *out);

/* ---- batch ---- */

/* Plain text to standard output, reading after reading. An exit code: 0, or 1
 * with the reason on standard error. */
int batch_run(const struct options *options, const char *instance,
    const struct model_source *source);

/* ---- draw ----
 *
 * A model on a screen of any size. Bytes of a page reach the terminal as
 * printable characters only. Order of lines: summary; trouble, or the last
 * change; titles; total; queues; notes, when their column has no room; keys. */

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
/* The number of rows of queues that fit. */
uint32_t draw_rows_shown(const struct view *view);

/* ---- screen ---- */

/* One wake-up per delay, key, or signal. The terminal is restored however the
 * command ends. An exit code. */
int screen_run(const struct options *options, const char *instance,
    const struct model_source *source);

#endif
