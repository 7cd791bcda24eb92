#include "queue-inject/options.h"

#include <getopt.h>
#include <stddef.h>
#include <string.h>

#include "base/option.h"

static int
take_task(const struct option_row *row, void *options, const char *value UNUSED,
    struct buf *error UNUSED)
{
	((struct options *)options)->task = (enum task)row->arg;
	return 0;
}

#define STRING(letter, field)                               \
	{                                                   \
		NULL, letter, "", NULL, option_take_string, \
		    offsetof(struct options, field)         \
	}
#define FLAG(name, letter, field)                           \
	{                                                   \
		name, letter, NULL, NULL, option_take_flag, \
		    offsetof(struct options, field)         \
	}
static const struct option_row rows[] = {
	STRING('c', conf_path),
	STRING('f', sender),
	STRING('F', full_name),
	FLAG(NULL, 'i', ignore_dot),
	FLAG(NULL, 't', from_header),
	FLAG("print-id", 'v', print_id),
	{ "help", 0, NULL, NULL, take_task, TASK_HELP },
	{ "version", 0, NULL, NULL, take_task, TASK_VERSION },
};

static const struct option_table table = { rows, ARRAY_LEN(rows), false, NULL };

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
