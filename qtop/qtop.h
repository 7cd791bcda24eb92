/* qtop/qtop.h - the command qtop(8), and the source of each part:
 *
 *	qtop      the command
 *	options   the command line
 *	batch     `qtop -b`: plain text
 *	screen    the live screen: keys, time, signals
 *	view      what of a model is shown, and the line of keys
 *	draw      a view on the screen (ncurses)
 *	help      the help screen
 *	terminal  whether a terminal can show a screen
 *
 * model.h has the parts without terminal and clock.
 */
#ifndef QTOP_QTOP_H
#define QTOP_QTOP_H

#include "qtop/model.h"

/* All but main(). Exit codes of sysexits.h, as of setqload: 0; 64 usage; 69 no
 * supervisor; 71 the system failed; 74 output that cannot be written; 77 the
 * instance of another user; 78 configuration. */
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

#define DELAY_MIN (USEC_PER_SEC / 10)
#define DELAY_MAX (86400 * USEC_PER_SEC)

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

/* Plain text to standard output, reading after reading. An exit code; the
 * reason is on standard error. */
int batch_run(const struct options *options, const char *instance,
    const struct model_source *source);
/* The exit code of a model that could not be read, or is old. */
int model_exit_code(const struct model *model);

/* ---- view ----
 *
 * Pure. -ENOMEM: the line is cut. */

enum view_filter {
	FILTER_ALL,
	FILTER_TROUBLE, /* not open, faulty, or with a value that is not normal
			 */
	FILTER_BUSY,    /* with mail that moves */
	NFILTERS,
};

struct view {
	const struct model *model; /* sorted */
	const char *instance;
	enum column_id sort;
	bool reversed;
	enum view_filter filter;
	uint32_t columns; /* page of columns; drawing keeps it in range */
	uint32_t first;   /* row at the top; drawing keeps it in range */
	bool frozen;
	usec_t age; /* of what is shown */
	usec_t delay;
	bool help;
	uint32_t help_first; /* line at the top; drawing keeps it in range */
	/* Chosen by view_filter(). */
	const struct model_row *rows[PAGE_QUEUES_MAX];
	uint32_t nrows;
};

/* The rows that the filter lets through, after each change of the model. */
void view_filter(struct view *view);
/* The state of the screen, for the line of keys. */
struct view_extent {
	const struct layout *layout;
	uint32_t rows; /* that fit */
};
/* The line of keys: what fits, the more important parts first. */
int view_keys(const struct view *view, const struct view_extent *extent,
    int width, struct buf *out);
/* Half as long or twice as long, in round steps from 0.1 s to a day. */
usec_t view_shorter(usec_t delay);
usec_t view_longer(usec_t delay);

/* ---- draw ----
 *
 * A view on a screen of any size. Bytes of a page reach the terminal as
 * printable characters only. Order of lines: summary; trouble, or the last
 * change; titles; total; queues; messages by age, where there is room; notes,
 * when their column has no room; keys. */

/* Once, when the terminal is there. */
void draw_prepare(void);
void draw_view(struct view *view);
/* draw_view() of each character, whatever is on the terminal. */
void draw_again(struct view *view);
/* The number of rows of queues that fit. */
uint32_t draw_rows_shown(const struct view *view);
/* Draws a line in the look of this kind, cut at the edge; all of the line in
 * reverse for a heading. */
void draw_text(int y, enum line_kind kind, const char *text);
void draw_heading(int y, const char *text);

/* ---- help ---- */

/* Draws the help screen from view->help_first on. */
void help_draw(struct view *view);

/* ---- terminal ---- */

/* -ENOTTY: standard input or output is not a terminal; -ENODEV: TERM names
 * none, or none whose cursor can be moved. */
int terminal_check(void);

/* ---- screen ---- */

/* One wake-up per delay, key, or signal. The terminal is restored however the
 * command ends. An exit code. */
int screen_run(const struct options *options, const char *instance,
    const struct model_source *source);

#endif
