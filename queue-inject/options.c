#include "queue-inject/options.h"

#include <getopt.h>
#include <string.h>

enum long_option {
	OPT_PRINT_ID = 256,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{ "print-id", no_argument, NULL, OPT_PRINT_ID },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static void
set_flag(struct options *o, int option)
{
	o->from_header |= option == 't';
	o->ignore_dot |= option == 'i';
	o->print_id |= option == 'v' || option == OPT_PRINT_ID;
	if (option == OPT_HELP)
		o->task = TASK_HELP;
	if (option == OPT_VERSION)
		o->task = TASK_VERSION;
}

static void
set_value(struct options *o, int option, const char *value)
{
	const char **to = option == 'c' ? &o->conf_path
	    : option == 'f'             ? &o->sender
					: &o->full_name;

	*to = value;
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
	int option;

	optind = 0;
	opterr = 0;
	while ((option = getopt_long(
		    argc, argv, "+:c:f:F:itv", long_options, NULL)) != -1) {
		if (option == '?' || option == ':')
			return refuse(why, REFUSAL_USAGE, "%s; %s",
			    option == ':' ? "an option lacks its value"
					  : "unknown option",
			    OPTIONS_USAGE);
		if (optarg != NULL)
			set_value(&o, option, optarg);
		else
			set_flag(&o, option);
	}
	o.rcpts = argv + optind;
	o.nrcpts = (size_t)(argc - optind);
	*ret_options = o;
	if (strcmp(argv[optind - 1], "--") == 0)
		return 0;
	return options_check_rcpts(&o, why);
}

int
options_qmail(UNUSED int argc, UNUSED char **argv, struct options *ret_options,
    UNUSED struct refusal *why)
{
	*ret_options = (struct options){ .ignore_dot = true };
	return 0;
}

int
options_mailq(UNUSED int argc, UNUSED char **argv, struct options *ret_options,
    UNUSED struct refusal *why)
{
	*ret_options = (struct options){ .task = TASK_LIST };
	return 0;
}

int
options_newaliases(UNUSED int argc, UNUSED char **argv,
    struct options *ret_options, UNUSED struct refusal *why)
{
	*ret_options = (struct options){ .task = TASK_ALIASES };
	return 0;
}
