/* qtop/options.h - the command line (qtop(8)).
 *
 * Soft: -EINVAL with what is wrong in *ret_error, fit to be shown and short
 * whatever was typed (A1). */
#ifndef QTOP_OPTIONS_H
#define QTOP_OPTIONS_H

#include "base/buf.h"

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
	uint64_t count;        /* of looks; 0: for ever */
	const char *instance;  /* -i, NULL */
	const char *conf_path; /* -c, NULL */
};

int options_parse(
    int argc, char **argv, struct options *ret_options, struct buf *ret_error);
/* A line for each option. -ENOMEM. */
int options_help(struct buf *out);

#endif
