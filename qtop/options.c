#include "qtop/qtop.h"

#include <stddef.h>

#include "base/num.h"
#include "base/option.h"
#include "config/conf.h"

#define DELAY_DEFAULT     (2 * USEC_PER_SEC)
#define DELAY_MIN_SECONDS ((double)DELAY_MIN / (double)USEC_PER_SEC)
#define DELAY_MAX_SECONDS ((double)DELAY_MAX / (double)USEC_PER_SEC)
#define COUNT_MAX         1000000000

static int
take_delay(const struct option_row *row UNUSED, void *options,
    const char *value, struct buf *error)
{
	struct options *o = options;
	double seconds;

	if (num_decimal(value, DELAY_MIN_SECONDS, DELAY_MAX_SECONDS, &seconds) <
	    0)
		return option_wrong(error, "-d ", value,
		    ": not a number of seconds (0.1 to 86400)");
	o->delay = (usec_t)(seconds * (double)USEC_PER_SEC);
	return 0;
}

static int
take_count(const struct option_row *row UNUSED, void *options,
    const char *value, struct buf *error)
{
	struct options *o = options;

	if (num_u64(value, 1, COUNT_MAX, &o->count) < 0)
		return option_wrong(
		    error, "-n ", value, ": not a count (1 to 1000000000)");
	return 0;
}

static int
take_batch(const struct option_row *row UNUSED, void *options,
    const char *value UNUSED, struct buf *error UNUSED)
{
	((struct options *)options)->task = TASK_BATCH;
	return 0;
}

static int
take_end(const struct option_row *row, void *options, const char *value UNUSED,
    struct buf *error UNUSED)
{
	((struct options *)options)->task = (enum task)row->arg;
	return OPTION_END;
}

/* clang-format off */
static const struct option_row rows[] = {
	{ NULL, 'b', NULL, "write plain text, for scripts", take_batch, 0 },
	{ NULL, 'd', "SECONDS",
	    "seconds between two readings, 0.1 to 86400; 2 by default",
	    take_delay, 0 },
	{ NULL, 'n', "COUNT", "end after COUNT readings",
	    take_count, 0 },
	{ NULL, 'i', "INSTANCE",
	    "the instance, instead of QSCHED_INSTANCE or of the\nconfiguration",
	    option_take_string, offsetof(struct options, instance) },
	{ NULL, 'c', "FILE",
	    "read FILE instead of QSCHED_CONF or\n" CONF_DEFAULT_FILE,
	    option_take_string, offsetof(struct options, conf_path) },
	{ "help", 0, NULL, "show this help", take_end, TASK_HELP },
	{ "version", 0, NULL, "show the version", take_end, TASK_VERSION },
};
/* clang-format on */

static const struct option_table table = { rows, ARRAY_LEN(rows), false,
	option_no_word };

int
options_parse(
    int argc, char **argv, struct options *ret_options, struct buf *ret_error)
{
	struct options o = { .task = TASK_SCREEN, .delay = DELAY_DEFAULT };
	int r = option_parse(&table, argc, argv, &o, ret_error);

	if (r < 0)
		return r;
	*ret_options = o;
	return 0;
}

int
options_help(struct buf *out)
{
	return option_help(&table, out);
}
