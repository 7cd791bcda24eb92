/* Names of qctl. Programs give mailq and sendmail options of sendmail's: -q,
 * -q[!]IPART, -q[!]RPART, -q[!]SPART, which are a part of an id, of a
 * recipient, of a sender. `!` may stand behind the letter, too, and leaves out
 * what has that part.
 */
#include "qctl/qctl.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/option.h"

static const struct {
	char letter;
	enum select_key key;
} keys[] = {
	{ 'I', SELECT_ID },
	{ 'R', SELECT_RECIPIENT },
	{ 'S', SELECT_SENDER },
};

/* The value of -q; -EINVAL: none of these forms. */
static int
add_part(struct select *s, const char *value)
{
	bool leave_out = *value == '!';
	size_t i;

	value += leave_out;
	for (i = 0; i < ARRAY_LEN(keys); i++)
		if (*value == keys[i].letter)
			break;
	if (i == ARRAY_LEN(keys))
		return -EINVAL;
	value++;
	if (!leave_out && *value == '!') {
		leave_out = true;
		value++;
	}
	return *value == '\0'
	    ? -EINVAL
	    : select_add_part(s, keys[i].key, value, leave_out);
}

/* Other programs give mailq options of theirs, none of which but -q changes a
 * list. */
int
face_mailq(int argc, char **argv, struct options *o, struct buf *error UNUSED)
{
	int i;

	o->verb = VERB_LIST;
	for (i = 1; i < argc; i++)
		if (strncmp(argv[i], "-q", 2) == 0 &&
		    add_part(&o->select, argv[i] + 2) == -ENOMEM)
			return -ENOMEM;
	return 0;
}

/* As sendmail hands them on: -c FILE, then -q options. */
int
face_sendmail(int argc, char **argv, struct options *o, struct buf *error)
{
	int i = 1, r = 0;

	o->verb = VERB_ACT;
	o->act = ACT_RETRY;
	o->yes = o->quiet = true;
	if (i + 1 < argc && strcmp(argv[i], "-c") == 0) {
		o->conf_path = argv[i + 1];
		i += 2;
	}
	for (; r == 0 && i < argc; i++) {
		if (strcmp(argv[i], "-q") == 0)
			o->select.all = true;
		else if (strncmp(argv[i], "-q", 2) == 0)
			r = add_part(&o->select, argv[i] + 2);
		else
			r = -EINVAL;
		if (r == -EINVAL)
			return option_wrong(error, "", argv[i],
			    ": not a request to try mail again");
	}
	return r;
}

/* ---- postsuper, postqueue ---- */

static int
refuse(struct buf *error, const char *why)
{
	(void)buf_add_str(error, why);
	return -EINVAL;
}

static int
pass_over(const struct option_row *row UNUSED, void *options UNUSED,
    const char *value UNUSED, struct buf *error UNUSED)
{
	return 0;
}

/* One act for a command; -EINVAL: another was given. */
static int
set_act(struct options *o, enum spool_act act, struct buf *error)
{
	if (o->verb != VERB_NONE && (o->verb != VERB_ACT || o->act != act))
		return refuse(error, "one thing at a time");
	o->verb = VERB_ACT;
	o->act = act;
	o->yes = true;
	return 0;
}

static int
take_list(const struct option_row *row, void *options, const char *value UNUSED,
    struct buf *error)
{
	struct options *o = options;

	if (o->verb != VERB_NONE)
		return refuse(error, "one of -j and -p");
	o->verb = VERB_LIST;
	o->json = row->letter == 'j';
	return 0;
}

/* -f, -i ID, -s DOMAIN */
static int
take_retry(const struct option_row *row, void *options, const char *value,
    struct buf *error)
{
	struct options *o = options;
	int r = set_act(o, ACT_RETRY, error);

	if (r < 0)
		return r;
	return row->letter == 'f' ? select_add(&o->select, "ALL", error)
	    : row->letter == 'i'
	    ? select_add_id(&o->select, value, error)
	    : select_add_value(&o->select, SELECT_DOMAIN, value, error);
}

static const struct option_row queue_rows[] = {
	{ NULL, 'p', NULL, NULL, take_list, 0 },
	{ NULL, 'j', NULL, NULL, take_list, 0 },
	{ NULL, 'v', NULL, NULL, pass_over, 0 },
	{ NULL, 'f', NULL, NULL, take_retry, 0 },
	{ NULL, 's', "", NULL, take_retry, 0 },
	{ NULL, 'i', "", NULL, take_retry, 0 },
	{ NULL, 'c', "", NULL, option_take_string,
	    offsetof(struct options, conf_path) },
};

static const struct option_table queue_table = { queue_rows,
	ARRAY_LEN(queue_rows), false, option_no_word };

int
face_postqueue(int argc, char **argv, struct options *o, struct buf *error)
{
	int r = option_parse(&queue_table, argc, argv, o, error);

	return r == 0 && o->verb == VERB_NONE
	    ? refuse(error,
		  "-p lists the queues, -j does so for programs; -f, -i ID "
		  "and -s SITE try mail again")
	    : r;
}

/* ---- qread ---- */

static int
take_wish(const struct option_row *row, void *options, const char *value UNUSED,
    struct buf *error UNUSED)
{
	((struct options *)options)->qread |= (unsigned)row->arg;
	return 0;
}

static const struct option_row wishes[] = {
	{ NULL, 'a', NULL, NULL, take_wish, QREAD_MESSAGES | QREAD_QUEUES },
	{ NULL, 'l', NULL, NULL, take_wish, QREAD_LOCAL },
	{ NULL, 'r', NULL, NULL, take_wish, QREAD_REMOTE },
	{ NULL, 't', NULL, NULL, take_wish, QREAD_TODO },
	{ NULL, 'c', NULL, NULL, take_wish, QREAD_COUNTS },
	{ NULL, 's', NULL, NULL, take_wish, QREAD_SILENT },
	{ NULL, 'i', NULL, NULL, take_wish, QREAD_QUEUES },
};

static const struct option_table wish_table = { wishes, ARRAY_LEN(wishes),
	false, option_no_word };

int
face_qread(int argc, char **argv, struct options *o, struct buf *error)
{
	int r = option_parse(&wish_table, argc, argv, o, error);

	o->verb = VERB_READ;
	if ((o->qread & (QREAD_MESSAGES | QREAD_QUEUES)) == 0)
		o->qread |= QREAD_LOCAL | QREAD_REMOTE;
	/* Without messages there is something to count. */
	if ((o->qread & QREAD_SILENT) != 0 && (o->qread & QREAD_QUEUES) == 0)
		o->qread |= QREAD_COUNTS;
	return r;
}

/* ---- postsuper ---- */

/* ID, ALL, or - for ids from standard input. */
static int
take_super(const struct option_row *row, void *options, const char *value,
    struct buf *error)
{
	struct options *o = options;
	int r = set_act(o, (enum spool_act)row->arg, error);

	if (r < 0)
		return r;
	if (strcmp(value, "ALL") == 0 || strcmp(value, "-") == 0)
		return select_add(&o->select, value, error);
	return select_add_id(&o->select, value, error);
}

static int
refuse_super(const struct option_row *row, void *options UNUSED,
    const char *value UNUSED, struct buf *error)
{
	(void)buf_printf(error,
	    "-%c is not supported here; -h, -H, -r, -d, -e, -f and -s are",
	    row->letter);
	return -EOPNOTSUPP;
}

/* The names of files, and what else is wrong. */
static int
take_structure(const struct option_row *row UNUSED, void *options,
    const char *value UNUSED, struct buf *error)
{
	struct options *o = options;

	if (o->verb != VERB_NONE)
		return refuse(error, "one thing at a time");
	o->verb = VERB_CHECK;
	o->repair = true;
	return 0;
}

/* Words are names of queues, which are states here. */
static int
take_super_word(void *options, const char *word, struct buf *error)
{
	return select_add_value(
	    &((struct options *)options)->select, SELECT_STATE, word, error);
}

static const struct option_row super_rows[] = {
	{ NULL, 'h', "", NULL, take_super, ACT_HOLD },
	{ NULL, 'H', "", NULL, take_super, ACT_RELEASE },
	{ NULL, 'r', "", NULL, take_super, ACT_REQUEUE },
	{ NULL, 'd', "", NULL, take_super, ACT_DELETE },
	{ NULL, 'e', "", NULL, take_super, ACT_EXPIRE },
	{ NULL, 'f', "", NULL, take_super, ACT_EXPIRE_HELD },
	{ NULL, 'p', NULL, NULL, refuse_super, 0 },
	{ NULL, 's', NULL, NULL, take_structure, 0 },
	{ NULL, 'S', NULL, NULL, refuse_super, 0 },
	{ NULL, 'v', NULL, NULL, pass_over, 0 },
	{ NULL, 'c', "", NULL, option_take_string,
	    offsetof(struct options, conf_path) },
};

static const struct option_table super_table = { super_rows,
	ARRAY_LEN(super_rows), false, take_super_word };

int
face_postsuper(int argc, char **argv, struct options *o, struct buf *error)
{
	int r = option_parse(&super_table, argc, argv, o, error);

	return r == 0 && o->verb == VERB_NONE
	    ? refuse(error,
		  "-h, -H, -r, -d, -e or -f, each with an id, - or ALL; or -s")
	    : r;
}

/* ---- help ---- */

static const struct {
	const char *name, *text;
} helps[] = {
	{ "mailq",
	    "usage: mailq [-q[!]Ipart | -q[!]Rpart | -q[!]Spart ...]\n\n"
	    "List the messages in the queues, as qctl list does: those with "
	    "this part of\ntheir id (I), of a recipient (R), of the sender "
	    "(S); "
	    "! leaves them out.\n" },
	{ "postqueue",
	    "usage: postqueue -p | -j | -f | -i ID | -s DOMAIN [-c FILE]\n\n"
	    "  -p         list the messages in the queues, as qctl list does\n"
	    "  -j         the same for programs, an object a line\n"
	    "  -f         deferred messages are due at once\n"
	    "  -i ID      this one\n"
	    "  -s DOMAIN  those with a recipient of the domain\n"
	    "  -c FILE    configuration\n" },
	{ "postsuper",
	    "usage: postsuper -h | -H | -r | -d | -e | -f  ID | ALL | - "
	    "[STATE ...]\n       postsuper -s\n\n"
	    "  -h, -H     hold, release\n"
	    "  -r         requeue: due at once, from hold too\n"
	    "  -d         delete; qctl undelete brings back, for a day\n"
	    "  -e, -f     expire; -f those on hold, too\n"
	    "  -s         mend what qctl check finds\n"
	    "  -c FILE    configuration\n\n"
	    "-: ids from standard input. STATE: maildrop, incoming, active, "
	    "deferred, hold.\n" },
	{ "qread",
	    "usage: qread [-acilrst]\n\n"
	    "List messages and their recipients as programs around qmail read "
	    "them.\n\n"
	    "  -l         recipients whose mail is local\n"
	    "  -r         remote ones; without an option, -lr\n"
	    "  -t         messages that are not routed yet\n"
	    "  -c         counts of recipients, too\n"
	    "  -s         nothing but counts, or with -i the queues\n"
	    "  -i         the queues, from shared memory\n"
	    "  -a         -lrti\n" },
};

int
face_help(const char *name, struct buf *out)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(helps); i++)
		if (strcmp(helps[i].name, name) == 0)
			return buf_add_str(out, helps[i].text);
	return -ENOENT;
}
