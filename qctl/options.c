#include "qctl/qctl.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/address.h"
#include "base/num.h"
#include "base/option.h"
#include "config/conf.h"
#include "ipc/trace.h"
#include "qctl/act/act.h"
#include "qctl/routing/rules.h"
#include "qctl/show/show.h"
#include "qctl/show/sites.h"
#include "spool/hold_note.h"

#define HOLD_TIME_MAX (10 * 365 * 86400 * USEC_PER_SEC)
#define TRACE_TIME    (600 * USEC_PER_SEC) /* where --for does not say */

enum given {
	GIVEN_JSON = 1,
	GIVEN_SENDERS = 2,
	GIVEN_CONTENT = 4,
	GIVEN_DRY_RUN = 8,
	GIVEN_YES = 16,
	GIVEN_FAILED = 32,
	GIVEN_FORCE = 64,
	GIVEN_REPAIR = 128,
	GIVEN_RATE = 256,
	GIVEN_TOP = 512,
	GIVEN_REASON = 1024,
	GIVEN_FOR = 2048,
	GIVEN_RULE = 4096,
	GIVEN_BY = 8192,
	GIVEN_SENDER = 16384,
	GIVEN_WITH_HOLD = GIVEN_REASON | GIVEN_FOR | GIVEN_RULE,
	GIVEN_WITH_ACTS = GIVEN_DRY_RUN | GIVEN_YES,
};

static const struct verb_row {
	const char *name;
	enum verb verb;
	enum spool_act act;
	unsigned may; /* bits of enum given */
	bool needs_words;
} verbs[] = {
	{ "list", VERB_LIST, 0, GIVEN_JSON, false },
	{ "show", VERB_SHOW, 0, GIVEN_CONTENT, true },
	{ "explain", VERB_EXPLAIN, 0, 0, true },
	{ "sites", VERB_SITES, 0, GIVEN_JSON | GIVEN_TOP, false },
	{ "shares", VERB_SHARES, 0, GIVEN_JSON, false },
	{ "shape", VERB_SHAPE, 0, GIVEN_JSON | GIVEN_SENDERS | GIVEN_BY,
	    false },
	{ "hold", VERB_ACT, ACT_HOLD, GIVEN_WITH_ACTS | GIVEN_WITH_HOLD, true },
	{ "release", VERB_ACT, ACT_RELEASE,
	    GIVEN_WITH_ACTS | GIVEN_RATE | GIVEN_RULE | GIVEN_FORCE, true },
	{ "requeue", VERB_ACT, ACT_REQUEUE, GIVEN_WITH_ACTS | GIVEN_FAILED,
	    true },
	{ "delete", VERB_ACT, ACT_DELETE, GIVEN_WITH_ACTS, true },
	{ "undelete", VERB_ACT, ACT_UNDELETE, GIVEN_WITH_ACTS, true },
	{ "retry", VERB_ACT, ACT_RETRY, GIVEN_WITH_ACTS | GIVEN_RATE, true },
	{ "expire", VERB_ACT, ACT_EXPIRE, GIVEN_WITH_ACTS | GIVEN_FORCE, true },
	{ "spread", VERB_ACT, ACT_SPREAD, GIVEN_WITH_ACTS, true },
	{ "check", VERB_CHECK, 0, GIVEN_CONTENT | GIVEN_REPAIR, false },
	{ "rules", VERB_RULES, 0, GIVEN_JSON, false },
	{ "route", VERB_ROUTE, 0, GIVEN_JSON | GIVEN_SENDER, false },
	{ "trace", VERB_TRACE, 0, GIVEN_JSON | GIVEN_FOR, false },
};

/* A complaint that ends with the names of all verbs. */
static int
refuse_verb(struct buf *error)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(verbs); i++)
		(void)buf_printf(
		    error, "%s%s", i == 0 ? ": " : ", ", verbs[i].name);
	return -EINVAL;
}

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
take_hold(const struct option_row *row, void *options, const char *value,
    struct buf *error)
{
	struct options *o = options;

	o->given |= (unsigned)row->arg;
	if ((unsigned)row->arg == GIVEN_FOR)
		return num_duration(value, USEC_PER_SEC, HOLD_TIME_MAX,
			   &o->hold_time) == 0
		    ? 0
		    : option_wrong(error, "--for ", value,
			  ": not a time (90s, 5m, 2h, 1d, 1w; up to 3650d)");
	o->hold_reason = value;
	return strlen(value) <= HOLD_REASON_MAX
	    ? 0
	    : option_wrong(error, "--reason ", value, ": too long");
}

static int
take_rate(const struct option_row *row, void *options, const char *value,
    struct buf *error)
{
	struct options *o = options;

	o->given |= (unsigned)row->arg;
	return pace_parse(value, &o->rate_count, &o->rate_unit) == 0
	    ? 0
	    : option_wrong(error, "--rate ", value,
		  ": not a rate as 20/s, 100/m or 5/h");
}

static int
take_by(const struct option_row *row, void *options, const char *value,
    struct buf *error)
{
	struct options *o = options;

	o->given |= (unsigned)row->arg;
	if ((unsigned)row->arg == GIVEN_SENDERS)
		value = "sender";
	return shape_find_key(value, &o->by) == 0
	    ? 0
	    : option_wrong(error, "--by ", value,
		  ": one of domain, sender, sender-domain, uid is needed");
}

static int
add_pattern(struct options *o, const char *word, struct buf *error)
{
	if (o->sites.npatterns == OPTIONS_PATTERNS_MAX)
		return option_wrong(error, "at ", word, ": too many words");
	o->sites.patterns[o->sites.npatterns++] = word;
	return 0;
}

/* The domain may be missing. */
static bool
is_address(const char *word)
{
	const size_t local = address_local_len(word), len = strlen(word);

	return address_check(word, len) == 0 && local > 0 && local + 1 != len;
}

static int
add_address(struct options *o, const char *word, struct buf *error)
{
	if (!is_address(word))
		return option_wrong(error, "", word, ": no address");
	return add_pattern(o, word, error);
}

static int
take_sender(const struct option_row *row, void *options, const char *value,
    struct buf *error)
{
	struct options *o = options;

	o->given |= (unsigned)row->arg;
	o->sender = strcmp(value, "<>") == 0 ? "" : value;
	return o->sender[0] == '\0' || is_address(value)
	    ? 0
	    : option_wrong(error, "--sender ", value, ": no address");
}

static int
take_end(const struct option_row *row, void *options, const char *value UNUSED,
    struct buf *error UNUSED)
{
	((struct options *)options)->verb = (enum verb)row->arg;
	return OPTION_END;
}

static int
take_top(const struct option_row *row UNUSED, void *options, const char *value,
    struct buf *error)
{
	struct options *o = options;
	uint64_t top;

	if (num_u64(value, 1, SITES_TOP_MAX, &top) < 0)
		return option_wrong(error, "--top ", value,
		    ": a number from 1 to 10000 is needed");
	o->given |= GIVEN_TOP;
	o->sites.top = (uint32_t)top;
	return 0;
}

/* `release --rule 7' is about messages that rule 7 holds. */
static int
take_selection(struct options *o, const char *word, struct buf *error)
{
	uint64_t number;

	if (o->act != ACT_RELEASE || (o->given & GIVEN_RULE) == 0)
		return select_add(&o->select, word, error);
	if (o->rule_number != 0 || num_u64(word, 1, UINT32_MAX, &number) < 0)
		return option_wrong(error, "", word,
		    ": release --rule takes one number of a rule");
	o->rule_number = (uint32_t)number;
	return select_add_value(&o->select, SELECT_RULE, word, error);
}

/* The first word is the verb. */
static int
take_word(void *options, const char *word, struct buf *error)
{
	struct options *o = options;
	unsigned i;

	if (o->verb == VERB_SITES || o->verb == VERB_TRACE ||
	    o->verb == VERB_SHARES)
		return add_pattern(o, word, error);
	if (o->verb == VERB_ROUTE)
		return add_address(o, word, error);
	if (o->verb != VERB_NONE)
		return take_selection(o, word, error);
	for (i = 0; i < ARRAY_LEN(verbs); i++)
		if (strcmp(verbs[i].name, word) == 0) {
			o->verb = verbs[i].verb;
			o->act = verbs[i].act;
			o->row = i;
			return 0;
		}
	(void)option_wrong(error, "unknown verb ", word, "");
	return refuse_verb(error);
}

/* clang-format off */
#define NGIVENS 15 /* the first rows, with a bit of enum given each */
static const struct option_row rows[] = {
	{ "json", 0, NULL, "list, shape, sites, shares, rules, route, trace: for programs,\none JSON object a line",
	    take_given, GIVEN_JSON },
	{ "by", 0, "KEY", "shape: domain (of the recipients), sender, sender-domain,\nor uid (the user who submitted the message)",
	    take_by, GIVEN_BY },
	{ "senders", 0, NULL, "shape: short for --by sender",
	    take_by, GIVEN_SENDERS },
	{ "content", 0, NULL, "show: the content, too; check: compare the checksums of\nall messages",
	    take_given, GIVEN_CONTENT },
	{ "top", 0, "N", "sites: N destinations at most, the dead and the busiest\nfirst",
	    take_top, GIVEN_TOP },
	{ "dry-run", 0, NULL, "only count the messages; change nothing",
	    take_given, GIVEN_DRY_RUN },
	{ "yes", 0, NULL, "do not ask before acting",
	    take_given, GIVEN_YES },
	{ "failed", 0, NULL,
	    "requeue: try recipients again that failed permanently",
	    take_given, GIVEN_FAILED },
	{ "force", 'f', NULL,
	    "expire: release messages on hold, too;\nrelease: release corrupt messages that can be read, too",
	    take_given, GIVEN_FORCE },
	{ "repair", 0, NULL, "check: repair what is found; the queue must be stopped",
	    take_given, GIVEN_REPAIR },
	{ "rate", 0, "N/s", "retry, release: at most N messages a second (/m minute,\n/h hour)",
	    take_rate, GIVEN_RATE },
	{ "reason", 0, "TEXT", "hold: the reason, for qctl show",
	    take_hold, GIVEN_REASON },
	{ "for", 0, "TIME", "hold: release the messages after TIME (90s, 5m, 2h, 1d, 1w);\ntrace: end after TIME (default 10m)",
	    take_hold, GIVEN_FOR },
	{ "rule", 0, NULL,
	    "hold: also hold mail that is submitted later, by a rule;\nrelease: remove the rule of this number",
	    take_given, GIVEN_RULE },
	{ "sender", 0, "ADDRESS", "route: of mail from this sender",
	    take_sender, GIVEN_SENDER },
	{ NULL, 'c', "FILE",
	    "read FILE instead of QSCHED_CONF or\n" CONF_DEFAULT_FILE,
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

static bool
is_about_queues(const struct select *s)
{
	return !s->from_stdin && s->nids == 0 &&
	    (s->keys & ~(1u << SELECT_QUEUE)) == 0;
}

/* Messages that are deleted are meant by undelete alone. */
static void
finish_act(struct options *o)
{
	struct select *s = &o->select;

	if (o->verb != VERB_ACT || o->act != ACT_UNDELETE || s->nids > 0 ||
	    (s->keys & 1u << SELECT_STATE) != 0)
		return;
	s->keys |= 1u << SELECT_STATE;
	s->states = 1u << SPOOL_DELETED;
}

static int
refuse(struct buf *error, const char *why)
{
	(void)buf_add_str(error, why);
	return -EINVAL;
}

static int
trace_judge(struct options *o, struct buf *error)
{
	const size_t len =
	    o->sites.npatterns == 1 ? strlen(o->sites.patterns[0]) : 0;

	if (len == 0 || len > TRACE_PATTERN_MAX)
		return refuse(error,
		    "trace takes one destination, as `qctl sites' prints it, "
		    "or the name or address of a server");
	o->trace_time = o->hold_time > 0 ? o->hold_time : TRACE_TIME;
	if (o->trace_time >= USEC_PER_SEC &&
	    o->trace_time <= TRACE_SECONDS_MAX * USEC_PER_SEC)
		return 0;
	return refuse(error, "trace --for takes a time from 1s to 1d");
}

static int
judge(struct options *o, struct buf *error)
{
	const struct verb_row *row = &verbs[o->row];
	size_t i;

	if (o->verb == VERB_NONE) {
		(void)refuse(error, "no verb given");
		return refuse_verb(error);
	}
	for (i = 0; i < NGIVENS; i++)
		if ((o->given & rows[i].arg & ~row->may) != 0) {
			(void)buf_printf(error, "--%s does not go with %s",
			    rows[i].name, row->name);
			return -EINVAL;
		}
	o->rule = (o->given & GIVEN_RULE) != 0;
	if (o->verb == VERB_ROUTE && o->sites.npatterns == 0)
		return refuse(error, "route needs an address");
	if (o->verb == VERB_SHARES && o->sites.npatterns > 1)
		return refuse(error, "shares takes one user");
	if (row->needs_words && !has_words(&o->select) && !o->rule) {
		(void)buf_printf(error,
		    "%s needs ids, filters, or ALL: nothing is selected",
		    row->name);
		return -EINVAL;
	}
	if (o->verb == VERB_CHECK && !is_about_queues(&o->select))
		return refuse(error, "check takes queue=NUMBER alone");
	o->repair = (o->given & GIVEN_REPAIR) != 0;
	o->json = (o->given & GIVEN_JSON) != 0;
	o->content = (o->given & GIVEN_CONTENT) != 0;
	o->dry_run = (o->given & GIVEN_DRY_RUN) != 0;
	o->yes = (o->given & GIVEN_YES) != 0;
	o->failed = (o->given & GIVEN_FAILED) != 0;
	if (o->act == ACT_EXPIRE && (o->given & GIVEN_FORCE) != 0)
		o->act = ACT_EXPIRE_HELD;
	if (o->act == ACT_RELEASE && (o->given & GIVEN_FORCE) != 0 && !o->rule)
		o->act = ACT_RELEASE_ALL;
	if (o->verb == VERB_RULES && has_words(&o->select))
		return refuse(error, "rules takes no selection");
	if (o->verb == VERB_TRACE)
		return trace_judge(o, error);
	finish_act(o);
	return rules_judge(o, error);
}

static int
parse_qctl(int argc, char **argv, struct options *o, struct buf *error)
{
	int r = option_parse(&table, argc, argv, o, error);

	return r == 0 ? judge(o, error) : r == OPTION_END ? 0 : r;
}

/* ---- names ---- */

static const struct name {
	const char *name;
	int (*parse)(
	    int argc, char **argv, struct options *o, struct buf *error);
} names[] = {
	{ "qctl", parse_qctl },
	{ "mailq", face_mailq },
	{ "sendmail", face_sendmail },
	{ "postqueue", face_postqueue },
	{ "qread", face_qread },
	{ "postsuper", face_postsuper },
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
	int r;

	*ret_options = (struct options){ .program = name->name };
	if (argc == 2 && strcmp(argv[1], "--help") == 0 &&
	    name->parse != face_sendmail) {
		ret_options->verb = VERB_HELP;
		return 0;
	}
	r = name->parse(argc, argv, ret_options, ret_error);
	ret_options->select.with_corrupt = ret_options->verb == VERB_LIST;
	return r;
}

int
options_help_rows(struct buf *out)
{
	return option_help(&table, out);
}
