#include "qtop/options.h"

#include <errno.h>
#include <getopt.h>

#include "base/num.h"
#include "base/option.h"

#define DELAY_DEFAULT     (2 * USEC_PER_SEC)
#define DELAY_MIN_SECONDS 0.1
#define DELAY_MAX_SECONDS 86400.0
#define COUNT_MAX         1000000000

enum {
	OPT_HELP = OPTION_LONG,
	OPT_VERSION,
};

static const struct option longs[] = {
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static int
take_number(struct options *o, int c, struct buf *error)
{
	double seconds;

	if (c == 'n') {
		if (num_u64(optarg, 1, COUNT_MAX, &o->count) < 0)
			return option_wrong(error, "-n ", optarg,
			    ": not a count (1 to 1000000000)");
		return 0;
	}
	if (num_decimal(
		optarg, DELAY_MIN_SECONDS, DELAY_MAX_SECONDS, &seconds) < 0)
		return option_wrong(error, "-d ", optarg,
		    ": not a number of seconds (0.1 to 86400)");
	o->delay = (usec_t)(seconds * (double)USEC_PER_SEC);
	return 0;
}

static int
take_option(struct options *o, int c, char **argv, struct buf *error)
{
	switch (c) {
	case 'b':
		o->task = TASK_BATCH;
		return 0;
	case 'd':
	case 'n':
		return take_number(o, c, error);
	case 'i':
		o->instance = optarg;
		return 0;
	case 'c':
		o->conf_path = optarg;
		return 0;
	case OPT_HELP:
	case OPT_VERSION:
		o->task = c == OPT_HELP ? TASK_HELP : TASK_VERSION;
		return 0;
	default:
		return option_unknown(error, c, argv);
	}
}

int
options_parse(
    int argc, char **argv, struct options *ret_options, struct buf *ret_error)
{
	struct options o = { .task = TASK_SCREEN, .delay = DELAY_DEFAULT };
	int c, r = 0;

	opterr = 0;
	optind = 0; /* a new list, also after an earlier one */
	while (r == 0 && o.task != TASK_HELP && o.task != TASK_VERSION &&
	    (c = getopt_long(argc, argv, "+:bd:n:i:c:", longs, NULL)) != -1)
		r = take_option(&o, c, argv, ret_error);
	if (r < 0)
		return r;
	if (optind < argc && o.task != TASK_HELP && o.task != TASK_VERSION) {
		(void)buf_add_str(ret_error, "too many arguments");
		return -EINVAL;
	}
	*ret_options = o;
	return 0;
}
