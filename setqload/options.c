#include "setqload/setqload.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/option.h"
#include "config/conf.h"
#include "ipc/ask.h"

/* Of the value of one -q: room for 256 numbers. */
#define QUEUES_TEXT_MAX 2048

_Static_assert(CONF_QUEUES_MAX == 256, "a complaint says so");

/* Options that go with some commands only. */
enum {
	GIVEN_QUEUE = 1,
	GIVEN_LOAD = 2,
	GIVEN_TIME = 4,
	GIVEN_REASON = 8,
	GIVEN_JSON = 16,
	GIVEN_COMMAND = 32,
};

static const struct {
	uint32_t bit;
	const char *name, *missing;
} givens[] = {
	{ GIVEN_QUEUE, "-q", "no queue given (-q)" },
	{ GIVEN_LOAD, "a load",
	    "no load given, and no command (--disable, --enable, --clear, "
	    "--count, --list)" },
	{ GIVEN_TIME, "--for", "no time given (--for)" },
	{ GIVEN_REASON, "--reason", "no reason given (--reason)" },
	{ GIVEN_JSON, "--json", "" },
};

static const struct {
	const char *name;
	uint32_t needs, may;
} commands[NCOMMANDS] = {
	[COMMAND_SET] = { "a load", GIVEN_QUEUE | GIVEN_LOAD, GIVEN_TIME },
	[COMMAND_CLEAR] = { "--clear", 0, GIVEN_QUEUE },
	[COMMAND_DISABLE] = { "--disable", GIVEN_QUEUE,
	    GIVEN_TIME | GIVEN_REASON },
	[COMMAND_ENABLE] = { "--enable", GIVEN_QUEUE, 0 },
	[COMMAND_COUNT] = { "--count", 0, GIVEN_TIME },
	[COMMAND_RELOAD] = { "--reload", 0, 0 },
	[COMMAND_LIST] = { "--list", 0, GIVEN_JSON },
	[COMMAND_HELP] = { "--help", 0, ~0u },
	[COMMAND_VERSION] = { "--version", 0, ~0u },
};

/* ---- loads ---- */

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
	r = num_u64(digits, min, ASK_LIMIT_MAX, &n);
	if (r == 0)
		*ret_value = (uint32_t)n;
	return r;
}

/* `45`, also with %, is 45/100. */
static int
parse_ratio(const char *s, size_t len, struct ratio *ret_ratio)
{
	const char *slash = memchr(s, '/', len);
	struct ratio ratio = { .limit = LOAD_LIMIT_BARE };
	size_t used_len = slash == NULL ? len : (size_t)(slash - s);

	if (slash == NULL && len > 1 && s[len - 1] == '%')
		used_len--;
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
		return option_wrong(error, "load ", s,
		    memchr(s, '/', len) == NULL
			? ": more than 100 percent"
			: ": more in use than the limit");
	if (r < 0)
		return option_wrong(error, "load ", s,
		    ": not PERCENT or USED/LIMIT (limit 1 to 1000000)");
	return 0;
}

/* The local load, then the remote one: one word, two, or both in one quoted
 * word. */
static int
take_loads(struct options *o, struct buf *error)
{
	const char *first = o->words[0], *second = o->words[1];
	const char *blank = strchr(first, ' ');
	size_t len = strlen(first);
	int r;

	if (second == NULL && blank != NULL) {
		second = blank + 1;
		len = (size_t)(blank - first);
	}
	r = take_ratio(first, len, &o->local, error);
	if (r == 0 && second != NULL)
		r = take_ratio(second, strlen(second), &o->remote, error);
	return r;
}

/* ---- options ---- */

static int
take_command(struct options *o, enum command command, struct buf *error)
{
	if ((o->given & GIVEN_COMMAND) != 0 && o->command != command) {
		(void)buf_printf(error, "%s and %s do not go together",
		    commands[o->command].name, commands[command].name);
		return -EINVAL;
	}
	o->command = command;
	o->given |= GIVEN_COMMAND;
	return 0;
}

/* ---- queues: `3`, `1,3-5`; -q may stand more than once ---- */

static bool
is_named(const struct options *o, uint64_t queue)
{
	uint32_t i;

	for (i = 0; i < o->nqueues; i++)
		if ((uint64_t)o->queues[i] == queue)
			return true;
	return false;
}

/* NULL, or the complaint, which may be in words. */
static const char *
add_queues(struct options *o, uint64_t first, uint64_t last, char words[64])
{
	uint64_t n;

	if (first > last)
		return ": a range begins with the lower number";
	if (last - first >= ARRAY_LEN(o->queues) - o->nqueues)
		return ": more than 256 queues";
	for (n = first; n <= last; n++) {
		if (is_named(o, n)) {
			snprintf(words, 64, ": queue %u is named twice",
			    (unsigned)n);
			return words;
		}
		o->queues[o->nqueues++] = (int32_t)n;
	}
	return NULL;
}

/* One of a list: a number, or two with a dash between them. */
static const char *
take_item(struct options *o, char *item, char words[64])
{
	char *dash = strchr(item, '-');
	uint64_t first, last;

	if (dash != NULL)
		*dash = '\0';
	if (num_u64(item, 1, CONF_QUEUE_NUM_MAX, &first) < 0 ||
	    num_u64(dash == NULL ? item : dash + 1, 1, CONF_QUEUE_NUM_MAX,
		&last) < 0)
		return ": not queue numbers (1 to 4095; several: 1,3-5)";
	return add_queues(o, first, last, words);
}

static const char *
take_list(struct options *o, const char *value, char words[64])
{
	char list[QUEUES_TEXT_MAX], *rest = list, *item;
	const char *why = NULL;

	if (strlen(value) >= sizeof(list))
		return ": too long";
	memcpy(list, value, strlen(value) + 1);
	while (why == NULL && (item = strsep(&rest, ",")) != NULL)
		why = take_item(o, item, words);
	return why;
}

static int
take_queue(const struct option_row *row UNUSED, void *options,
    const char *value, struct buf *error)
{
	struct options *o = options;
	char words[64];
	const char *why = take_list(o, value, words);

	o->given |= GIVEN_QUEUE;
	return why == NULL ? 0 : option_wrong(error, "-q ", value, why);
}

static int
take_time(const struct option_row *row UNUSED, void *options, const char *value,
    struct buf *error)
{
	const usec_t max = ASK_SECONDS_MAX * USEC_PER_SEC;
	struct options *o = options;
	usec_t time;

	if (num_duration(value, 1, max, &time) < 0)
		return option_wrong(error, "--for ", value,
		    ": not a time (90, 90s, 5m, 2h, 1d; up to 365d)");
	o->seconds = (uint32_t)((time + USEC_PER_SEC - 1) / USEC_PER_SEC);
	o->given |= GIVEN_TIME;
	return 0;
}

static int
take_reason(const struct option_row *row UNUSED, void *options,
    const char *value, struct buf *error)
{
	struct options *o = options;
	const char *why = ask_judge_reason(value, strlen(value));

	if (why != NULL) {
		(void)buf_printf(error, "--reason: %s", why);
		return -EINVAL;
	}
	o->reason = value;
	o->given |= GIVEN_REASON;
	return 0;
}

static int
take_count(const struct option_row *row UNUSED, void *options,
    const char *value, struct buf *error)
{
	struct options *o = options;
	uint64_t n;

	if (num_u64(value, 1, CONF_QUEUES_MAX, &n) < 0)
		return option_wrong(error, "--count ", value,
		    ": not a number of queues (1 to 256)");
	o->count = (uint32_t)n;
	return take_command(o, COMMAND_COUNT, error);
}

static int
take_action(const struct option_row *row, void *options,
    const char *value UNUSED, struct buf *error)
{
	return take_command(options, (enum command)row->arg, error);
}

static int
take_end(const struct option_row *row, void *options, const char *value UNUSED,
    struct buf *error UNUSED)
{
	((struct options *)options)->command = (enum command)row->arg;
	return OPTION_END;
}

static int
take_json(const struct option_row *row UNUSED, void *options,
    const char *value UNUSED, struct buf *error UNUSED)
{
	struct options *o = options;

	o->json = true;
	o->given |= GIVEN_JSON;
	return 0;
}

static int
take_word(void *options, const char *word, struct buf *error)
{
	struct options *o = options;

	if (o->nwords == ARRAY_LEN(o->words)) {
		(void)buf_add_str(error,
		    "too many arguments: a load is LOCAL or LOCAL REMOTE");
		return -EINVAL;
	}
	o->words[o->nwords++] = word;
	o->given |= GIVEN_LOAD;
	return 0;
}

/* clang-format off */
static const struct option_row rows[] = {
	{ "queue", 'q', "QUEUES",
	    "queue numbers from 1 to 4095, as 2 or 1,3-5; may be repeated",
	    take_queue, 0 },
	{ "clear", 0, NULL, "end loads that were set: of QUEUES, or of all queues",
	    take_action, COMMAND_CLEAR },
	{ "disable", 0, NULL,
	    "send no new mail to the queues; they deliver what they have",
	    take_action, COMMAND_DISABLE },
	{ "enable", 0, NULL,
	    "end --disable; start queues in quarantine at once",
	    take_action, COMMAND_ENABLE },
	{ "count", 0, "NUMBER", "run NUMBER queues from now on",
	    take_count, 0 },
	{ "reload", 0, NULL,
	    "put the configuration and its files in force; wait for the result",
	    take_action, COMMAND_RELOAD },
	{ "list", 0, NULL,
	    "show the settings and each queue that is not open; any user\nmay list root's instance",
	    take_action, COMMAND_LIST },
	{ "for", 0, "TIME",
	    "how long the setting lasts: 90, 90s, 5m, 2h, 1d; without it\n"
	    "a load lasts 60s, --disable for ever, and --count until the\nnumber is reached", take_time, 0 },
	{ "reason", 0, "TEXT", "reason shown with the queues, up to 95 bytes",
	    take_reason, 0 },
	{ "json", 0, NULL, "with --list: for programs, one JSON object a line",
	    take_json, 0 },
	{ NULL, 'i', "INSTANCE",
	    "the instance, instead of QSCHED_INSTANCE or of the\nconfiguration",
	    option_take_string, offsetof(struct options, instance) },
	{ NULL, 'c', "FILE",
	    "read FILE instead of QSCHED_CONF or\n" CONF_DEFAULT_FILE,
	    option_take_string, offsetof(struct options, conf_path) },
	{ "help", 0, NULL, "show this help", take_end, COMMAND_HELP },
	{ "version", 0, NULL, "show the version", take_end, COMMAND_VERSION },
};
/* clang-format on */

static const struct option_table table = { rows, ARRAY_LEN(rows), false,
	take_word };

/* ---- the whole ---- */

static int
refuse_what_does_not_fit(const struct options *o, struct buf *error)
{
	const uint32_t may =
	    commands[o->command].may | commands[o->command].needs;
	size_t i;

	for (i = 0; i < ARRAY_LEN(givens); i++) {
		const uint32_t bit = givens[i].bit;

		if ((o->given & bit) == 0 || (may & bit) != 0)
			continue;
		(void)buf_printf(error, "%s does not go with %s%s",
		    givens[i].name, commands[o->command].name,
		    bit == GIVEN_LOAD && (may & GIVEN_QUEUE) != 0
			? ": queues are named by -q"
			: "");
		return -EINVAL;
	}
	return 0;
}

static int
judge(const struct options *o, struct buf *error)
{
	const uint32_t missing = commands[o->command].needs & ~o->given;
	size_t i;
	int r = refuse_what_does_not_fit(o, error);

	if (r < 0)
		return r;
	if (missing != 0 && o->given == 0) {
		(void)buf_add_str(error, "nothing to do; see setqload --help");
		return -EINVAL;
	}
	for (i = 0; i < ARRAY_LEN(givens); i++)
		if ((missing & givens[i].bit) != 0) {
			(void)buf_add_str(error, givens[i].missing);
			return -EINVAL;
		}
	return 0;
}

int
options_parse(
    int argc, char **argv, struct options *ret_options, struct buf *ret_error)
{
	struct options o = { .command = COMMAND_SET, .reason = "" };
	int r = option_parse(&table, argc, argv, &o, ret_error);

	if (r == 0)
		r = judge(&o, ret_error);
	if (r == 0 && o.command == COMMAND_SET)
		r = take_loads(&o, ret_error);
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
