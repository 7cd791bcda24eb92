/* qsim/qsim.h - the whole command but main(), and what its commands share.
 *
 *   qsim.c       the table of commands
 *   options.c    the command line (qsim(1))
 *   output.c     complaints, exit codes, times
 *   progress.c   how far a run is, on standard error
 *   replay.c, explain.c, published.c, compare.c   a command each
 *
 * Exit codes: 0; 1 a row is outside; 100 bad usage or a broken scenario; 111
 * memory or output. The reason is on standard error in one line.
 */
#ifndef QSIM_QSIM_H
#define QSIM_QSIM_H

#include <stdio.h>

#include "base/buf.h"
#include "qsim/scenario.h"
#include "qsim/simulate.h"

#define QSIM_OUTSIDE     1

/* ---- the command line ---- */

#define OPTIONS_SETS_MAX 32
#define OPTIONS_RUNS_MAX 10000

enum task {
	TASK_REPLAY,
	TASK_EXPLAIN,
	TASK_PUBLISHED,
	TASK_COMPARE,
	TASK_HELP,
	TASK_VERSION,
	TASK_NTASKS,
};

struct options {
	enum task task;
	bool progress; /* also when standard error is no terminal */
	uint32_t runs;
	uint64_t seed;
	bool seed_given;
	const char *sets[OPTIONS_SETS_MAX]; /* "name=value,name=value" */
	uint32_t nsets;
	bool plot;
	char **files;
	uint32_t nfiles;
};

/* -EINVAL with what is wrong in *ret_error, fit to be shown and short whatever
 * was typed. Strings point into argv. */
int options_parse(
    int argc, char **argv, struct options *ret_options, struct buf *ret_error);

/* ---- commands ---- */

int qsim_main(int argc, char **argv);

/* The commands; each prints to standard output and returns an exit code. */
int replay_main(const struct options *o);
int explain_main(const struct options *o);
int published_main(const struct options *o);
int compare_main(const struct options *o);

/* The line of one selection, as `qsim replay` prints it:
 * TIME MESSAGE TRANSPORT/DESTINATION RECIPIENTS. -ENOMEM. */
int replay_add_line(const struct scenario *sc,
    const struct simulate_selection *selection, struct buf *out);

/* One run of the first file, with progress; *sc is the scenario during the
 * run. An exit code. */
int qsim_run(const struct options *o, const char *what,
    const struct simulate_watch *watch, struct scenario *sc);

/* ---- output ---- */

/* "qsim: TEXT" to standard error; returns code. */
int qsim_complain(int code, const char *text);
/* The exit code of a run that returned 0 or -errno. Writes out what standard
 * output still holds. */
int qsim_ended(int error);
/* To standard output; -EIO. */
int qsim_print(const struct buf *text);
/* An exit code, 0 when *ret_scenario was read. */
int qsim_read(const char *path, struct scenario *ret_scenario);

/* Seconds without trailing zeros: 2.5, 14. */
#define QSIM_TIME_MAX 32
const char *qsim_time(usec_t time, char text[QSIM_TIME_MAX]);

/* Progress on standard error, a few times a second, when that is a terminal or
 * it was asked for; not among lines that go to a terminal themselves. */
struct progress {
	const char *what, *unit;
	bool on, shown;
	usec_t next; /* CLOCK_MONOTONIC */
};
void progress_begin(struct progress *p, const struct options *o,
    const char *what, const char *unit);
/* struct simulate_watch.progress; ctx is the struct progress. */
void progress_tell(void *ctx, uint64_t done, uint64_t all);
void progress_end(struct progress *p);

#endif
