/* setqload/options.h - the command line (setqload(8)).
 *
 * Soft: -EINVAL with what is wrong in *ret_error, fit to be shown and short
 * whatever was typed (A1). What the supervisor would refuse whatever its state
 * is refused here. */
#ifndef SETQLOAD_OPTIONS_H
#define SETQLOAD_OPTIONS_H

#include "base/buf.h"

#define LOAD_LIMIT_BARE 100 /* of a number without a limit: percent */

#define OPTIONS_USAGE                                                       \
	"usage: setqload -q QUEUE [--for TIME] LOCAL [REMOTE]\n"            \
	"       setqload --clear [-q QUEUE]\n"                              \
	"       setqload --disable -q QUEUE [--for TIME] [--reason TEXT]\n" \
	"       setqload --enable -q QUEUE\n"                               \
	"       setqload --count NUMBER [--for TIME]\n"                     \
	"       setqload --list [--json]"

enum command {
	COMMAND_SET, /* the one without a name */
	COMMAND_CLEAR,
	COMMAND_DISABLE,
	COMMAND_ENABLE,
	COMMAND_COUNT,
	COMMAND_LIST,
	COMMAND_HELP,
	COMMAND_VERSION,
	NCOMMANDS,
};

struct ratio {
	uint32_t used, limit; /* 0/0: not given */
};

struct options {
	enum command command;
	uint32_t given; /* bits, private to options.c */
	int32_t queue;  /* 1..CONF_QUEUE_NUM_MAX, 0: all */
	struct ratio local, remote;
	uint32_t seconds;   /* 0: not given */
	uint32_t count;     /* 1..CONF_QUEUES_MAX */
	const char *reason; /* "" */
	bool json;
	const char *instance;  /* -i, NULL */
	const char *conf_path; /* -c, NULL */
	const char *words[2];
	uint32_t nwords;
};

int options_parse(
    int argc, char **argv, struct options *ret_options, struct buf *ret_error);
/* A line for each option. -ENOMEM. */
int options_help(struct buf *out);

#endif
