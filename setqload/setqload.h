/* setqload/setqload.h - the command setqload(8), and the source of each part:
 *
 *	setqload  the request and its answer
 *	options   the command line
 *	list      the output of --list
 */
#ifndef SETQLOAD_SETQLOAD_H
#define SETQLOAD_SETQLOAD_H

#include "base/buf.h"
#include "config/conf.h"
#include "ipc/page.h"

/* All but main(). An exit code of sysexits.h; the reason is on standard error
 * in one line. */
int setqload_main(int argc, char **argv);

/* ---- options: -EINVAL with the complaint in *ret_error ----
 *
 * A complaint is printable and short, whatever was typed. A request that the
 * supervisor would refuse in any state is refused here. */

#define LOAD_LIMIT_BARE 100 /* of a number without a limit: percent */

#define OPTIONS_USAGE                                                        \
	"usage: setqload -q QUEUES [--for TIME] LOCAL [REMOTE]\n"            \
	"       setqload --clear [-q QUEUES]\n"                              \
	"       setqload --disable -q QUEUES [--for TIME] [--reason TEXT]\n" \
	"       setqload --enable -q QUEUES\n"                               \
	"       setqload --count NUMBER [--for TIME]\n"                      \
	"       setqload --reload\n"                                         \
	"       setqload --list [--json]"

enum command {
	COMMAND_SET, /* the one without a name */
	COMMAND_CLEAR,
	COMMAND_DISABLE,
	COMMAND_ENABLE,
	COMMAND_COUNT,
	COMMAND_RELOAD,
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
	/* Each 1..CONF_QUEUE_NUM_MAX and once, as they were named; none: the
	 * command is not of queues, or of all. */
	int32_t queues[CONF_QUEUES_MAX];
	uint32_t nqueues;
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

/* ---- list: -ENOMEM ----
 *
 * The settings of operators, and unusual states of queues, from the
 * supervisor's page. Does no I/O. A page is foreign: texts are cleaned. */

struct list_view {
	const struct sched_page *page;
	usec_t now_mono, now_wall;
};

/* Lines for people: a summary, the queues with a setting or an unusual state,
 * the count that is held, the last change. */
int list_text(const struct list_view *view, struct buf *out);
/* An object a line: the instance, then each queue. Readers ignore members
 * that they do not know. */
int list_json(const struct list_view *view, struct buf *out);

#endif
