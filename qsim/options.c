#include "qsim/qsim.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "base/num.h"
#include "base/option.h"

enum {
	PROGRESS = 1,
	RUNS = 2,
	SEED = 4,
	SET = 8,
	PLOT = 16
};

#define MANY UINT32_MAX

/* The options and the number of files of each command. */
static const struct command {
	const char *name;
	enum task task;
	uint32_t files_min, files_max, takes;
} commands[] = {
	{ "replay", TASK_REPLAY, 1, 1, PROGRESS },
	{ "explain", TASK_EXPLAIN, 1, 1, PROGRESS },
	{ "published", TASK_PUBLISHED, 0, 0, PROGRESS | RUNS | SEED },
	{ "compare", TASK_COMPARE, 1, MANY, PROGRESS | SEED | SET | PLOT },
};

struct parse {
	struct options o;
	const struct command *command; /* NULL: before its name */
};

static int
wrong(struct buf *error, const char *text)
{
	(void)buf_add_str(error, text);
	return -EINVAL;
}

static int
set_runs(struct options *o, const char *value, struct buf *error)
{
	uint64_t n;

	if (num_u64(value, 1, OPTIONS_RUNS_MAX, &n) < 0)
		return option_wrong(
		    error, "--runs ", value, ": not a number, 1 to 10000");
	o->runs = (uint32_t)n;
	return 0;
}

static int
set_seed(struct options *o, const char *value, struct buf *error)
{
	if (num_u64(value, 0, UINT64_MAX, &o->seed) < 0)
		return option_wrong(error, "--seed ", value, ": not a number");
	o->seed_given = true;
	return 0;
}

static int
add_set(struct options *o, const char *value, struct buf *error)
{
	if (o->nsets == OPTIONS_SETS_MAX)
		return option_wrong(error, "--set ", value, ": one too many");
	o->sets[o->nsets++] = value;
	return 0;
}

static int
take(const struct option_row *row, void *options, const char *value,
    struct buf *error)
{
	struct parse *p = options;

	if (p->command == NULL)
		return wrong(error, "the command stands before its options");
	if ((p->command->takes & row->arg) == 0) {
		(void)buf_printf(error, "%s takes no option --%s",
		    p->command->name, row->name);
		return -EINVAL;
	}
	p->o.progress |= row->arg == PROGRESS;
	p->o.plot |= row->arg == PLOT;
	return row->arg == RUNS ? set_runs(&p->o, value, error)
	    : row->arg == SEED  ? set_seed(&p->o, value, error)
	    : row->arg == SET   ? add_set(&p->o, value, error)
				: 0;
}

/* --help and --version, before and behind the name of a command. */
static int
take_end(const struct option_row *row, void *options, const char *value UNUSED,
    struct buf *error UNUSED)
{
	((struct parse *)options)->o.task = (enum task)row->arg;
	return OPTION_END;
}

static const struct option_row rows[] = {
	{ "help", 0, NULL, NULL, take_end, TASK_HELP },
	{ "version", 0, NULL, NULL, take_end, TASK_VERSION },
	{ "progress", 0, NULL, NULL, take, PROGRESS },
	{ "runs", 0, "NUMBER", NULL, take, RUNS },
	{ "seed", 0, "NUMBER", NULL, take, SEED },
	{ "set", 0, "SETTINGS", NULL, take, SET },
	{ "plot", 0, NULL, NULL, take, PLOT },
};

static const struct option_table general = { rows, ARRAY_LEN(rows), false,
	NULL },
				 of_command = { rows, ARRAY_LEN(rows), true,
					 NULL };

static const struct command *
find_command(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

/* Options may stand before and between the files. */
static int
parse_command(struct parse *p, int argc, char **argv, struct buf *error)
{
	int r;

	p->o.task = p->command->task;
	r = option_parse(&of_command, argc, argv, p, error);
	if (r != 0)
		return r;
	p->o.files = argv + optind;
	p->o.nfiles = (uint32_t)(argc - optind);
	if (p->o.nfiles < p->command->files_min)
		return wrong(error, "no scenario given");
	if (p->o.nfiles > p->command->files_max)
		return wrong(error, "too many arguments");
	return 0;
}

static int
parse(struct parse *p, int argc, char **argv, struct buf *error)
{
	int r = option_parse(&general, argc, argv, p, error);

	if (r != 0)
		return r;
	if (optind >= argc)
		return wrong(error, "no command given");
	p->command = find_command(argv[optind]);
	if (p->command == NULL)
		return option_wrong(
		    error, "unknown command ", argv[optind], "");
	return parse_command(p, argc - optind, argv + optind, error);
}

int
options_parse(
    int argc, char **argv, struct options *ret_options, struct buf *ret_error)
{
	struct parse p = { .o = { .runs = 1, .seed = 1 } };
	int r = parse(&p, argc, argv, ret_error);

	if (r < 0)
		return r;
	*ret_options = p.o;
	return 0;
}
