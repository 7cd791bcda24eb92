/* Names of qctl that programs give options of sendmail's: -q, -q[!]IPART,
 * -q[!]RPART, -q[!]SPART, which are a part of an id, of a recipient, of a
 * sender. `!` may stand behind the letter, too, and leaves out what has that
 * part.
 */
#include "qctl/qread.h"

#include <errno.h>
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
	return r;
}
