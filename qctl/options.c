#include "qctl/qctl.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/option.h"
#include "config/conf.h"

enum given {
	GIVEN_JSON = 1,
	GIVEN_SENDERS = 2,
	GIVEN_CONTENT = 4,
};

static const struct {
	const char *name;
	unsigned may; /* bits of enum given */
	bool needs_words;
} verbs[NVERBS] = {
	[VERB_LIST] = { "list", GIVEN_JSON, false },
	[VERB_SHOW] = { "show", GIVEN_CONTENT, true },
	[VERB_SHAPE] = { "shape", GIVEN_SENDERS, false },
};

static const struct {
	unsigned bit;
	const char *name;
} givens[] = {
	{ GIVEN_JSON, "--json" },
	{ GIVEN_SENDERS, "--senders" },
	{ GIVEN_CONTENT, "--content" },
};

/* ---- qctl ---- */

static int
take_given(const struct option_row *row, void *options,
    const char *value UNUSED, struct buf *error UNUSED)
{
	struct options *o = options;

	o->given |= (unsigned)row->arg;
	return 0;
}

static int
take_end(const struct option_row *row, void *options, const char *value UNUSED,
    struct buf *error UNUSED)
{
	((struct options *)options)->verb = (enum verb)row->arg;
	return OPTION_END;
}

/* The first word is the verb. */
static int
take_word(void *options, const char *word, struct buf *error)
{
	struct options *o = options;
	unsigned i;

	if (o->verb != VERB_NONE)
		return select_add(&o->select, word, error);
	for (i = 0; i < NVERBS; i++)
		if (verbs[i].name != NULL && strcmp(verbs[i].name, word) == 0) {
			o->verb = (enum verb)i;
			return 0;
		}
	return option_wrong(
	    error, "unknown verb ", word, ": list, show, or shape");
}

/* clang-format off */
static const struct option_row rows[] = {
	{ "json", 0, NULL, "list: an object a line, for programs",
	    take_given, GIVEN_JSON },
	{ "senders", 0, NULL, "shape: messages by the domain of their sender",
	    take_given, GIVEN_SENDERS },
	{ "content", 0, NULL, "show: the content, too",
	    take_given, GIVEN_CONTENT },
	{ NULL, 'c', "FILE",
	    "configuration instead of QSCHED_CONF or\n" CONF_DEFAULT_FILE,
	    option_take_string, offsetof(struct options, conf_path) },
	{ "help", 0, NULL, "show this help", take_end, VERB_HELP },
	{ "version", 0, NULL, "show the version", take_end, VERB_VERSION },
};
/* clang-format on */

static const struct option_table table = { rows, ARRAY_LEN(rows), false,
	take_word };

static bool
has_words(const struct select *s)
{
	return s->all || s->from_stdin || s->nids > 0 || s->keys != 0;
}

static int
judge(struct options *o, struct buf *error)
{
	size_t i;

	if (o->verb == VERB_NONE) {
		(void)buf_add_str(error, "no verb given: list, show, or shape");
		return -EINVAL;
	}
	for (i = 0; i < ARRAY_LEN(givens); i++)
		if ((o->given & givens[i].bit & ~verbs[o->verb].may) != 0) {
			(void)buf_printf(error, "%s does not go with %s",
			    givens[i].name, verbs[o->verb].name);
			return -EINVAL;
		}
	if (verbs[o->verb].needs_words && !has_words(&o->select)) {
		(void)buf_printf(error,
		    "%s needs ids, filters, or ALL: nothing is selected",
		    verbs[o->verb].name);
		return -EINVAL;
	}
	o->json = (o->given & GIVEN_JSON) != 0;
	o->senders = (o->given & GIVEN_SENDERS) != 0;
	o->content = (o->given & GIVEN_CONTENT) != 0;
	return 0;
}

static int
parse_qctl(int argc, char **argv, struct options *o, struct buf *error)
{
	int r = option_parse(&table, argc, argv, o, error);

	return r == 0 ? judge(o, error) : r == OPTION_END ? 0 : r;
}

/* ---- postqueue ---- */

static int
take_list(const struct option_row *row, void *options, const char *value UNUSED,
    struct buf *error)
{
	struct options *o = options;

	if (o->verb != VERB_NONE) {
		(void)buf_add_str(error, "one of -j and -p");
		return -EINVAL;
	}
	o->verb = VERB_LIST;
	o->json = row->letter == 'j';
	return 0;
}

static int
refuse_retry(const struct option_row *row, void *options UNUSED,
    const char *value UNUSED, struct buf *error)
{
	(void)buf_printf(error,
	    "-%c is not supported: retries are the supervisor's; SIGALRM to "
	    "qscheduler tries all mail at once",
	    row->letter);
	return -EOPNOTSUPP;
}

static int
pass_over(const struct option_row *row UNUSED, void *options UNUSED,
    const char *value UNUSED, struct buf *error UNUSED)
{
	return 0;
}

static const struct option_row queue_rows[] = {
	{ NULL, 'p', NULL, NULL, take_list, 0 },
	{ NULL, 'j', NULL, NULL, take_list, 0 },
	{ NULL, 'v', NULL, NULL, pass_over, 0 },
	{ NULL, 'f', NULL, NULL, refuse_retry, 0 },
	{ NULL, 's', "", NULL, refuse_retry, 0 },
	{ NULL, 'i', "", NULL, refuse_retry, 0 },
	{ NULL, 'c', "", NULL, option_take_string,
	    offsetof(struct options, conf_path) },
};

static const struct option_table queue_table = { queue_rows,
	ARRAY_LEN(queue_rows), false, option_no_word };

static int
parse_postqueue(int argc, char **argv, struct options *o, struct buf *error)
{
	int r = option_parse(&queue_table, argc, argv, o, error);

	if (r == 0 && o->verb == VERB_NONE) {
		(void)buf_add_str(
		    error, "-p lists the queues, -j does so for programs");
		r = -EINVAL;
	}
	return r;
}

/* ---- names ---- */

/* Other programs give mailq options of theirs, none of which changes a list. */
static int
parse_mailq(int argc UNUSED, char **argv UNUSED, struct options *o,
    struct buf *error UNUSED)
{
	o->verb = VERB_LIST;
	return 0;
}

static const struct name {
	const char *name;
	int (*parse)(
	    int argc, char **argv, struct options *o, struct buf *error);
} names[] = {
	{ "qctl", parse_qctl },
	{ "mailq", parse_mailq },
	{ "postqueue", parse_postqueue },
};

/* The first is for names that are none of these. */
static const struct name *
find_name(int argc, char *const *argv)
{
	const char *called = argc > 0 ? argv[0] : "";
	const char *slash = strrchr(called, '/');
	size_t i;

	if (slash != NULL)
		called = slash + 1;
	for (i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(called, names[i].name) == 0)
			return &names[i];
	return &names[0];
}

int
options_parse(
    int argc, char **argv, struct options *ret_options, struct buf *ret_error)
{
	const struct name *name = find_name(argc, argv);

	*ret_options = (struct options){ .program = name->name };
	return name->parse(argc, argv, ret_options, ret_error);
}

int
options_help(struct buf *out)
{
	int r = buf_add_str(out,
	    "usage: qctl VERB [OPTION ...] [SELECTION ...]\n\n"
	    "Show the messages in the queues.\n\n"
	    "  list                a row for each message, as postqueue -p\n"
	    "  show                the envelope and the last replies of "
	    "messages\n"
	    "  shape               recipients by domain and age in minutes\n\n"
	    "OPTION\n");

	if (r == 0)
		r = option_help(&table, out);
	if (r == 0)
		r = buf_add_str(out,
		    "\nSELECTION: ids, - (ids from standard input), ALL; each "
		    "filter that is given\nhas to fit, of one filter given "
		    "twice one value.\n");
	return r < 0 ? r : select_help(out);
}
