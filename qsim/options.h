/* qsim/options.h - the command line (qsim(1)).
 *
 * Soft: -EINVAL with what is wrong in *ret_error, fit to be shown and short
 * whatever was typed (A1). Strings point into argv.
 */
#ifndef QSIM_OPTIONS_H
#define QSIM_OPTIONS_H

#include "base/buf.h"

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

int options_parse(
    int argc, char **argv, struct options *ret_options, struct buf *ret_error);

#endif
