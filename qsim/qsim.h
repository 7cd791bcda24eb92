/* qsim/qsim.h - the whole command but main(), and what its commands share.
 *
 * Exit codes: 0; 1 a row is outside; 100 bad usage or a broken scenario; 111
 * memory or output. The reason is on standard error in one line.
 */
#ifndef QSIM_QSIM_H
#define QSIM_QSIM_H

#include <stdio.h>

#include "qsim/options.h"
#include "qsim/scenario.h"
#include "qsim/simulate.h"

#define QSIM_OUTSIDE 1

int qsim_main(int argc, char **argv);

/* The commands; each prints to standard output and returns an exit code. */
int replay_main(const struct options *o);
int explain_main(const struct options *o);
int published_main(const struct options *o);
int compare_main(const struct options *o);

/* "qsim: TEXT" to standard error; returns code. */
int qsim_complain(int code, const char *text);
/* What became of a run: 0, or -errno of memory and output. Also looks whether
 * all output got out. */
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
