#include "qscheduler/supervisor/options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stddef.h>
#include <unistd.h>

#include "base/num.h"
#include "base/option.h"
#include "config/conf.h"

static int
ask(struct options *o, enum command command, enum mode mode, struct buf *error)
{
	if (o->command != COMMAND_NONE &&
	    (o->command != command || o->mode != mode)) {
		(void)buf_add_str(
		    error, "options that do not go with each other");
		return -EINVAL;
	}
	o->command = command;
	o->mode = mode;
	return 0;
}

static int
take_mode(const struct option_row *row, void *options, const char *value UNUSED,
    struct buf *error)
{
	return ask(options, COMMAND_RUN, (enum mode)row->arg, error);
}

static int
take_command(const struct option_row *row, void *options,
    const char *value UNUSED, struct buf *error)
{
	return ask(options, (enum command)row->arg, MODE_CONF, error);
}

static int
take_ready_fd(const struct option_row *row UNUSED, void *options,
    const char *value, struct buf *error)
{
	struct options *o = options;
	uint64_t fd;

	if (num_u64(value, 3, INT32_MAX, &fd) < 0 ||
	    fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		return option_wrong(error, "--ready-fd ", value,
		    ": not an open descriptor above 2");
	o->ready_fd = (int)fd;
	return 0;
}

/* clang-format off */
static const struct option_row rows[] = {
	{ NULL, 's', NULL, "run QUEUE_COUNT queues", take_mode, MODE_FIXED },
	{ NULL, 'd', NULL, "run QUEUE_COUNT queues, and more under load",
	    take_mode, MODE_DYNAMIC },
	{ NULL, 'n', NULL, "run the queues that exist on disk;\nQUEUE_COUNT queues if none exists",
	    take_mode, MODE_KEEP },
	{ NULL, 'c', "FILE",
	    "read FILE instead of QSCHED_CONF or\n" CONF_DEFAULT_FILE,
	    option_take_string, offsetof(struct options, conf_path) },
	{ "ready-fd", 0, "N", "write a newline to file descriptor N when ready (s6)",
	    take_ready_fd, 0 },
	{ "check", 0, NULL, "check the configuration, routing, aliases and programs",
	    take_command, COMMAND_CHECK },
	{ "dump", 0, NULL, "print each parameter in force and where it is set",
	    take_command, COMMAND_DUMP },
	{ "sample", 0, NULL, "print a sample configuration with all parameters",
	    take_command, COMMAND_SAMPLE },
	{ "manual", 0, NULL, NULL, take_command, COMMAND_MANUAL },
	{ "help", 0, NULL, "show this help", take_command, COMMAND_HELP },
	{ "version", 0, NULL, "show the version",
	    take_command, COMMAND_VERSION },
};
/* clang-format on */

static const struct option_table table = { rows, ARRAY_LEN(rows), false, NULL };

int
options_parse(
    int argc, char **argv, struct options *ret_options, struct buf *ret_error)
{
	struct options o = { .ready_fd = -1 };
	int r = option_parse(&table, argc, argv, &o, ret_error);

	if (r < 0)
		return r;
	/* `--check FILE` is `--check -c FILE`. */
	if (o.command == COMMAND_CHECK && o.conf_path == NULL && optind < argc)
		o.conf_path = argv[optind++];
	if (optind < argc) {
		(void)buf_add_str(ret_error, "too many arguments");
		return -EINVAL;
	}
	if (o.command == COMMAND_NONE)
		o.command = COMMAND_RUN;
	*ret_options = o;
	return 0;
}

void
options_usage(FILE *out)
{
	struct buf text = { 0 };

	fputs("usage: qscheduler [-s | -d | -n] [-c FILE] [--ready-fd FD]\n"
	      "       qscheduler --check [FILE] | --dump [-c FILE] | --sample\n"
	      "       qscheduler --help | --version\n"
	      "\n",
	    out);
	if (option_help(&table, &text) == 0)
		fputs(buf_str(&text), out);
	buf_done(&text);
}
