#include "queue-inject/options.h"

#include <getopt.h>
#include <stddef.h>
#include <string.h>

#include "base/option.h"
#include "config/conf.h"

static int
take_task(const struct option_row *row, void *options, const char *value UNUSED,
    struct buf *error UNUSED)
{
	((struct options *)options)->task = (enum task)row->arg;
	return 0;
}

/* ---- wishes of the sender (base/dsn.h) ---- */

static int
take_notify(const struct option_row *row UNUSED, void *options,
    const char *value, struct buf *error)
{
	struct options *o = options;

	if (dsn_notify_parse(value, &o->rcpt_dsn.notify) == 0)
		return 0;
	return option_wrong(error, "--notify ", value,
	    " is neither never nor some of success,failure,delay");
}

static int
take_return(const struct option_row *row UNUSED, void *options,
    const char *value, struct buf *error)
{
	struct options *o = options;

	if (dsn_ret_parse(value, &o->dsn.ret) == 0)
		return 0;
	return option_wrong(
	    error, "--return ", value, " is neither full nor hdrs");
}

static int
take_envid(const struct option_row *row UNUSED, void *options,
    const char *value, struct buf *error)
{
	struct options *o = options;

	if (dsn_envid_set(&o->dsn, value, strlen(value)) == 0)
		return 0;
	return option_wrong(error, "--envid ", value, " is not " OPTIONS_ENVID);
}

static int
take_orcpt(const struct option_row *row UNUSED, void *options,
    const char *value, struct buf *error)
{
	struct options *o = options;

	if (dsn_orcpt_set(&o->rcpt_dsn, value, strlen(value)) == 0)
		return 0;
	return option_wrong(error, "--orcpt ", value,
	    " is not rfc822; and an address as xtext, 500 characters at most");
}

#define STRING(letter, value, field, help)                     \
	{                                                      \
		NULL, letter, value, help, option_take_string, \
		    offsetof(struct options, field)            \
	}
#define FLAG(name, letter, field, help)                     \
	{                                                   \
		name, letter, NULL, help, option_take_flag, \
		    offsetof(struct options, field)         \
	}
static const struct option_row rows[] = {
	STRING('f', "SENDER", sender,
	    "envelope sender, who gets failure reports; by default\n"
	    "you; \"\" or <> is the null sender"),
	STRING('F', "NAME", full_name,
	    "your name, for the From field if the message has none"),
	FLAG(
	    NULL, 't', from_header, "take recipients from To, Cc and Bcc, too"),
	FLAG(NULL, 'i', ignore_dot,
	    "a line with a single dot does not end the message"),
	FLAG("print-id", 'v', print_id, "print the queue id"),
	{ "notify", 0, "WHEN",
	    "never, or some of success,failure,delay: reports to\n"
	    "the sender about each recipient",
	    take_notify, 0 },
	{ "return", 0, "PART",
	    "full or hdrs: how much of the message a report of\n"
	    "failure returns",
	    take_return, 0 },
	{ "envid", 0, "ID", "your name for the message, in reports (xtext)",
	    take_envid, 0 },
	{ "orcpt", 0, "ADDRESS",
	    "original address of the only RECIPIENT, with its type:\n"
	    "rfc822;bob@example.org (xtext)",
	    take_orcpt, 0 },
	STRING('c', "FILE", conf_path,
	    "read FILE instead of QSCHED_CONF or\n" CONF_DEFAULT_FILE),
	{ "help", 0, NULL, "show this help", take_task, TASK_HELP },
	{ "version", 0, NULL, "show the version", take_task, TASK_VERSION },
};

static const struct option_table table = { rows, ARRAY_LEN(rows), false, NULL };

int
options_help(struct buf *out)
{
	int r = buf_add_str(out,
	    OPTIONS_USAGE
	    "\n\nSubmit the message on standard input to each recipient. "
	    "Exit code 0: the message is on disk.\n"
	    "A recipient after -- may begin with a dash.\n\n");

	if (r == 0)
		r = option_help(&table, out);
	if (r == 0)
		r = buf_add_str(out,
		    "\nExit codes: 0 accepted; 64 wrong usage; 65 refused; 75 "
		    "try again later; 77 not permitted.\n"
		    "Called as sendmail, mailq, newaliases or qmail-queue, "
		    "this program acts as that\n"
		    "command: see qscheduler-sendmail(1), qmail-queue(8).");
	return r;
}

int
options_check_rcpts(const struct options *o, struct refusal *why)
{
	size_t i;

	for (i = 0; i < o->nrcpts; i++)
		if (o->rcpts[i][0] == '-')
			return refuse(why, REFUSAL_USAGE,
			    "`%.32s' behind a recipient (-- goes before "
			    "recipients that begin with -)",
			    o->rcpts[i]);
	return 0;
}

int
options_own(
    int argc, char **argv, struct options *ret_options, struct refusal *why)
{
	struct options o = { .literal = true };
	struct buf error = { 0 };
	int r = option_parse(&table, argc, argv, &o, &error);

	if (r < 0)
		r = refuse(why, REFUSAL_USAGE, "%s; %s", buf_str(&error),
		    OPTIONS_USAGE);
	buf_done(&error);
	if (r < 0)
		return r;
	o.rcpts = argv + optind;
	o.nrcpts = (size_t)(argc - optind);
	if (o.rcpt_dsn.orcpt[0] != '\0' && (o.from_header || o.nrcpts != 1))
		return refuse(why, REFUSAL_USAGE,
		    "--orcpt is for one RECIPIENT, without -t");
	*ret_options = o;
	if (strcmp(argv[optind - 1], "--") == 0)
		return 0;
	return options_check_rcpts(&o, why);
}
