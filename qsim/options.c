#include "qsim/qsim.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "base/num.h"
#include "base/option.h"

enum {
	OPT_HELP = OPTION_LONG,
	OPT_VERSION,
	OPT_PROGRESS,
	OPT_RUNS,
	OPT_SEED,
	OPT_SET,
	OPT_PLOT,
};

static const struct option longs[] = {
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "progress", no_argument, NULL, OPT_PROGRESS },
	{ "runs", required_argument, NULL, OPT_RUNS },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "set", required_argument, NULL, OPT_SET },
	{ "plot", no_argument, NULL, OPT_PLOT },
	{ NULL, 0, NULL, 0 },
};

#define MANY UINT32_MAX

/* Which options a command takes, and how many files. */
static const struct command {
	const char *name;
	enum task task;
	uint32_t files_min, files_max;
	bool takes[OPT_PLOT + 1 - OPTION_LONG];
} commands[] = {
	{ "replay", TASK_REPLAY, 1, 1,
	    { [OPT_PROGRESS - OPTION_LONG] = true } },
	{ "explain", TASK_EXPLAIN, 1, 1,
	    { [OPT_PROGRESS - OPTION_LONG] = true } },
	{ "published", TASK_PUBLISHED, 0, 0,
	    {
		[OPT_PROGRESS - OPTION_LONG] = true,
		[OPT_RUNS - OPTION_LONG] = true,
		[OPT_SEED - OPTION_LONG] = true,
	    } },
	{ "compare", TASK_COMPARE, 1, MANY,
	    {
		[OPT_PROGRESS - OPTION_LONG] = true,
		[OPT_SEED - OPTION_LONG] = true,
		[OPT_SET - OPTION_LONG] = true,
		[OPT_PLOT - OPTION_LONG] = true,
	    } },
};

static int
wrong(struct buf *error, const char *text)
{
	(void)buf_add_str(error, text);
	return -EINVAL;
}

static int
take_runs(struct options *o, struct buf *error)
{
	uint64_t n;

	if (num_u64(optarg, 1, OPTIONS_RUNS_MAX, &n) < 0)
		return option_wrong(
		    error, "--runs ", optarg, ": not a number, 1 to 10000");
	o->runs = (uint32_t)n;
	return 0;
}

static int
take_seed(struct options *o, struct buf *error)
{
	if (num_u64(optarg, 0, UINT64_MAX, &o->seed) < 0)
		return option_wrong(error, "--seed ", optarg, ": not a number");
	o->seed_given = true;
	return 0;
}

static int
take_set(struct options *o, struct buf *error)
{
	if (o->nsets == OPTIONS_SETS_MAX)
		return option_wrong(error, "--set ", optarg, ": one too many");
	o->sets[o->nsets++] = optarg;
	return 0;
}

static int
take_option(struct options *o, int c, char **argv, struct buf *error)
{
	switch (c) {
	case OPT_PROGRESS:
		o->progress = true;
		return 0;
	case OPT_RUNS:
		return take_runs(o, error);
	case OPT_SEED:
		return take_seed(o, error);
	case OPT_SET:
		return take_set(o, error);
	case OPT_PLOT:
		o->plot = true;
		return 0;
	default:
		return option_unknown(error, c, argv);
	}
}

/* --help and --version, before and behind the name of a command. */
static bool
take_general(struct options *o, int c)
{
	if (c != OPT_HELP && c != OPT_VERSION)
		return false;
	o->task = c == OPT_HELP ? TASK_HELP : TASK_VERSION;
	return true;
}

static const struct command *
find_command(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int
not_taken(const struct command *command, int c, struct buf *error)
{
	const struct option *l = longs;

	while (l->val != c)
		l++;
	(void)buf_printf(
	    error, "%s takes no option --%s", command->name, l->name);
	return -EINVAL;
}

/* Options may stand before and between the files. */
static int
parse_command(struct options *o, const struct command *command, int argc,
    char **argv, struct buf *error)
{
	int c, r = 0;

	o->task = command->task;
	opterr = 0;
	optind = 0; /* a new list */
	while (
	    r == 0 && (c = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
		if (take_general(o, c))
			return 0;
		if (c >= OPTION_LONG && !command->takes[c - OPTION_LONG])
			return not_taken(command, c, error);
		r = take_option(o, c, argv, error);
	}
	if (r < 0)
		return r;
	o->files = argv + optind;
	o->nfiles = (uint32_t)(argc - optind);
	if (o->nfiles < command->files_min)
		return wrong(error, "no scenario given");
	if (o->nfiles > command->files_max)
		return wrong(error, "too many arguments");
	return 0;
}

static int
parse(struct options *o, int argc, char **argv, struct buf *error)
{
	const struct command *command;
	int c;

	opterr = 0;
	optind = 0;
	c = getopt_long(argc, argv, "+:", longs, NULL);
	if (c != -1) {
		if (take_general(o, c))
			return 0;
		if (c < OPTION_LONG)
			return option_unknown(error, c, argv);
		return wrong(error, "the command stands before its options");
	}
	if (optind >= argc)
		return wrong(error, "no command given");
	command = find_command(argv[optind]);
	if (command == NULL)
		return option_wrong(
		    error, "unknown command ", argv[optind], "");
	return parse_command(o, command, argc - optind, argv + optind, error);
}

int
options_parse(
    int argc, char **argv, struct options *ret_options, struct buf *ret_error)
{
	struct options o = { .runs = 1, .seed = 1 };
	int r = parse(&o, argc, argv, ret_error);

	if (r == 0)
		*ret_options = o;
	return r;
}
