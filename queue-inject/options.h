/* queue-inject/options.h - the command line of each face.
 *
 * Strings point into argv. An unknown option is REFUSAL_USAGE, the task of
 * another program REFUSAL_UNSUPPORTED.
 */
#ifndef QUEUE_INJECT_OPTIONS_H
#define QUEUE_INJECT_OPTIONS_H

#include "base/buf.h"
#include "base/dsn.h"
#include "queue-inject/refusal.h"

enum task {
	TASK_SUBMIT,
	TASK_DIALOGUE, /* sendmail -bs */
	TASK_LIST,     /* sendmail -bp, mailq */
	TASK_ALIASES,  /* newaliases */
	TASK_RETRY,    /* sendmail -q, -qIPART … */
	TASK_NOTHING,  /* sendmail -q30m */
	TASK_VERIFY,   /* sendmail -bv, which is refused */
	TASK_HELP,
	TASK_VERSION,
};

#define OPTIONS_RETRY_MAX 8

struct options {
	enum task task;
	const char *conf_path; /* NULL: the default */
	const char *sender;    /* NULL: the user */
	const char *full_name; /* NULL: of the user database */
	/* Of TASK_RETRY: what is behind each -q. */
	const char *retry[OPTIONS_RETRY_MAX];
	size_t nretry;
	bool from_header; /* -t */
	bool ignore_dot;  /* -i */
	bool lf;          /* lines are to end in LF, whatever comes */
	bool qualify;     /* addresses of the header get a domain */
	bool print_id;
	char verp;                /* -XV: the first delimiter; NUL: no VERP */
	struct dsn_mail dsn;      /* -R, -V */
	struct dsn_rcpt rcpt_dsn; /* -N; of each recipient */
	bool literal; /* arguments are one address each, as they stand */
	char *const *rcpts;
	size_t nrcpts;
};

#define OPTIONS_ENVID                                                   \
	"1 to 100 characters: printable ASCII without = and blanks, + " \
	"before two digits of a code (xtext)"
#define OPTIONS_USAGE                                                \
	"usage: queue-inject [-it] [-c FILE] [-f SENDER] [-F NAME] " \
	"[OPTION...] [--] [RECIPIENT...]"

/* The help text of queue-inject, without its last newline. -ENOMEM. */
int options_help(struct buf *out);

int options_own(
    int argc, char **argv, struct options *ret_options, struct refusal *why);
int options_sendmail(
    int argc, char **argv, struct options *ret_options, struct refusal *why);
/* A switch behind a recipient is a mistake; it must not become an address. */
int options_check_rcpts(const struct options *o, struct refusal *why);

#endif
