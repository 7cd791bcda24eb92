#include "setqload/options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "base/num.h"
#include "base/option.h"
#include "config/conf.h"

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
take_queue(struct options *o, const char *value, struct buf *error)
{
	uint64_t n;

	if (num_u64(value, 1, CONF_QUEUE_NUM_MAX, &n) < 0)
		return option_wrong(
		    error, "-q ", value, ": not a queue number (1 to 4095)");
	o->queue = (int32_t)n;
	return 0;
}

static int
take_option(struct options *o, int c, char **argv, struct buf *error)
{
	switch (c) {
	case 'q':
		return take_queue(o, optarg, error);
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

static int
parse_number(const char *s, size_t len, uint64_t min, uint32_t *ret_value)
{
	char digits[16];
	uint64_t n;
	int r;

	if (len >= sizeof(digits))
		return -ERANGE;
	memcpy(digits, s, len);
	digits[len] = '\0';
	r = num_u64(digits, min, LOAD_LIMIT_MAX, &n);
	if (r == 0)
		*ret_value = (uint32_t)n;
	return r;
}

/* `45` is 45/100. */
static int
parse_ratio(const char *s, size_t len, struct ratio *ret_ratio)
{
	const char *slash = memchr(s, '/', len);
	struct ratio ratio = { .limit = LOAD_LIMIT_BARE };
	size_t used_len = slash == NULL ? len : (size_t)(slash - s);

	if (parse_number(s, used_len, 0, &ratio.used) < 0)
		return -EINVAL;
	if (slash != NULL &&
	    parse_number(slash + 1, len - used_len - 1, 1, &ratio.limit) < 0)
		return -EINVAL;
	if (ratio.used > ratio.limit)
		return -ERANGE;
	*ret_ratio = ratio;
	return 0;
}

static int
take_ratio(
    const char *s, size_t len, struct ratio *ret_ratio, struct buf *error)
{
	int r = parse_ratio(s, len, ret_ratio);

	if (r == -ERANGE)
		return option_wrong(
		    error, "load ", s, ": more in use than the limit");
	if (r < 0)
		return option_wrong(error, "load ", s,
		    ": not PERCENT or USED/LIMIT (limit 1 to 1000000)");
	return 0;
}

/* Local, then remote; one word, two, or both in one quoted word. */
static int
take_loads(struct options *o, int n, char **words, struct buf *error)
{
	const char *second = n == 2 ? words[1] : NULL;
	size_t len;
	int r;

	if (n < 1 || n > 2) {
		(void)buf_printf(error, "%s",
		    n < 1 ? "no load given" : "too many arguments");
		return -EINVAL;
	}
	len = strlen(words[0]);
	if (second == NULL && strchr(words[0], ' ') != NULL) {
		second = strchr(words[0], ' ') + 1;
		len = (size_t)(second - words[0]) - 1;
	}
	r = take_ratio(words[0], len, &o->local, error);
	if (r == 0 && second != NULL)
		r = take_ratio(second, strlen(second), &o->remote, error);
	return r;
}

int
options_parse(
    int argc, char **argv, struct options *ret_options, struct buf *ret_error)
{
	struct options o = { .task = TASK_SET };
	int c, r = 0;

	opterr = 0;
	optind = 0; /* a new list, also after an earlier one */
	while (r == 0 && o.task == TASK_SET &&
	    (c = getopt_long(argc, argv, "+:q:i:c:", longs, NULL)) != -1)
		r = take_option(&o, c, argv, ret_error);
	if (r == 0 && o.task == TASK_SET) {
		if (o.queue == 0) {
			(void)buf_add_str(ret_error, "no queue given");
			r = -EINVAL;
		} else {
			r = take_loads(
			    &o, argc - optind, argv + optind, ret_error);
		}
	}
	if (r == 0)
		*ret_options = o;
	return r;
}
