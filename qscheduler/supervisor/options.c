#include "qscheduler/supervisor/options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <unistd.h>

#include "base/num.h"
#include "base/option.h"

/* Letters stand for themselves, long options without one count from here. */
enum {
	OPT_DUMP = OPTION_LONG,
	OPT_CHECK,
	OPT_SAMPLE,
	OPT_MANUAL,
	OPT_HELP,
	OPT_VERSION,
	OPT_READY_FD,
};

static const struct option longs[] = {
	{ "dump", no_argument, NULL, OPT_DUMP },
	{ "check", no_argument, NULL, OPT_CHECK },
	{ "sample", no_argument, NULL, OPT_SAMPLE },
	{ "manual", no_argument, NULL, OPT_MANUAL },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "ready-fd", required_argument, NULL, OPT_READY_FD },
	{ NULL, 0, NULL, 0 },
};

/* What each option without a value asks for. */
static const struct ask {
	int option;
	enum command command;
	enum mode mode;
} asks[] = {
	{ 's', COMMAND_RUN, MODE_FIXED },
	{ 'd', COMMAND_RUN, MODE_DYNAMIC },
	{ 'n', COMMAND_RUN, MODE_KEEP },
	{ OPT_DUMP, COMMAND_DUMP, MODE_FIXED },
	{ OPT_CHECK, COMMAND_CHECK, MODE_FIXED },
	{ OPT_SAMPLE, COMMAND_SAMPLE, MODE_FIXED },
	{ OPT_MANUAL, COMMAND_MANUAL, MODE_FIXED },
	{ OPT_HELP, COMMAND_HELP, MODE_FIXED },
	{ OPT_VERSION, COMMAND_VERSION, MODE_FIXED },
};

static const struct ask *
find_ask(int option)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(asks); i++)
		if (asks[i].option == option)
			return &asks[i];
	return NULL;
}

static int
take_ready_fd(struct options *o, const char *value, struct buf *ret_error)
{
	uint64_t fd;

	if (num_u64(value, 3, INT32_MAX, &fd) < 0 ||
	    fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		return option_wrong(ret_error, "--ready-fd ", value,
		    ": not an open descriptor above 2");
	o->ready_fd = (int)fd;
	return 0;
}

static int
take_option(
    struct options *o, int option, char *const *argv, struct buf *ret_error)
{
	const struct ask *ask = find_ask(option);

	if (option == 'c') {
		o->conf_path = optarg;
		return 0;
	}
	if (option == OPT_READY_FD)
		return take_ready_fd(o, optarg, ret_error);
	if (ask == NULL)
		return option_unknown(ret_error, option, argv);
	if (o->command != COMMAND_NONE &&
	    (o->command != ask->command || o->mode != ask->mode)) {
		(void)buf_add_str(
		    ret_error, "options that do not go with each other");
		return -EINVAL;
	}
	o->command = ask->command;
	o->mode = ask->mode;
	return 0;
}

int
options_parse(
    int argc, char **argv, struct options *ret_options, struct buf *ret_error)
{
	struct options o = { .ready_fd = -1 };
	int c, r;

	opterr = 0;
	optind = 0; /* a new list, also after an earlier one */
	while ((c = getopt_long(argc, argv, "+:sdnc:", longs, NULL)) != -1) {
		r = take_option(&o, c, argv, ret_error);
		if (r < 0)
			return r;
	}
	/* `--check FILE` is `--check -c FILE`. */
	if (o.command == COMMAND_CHECK && o.conf_path == NULL && optind < argc)
		o.conf_path = argv[optind++];
	if (optind < argc) {
		(void)buf_add_str(ret_error, "too many arguments");
		return -EINVAL;
	}
	if (o.command == COMMAND_NONE) {
		(void)buf_add_str(ret_error, "one of -s, -d, -n is needed");
		return -EINVAL;
	}
	*ret_options = o;
	return 0;
}

void
options_usage(FILE *out)
{
	fputs(
	    "usage: qscheduler -s | -d | -n [-c FILE] [--ready-fd FD]\n"
	    "       qscheduler --check [FILE] | --dump [-c FILE] | --sample\n"
	    "       qscheduler --help | --version\n"
	    "\n"
	    "  -s            run QUEUE_COUNT queues\n"
	    "  -d            run QUEUE_COUNT queues, more when they are "
	    "loaded\n"
	    "  -n            run the queues that are there already\n"
	    "  -c FILE       configuration instead of QSCHED_CONF or\n"
	    "                /etc/qscheduler/qscheduler.conf\n"
	    "  --ready-fd N  write a newline to descriptor N when ready (s6)\n"
	    "  --check       judge a configuration, its routing and programs\n"
	    "  --dump        print what is in force, and from where\n"
	    "  --sample      print a configuration with every parameter\n",
	    out);
}
