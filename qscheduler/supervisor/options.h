/* qscheduler/supervisor/options.h - the command line of the supervisor
 * (qscheduler(8)).
 *
 * Soft: -EINVAL with what is wrong in *ret_error; the caller shows the usage
 * and exits 100. */
#ifndef QSCHEDULER_SUPERVISOR_OPTIONS_H
#define QSCHEDULER_SUPERVISOR_OPTIONS_H

#include "base/buf.h"

#include <stdio.h>

enum command {
	COMMAND_NONE,
	COMMAND_RUN,
	COMMAND_DUMP,
	COMMAND_CHECK,
	COMMAND_SAMPLE,
	COMMAND_MANUAL,
	COMMAND_HELP,
	COMMAND_VERSION,
};

enum mode {
	MODE_CONF,    /* no option: by parameter queue_mode */
	MODE_FIXED,   /* -s: QUEUE_COUNT queues */
	MODE_DYNAMIC, /* -d: QUEUE_COUNT at least */
	MODE_KEEP,    /* -n: as many as there are on disk */
};

struct options {
	enum command command;
	enum mode mode;
	const char *conf_path; /* NULL: the default */
	int ready_fd;          /* -1: none */
};

int options_parse(
    int argc, char **argv, struct options *ret_options, struct buf *ret_error);
void options_usage(FILE *out);

/* The commands that start nothing: an exit code. */
int command_run(const struct options *options);

#endif
