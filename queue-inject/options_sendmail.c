/* The switches of sendmail: one table of letters, one of -b modes. */
#include "queue-inject/options.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

enum value {
	VALUE_NONE,
	VALUE_NEEDED,   /* attached, or the next argument */
	VALUE_ATTACHED, /* or nothing */
};

struct letter {
	char letter;
	enum value value;
	/* NULL: `field` is set. */
	int (*set)(struct options *o, const char *value, struct refusal *why);
	/* Offset of a string, or without a value of a bool. FIELD_NONE: the
	 * switch is accepted, and without a meaning here. */
	size_t field;
};

#define FIELD_NONE  SIZE_MAX
#define FIELD(name) NULL, offsetof(struct options, name)
#define NOTHING     NULL, FIELD_NONE

#define WHERE       "routing_file and alias_file say where an address goes"

static int
set_mode(struct options *o, const char *value, struct refusal *why)
{
	static const struct {
		const char *name;
		enum task task;
		const char *whose; /* not NULL: it is not supported */
	} modes[] = {
		{ "m", TASK_SUBMIT, NULL },
		{ "s", TASK_DIALOGUE, NULL },
		{ "p", TASK_LIST, NULL },
		{ "i", TASK_ALIASES, NULL },
		{ "v", TASK_VERIFY, NULL },
		{ "d", 0, "the daemon is qscheduler" },
		{ "D", 0, "the daemon is qscheduler" },
		{ "t", 0, WHERE },
		{ "h", 0, "there is no host status database" },
		{ "H", 0, "there is no host status database" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(modes); i++) {
		if (strcmp(value, modes[i].name) != 0)
			continue;
		if (modes[i].whose != NULL)
			return refuse(why, REFUSAL_UNSUPPORTED,
			    "-b%s is not supported: %s", value, modes[i].whose);
		o->task = modes[i].task;
		return 0;
	}
	return refuse(why, REFUSAL_USAGE, "-b%.16s: unknown mode; %s", value,
	    "-bm and -bs submit, -bp lists");
}

static int
set_body_type(UNUSED struct options *o, const char *value, struct refusal *why)
{
	if (strcasecmp(value, "8BITMIME") == 0 ||
	    strcasecmp(value, "7BIT") == 0)
		return 0;
	return refuse(why, REFUSAL_USAGE,
	    "-B takes 7BIT or 8BITMIME, not `%.40s'", value);
}

/* -oi and -oIgnoreDots are -i; the others meant something elsewhere. */
static int
set_o(struct options *o, const char *value, UNUSED struct refusal *why)
{
	o->ignore_dot |=
	    strcmp(value, "i") == 0 || strcasecmp(value, "IgnoreDots") == 0;
	return 0;
}

/* An interval is for a daemon that runs the queue; here every message has its
 * own due time. The value of another form is checked where it is read. */
static int
set_flush(struct options *o, const char *value, struct refusal *why)
{
	const char *letter = value + (*value == '!');

	if (*value >= '0' && *value <= '9') {
		o->task = TASK_NOTHING;
		return 0;
	}
	if (*value != '\0' &&
	    (*letter == '\0' || strchr("IRS", *letter) == NULL))
		return refuse(why, REFUSAL_UNSUPPORTED,
		    "-q%.16s is not supported: -q, -qI, -qR and -qS are",
		    value);
	if (*value != '\0' && letter[1] == '\0')
		return refuse(why, REFUSAL_USAGE,
		    "-q%.16s lacks its value: -qIPART, -qRPART, -qSPART",
		    value);
	if (o->nretry == OPTIONS_RETRY_MAX)
		return refuse(why, REFUSAL_USAGE, "too many -q");
	o->retry[o->nretry++] = value;
	if (o->task != TASK_LIST) /* -bp tries nothing again */
		o->task = TASK_RETRY;
	return 0;
}

static int
set_aliases(
    struct options *o, UNUSED const char *value, UNUSED struct refusal *why)
{
	o->task = TASK_ALIASES;
	return 0;
}

static int
set_notify(struct options *o, const char *value, struct refusal *why)
{
	if (dsn_notify_parse(value, &o->rcpt_dsn.notify) == 0)
		return 0;
	return refuse(why, REFUSAL_USAGE,
	    "-N takes never, or some of success,failure,delay, not "
	    "`%.40s'",
	    value);
}

static int
set_return(struct options *o, const char *value, struct refusal *why)
{
	if (dsn_ret_parse(value, &o->dsn.ret) == 0)
		return 0;
	return refuse(
	    why, REFUSAL_USAGE, "-R takes full or hdrs, not `%.40s'", value);
}

/* In Postfix before 2.3, -V asked for VERP and had no value. A caller of that
 * time would have the next switch taken for the id, and the value of that
 * switch for a recipient. */
static int
set_envid(struct options *o, const char *value, struct refusal *why)
{
	if (value[0] == '-')
		return refuse(why, REFUSAL_USAGE,
		    "-V takes an envelope id, not `%.40s'; VERP is -XV", value);
	if (dsn_envid_set(&o->dsn, value, strlen(value)) == 0)
		return 0;
	return refuse(
	    why, REFUSAL_USAGE, "-V `%.40s' is not " OPTIONS_ENVID, value);
}

/* -XV asks for a sender of its own for each recipient, with these delimiters;
 * another value names a file for all traffic, which is not written. The second
 * delimiter is fixed: the queue keeps the form of qmail, which has no other,
 * and programs that read bounces look for it. */
static int
set_traffic(struct options *o, const char *value, struct refusal *why)
{
	if (*value != 'V')
		return 0;
	if (value[1] == '\0') {
		o->verp = '+';
		return 0;
	}
	if (strchr("-+=", value[1]) == NULL || value[2] != '=' ||
	    value[3] != '\0')
		return refuse(why, REFUSAL_USAGE,
		    "-XV takes the delimiters -=, += or ==, not `%.40s'",
		    value + 1);
	o->verp = value[1];
	return 0;
}

/* clang-format off */
static const struct letter letters[] = {
	{ 'A', VALUE_NEEDED,   NOTHING },
	{ 'B', VALUE_NEEDED,   set_body_type, 0 },
	{ 'C', VALUE_NEEDED,   FIELD(conf_path) },
	{ 'F', VALUE_NEEDED,   FIELD(full_name) },
	{ 'G', VALUE_NONE,     NOTHING },
	{ 'I', VALUE_NONE,     set_aliases, 0 },
	{ 'L', VALUE_NEEDED,   NOTHING },
	{ 'N', VALUE_NEEDED,   set_notify, 0 },
	{ 'O', VALUE_NEEDED,   NOTHING },
	{ 'R', VALUE_NEEDED,   set_return, 0 },
	{ 'U', VALUE_NONE,     NOTHING },
	{ 'V', VALUE_NEEDED,   set_envid, 0 },
	{ 'X', VALUE_NEEDED,   set_traffic, 0 },
	{ 'b', VALUE_NEEDED,   set_mode, 0 },
	{ 'c', VALUE_NONE,     NOTHING },
	{ 'd', VALUE_ATTACHED, NOTHING },
	{ 'e', VALUE_NEEDED,   NOTHING },
	{ 'f', VALUE_NEEDED,   FIELD(sender) },
	{ 'h', VALUE_NEEDED,   NOTHING },
	{ 'i', VALUE_NONE,     FIELD(ignore_dot) },
	{ 'm', VALUE_NONE,     NOTHING },
	{ 'n', VALUE_NONE,     NOTHING },
	{ 'o', VALUE_NEEDED,   set_o, 0 },
	{ 'p', VALUE_NEEDED,   NOTHING },
	{ 'q', VALUE_ATTACHED, set_flush, 0 },
	{ 'r', VALUE_NEEDED,   FIELD(sender) },
	{ 's', VALUE_NONE,     NOTHING },
	{ 't', VALUE_NONE,     FIELD(from_header) },
	{ 'v', VALUE_NONE,     NOTHING },
	{ 'x', VALUE_NONE,     NOTHING },
};
/* clang-format on */

static const struct letter *
find_letter(char c)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(letters); i++)
		if (letters[i].letter == c)
			return &letters[i];
	return NULL;
}

static void
set_field(struct options *o, const struct letter *l, const char *value)
{
	void *field = (char *)o + l->field;

	if (l->value == VALUE_NONE)
		*(bool *)field = true;
	else
		*(const char **)field = value;
}

/* One argument that begins with `-`: letters, the last of which may take the
 * rest, or the next argument, as its value. *next is that argument's index. */
static int
take_argument(
    int argc, char **argv, int *next, struct options *o, struct refusal *why)
{
	const char *p = argv[*next] + 1;
	int r = 0;

	++*next;
	while (*p != '\0' && r == 0) {
		const struct letter *l = find_letter(*p++);
		const char *value = NULL;

		if (l == NULL)
			return refuse(why, REFUSAL_USAGE,
			    "unknown switch in `%.32s'; see "
			    "qscheduler-sendmail(1)",
			    argv[*next - 1]);
		if (l->value != VALUE_NONE) {
			value = p;
			p += strlen(p);
		}
		if (l->value == VALUE_NEEDED && *value == '\0') {
			if (*next >= argc)
				return refuse(why, REFUSAL_USAGE,
				    "-%c lacks its value", l->letter);
			value = argv[(*next)++];
		}
		if (l->set != NULL)
			r = l->set(o, value, why);
		else if (l->field != FIELD_NONE)
			set_field(o, l, value);
	}
	return r;
}

int
options_sendmail(
    int argc, char **argv, struct options *ret_options, struct refusal *why)
{
	struct options o = { .task = TASK_SUBMIT, .lf = true, .qualify = true };
	int next = argc > 0 ? 1 : 0, r = 0;
	bool ended = false;

	while (next < argc && r == 0 && !ended && argv[next][0] == '-' &&
	    argv[next][1] != '\0') {
		ended = strcmp(argv[next], "--") == 0;
		if (ended)
			next++;
		else
			r = take_argument(argc, argv, &next, &o, why);
	}
	if (r < 0)
		return r;
	o.rcpts = argv + next;
	o.nrcpts = (size_t)(argc - next);
	*ret_options = o;
	if (o.task == TASK_VERIFY)
		return refuse(why, REFUSAL_UNSUPPORTED,
		    "-bv is not supported: " WHERE "; try `qctl route %.100s`",
		    o.nrcpts == 0 ? "ADDRESS" : o.rcpts[0]);
	if ((o.task == TASK_RETRY || o.task == TASK_NOTHING) &&
	    (o.nrcpts > 0 || o.from_header))
		return refuse(why, REFUSAL_USAGE,
		    "-q sends no message: neither -t nor a recipient");
	if (o.task == TASK_DIALOGUE && (o.nrcpts > 0 || o.from_header))
		return refuse(why, REFUSAL_USAGE,
		    "-bs has its recipients by SMTP: neither -t nor a "
		    "recipient");
	/* MAIL has the sender: neither -f nor the name of the user counts. */
	if (o.task == TASK_DIALOGUE)
		ret_options->sender = ret_options->full_name = "";
	return ended ? 0 : options_check_rcpts(&o, why);
}
