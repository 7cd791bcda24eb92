/* setqload/options.h - the command line (setqload(8)).
 *
 * Soft: -EINVAL with what is wrong in *ret_error, fit to be shown and short
 * whatever was typed (A1). */
#ifndef SETQLOAD_OPTIONS_H
#define SETQLOAD_OPTIONS_H

#include "base/buf.h"

#define LOAD_LIMIT_MAX  1000000 /* as the supervisor has it */
#define LOAD_LIMIT_BARE 100     /* of a number without a limit: percent */

#define OPTIONS_USAGE                                            \
	"usage: setqload -q QUEUE [-i INSTANCE | -c FILE] LOCAL" \
	" [REMOTE]"

enum task {
	TASK_SET,
	TASK_HELP,
	TASK_VERSION,
};

struct ratio {
	uint32_t used, limit; /* 0/0: not given */
};

struct options {
	enum task task;
	int32_t queue; /* 1..CONF_QUEUE_NUM_MAX */
	struct ratio local, remote;
	const char *instance;  /* -i, NULL */
	const char *conf_path; /* -c, NULL */
};

int options_parse(
    int argc, char **argv, struct options *ret_options, struct buf *ret_error);

#endif
