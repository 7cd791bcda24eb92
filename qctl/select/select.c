#include "qctl/select/select.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/io.h"
#include "base/num.h"
#include "base/option.h"

#define TIME_MAX      (100LL * 365 * 24 * 3600 * USEC_PER_SEC)
#define LINE_MAX_SIZE 256

static int
add_id(struct select *s, const struct queue_id *id)
{
	const struct select_id one = { .id = *id };

	return array_add(&s->ids, &s->nids, &s->ids_cap, &one, sizeof(one));
}

/* An id as listings and logs print it: behind `#' (qread), before marks of
 * mailq or a colon, with blanks and line ends around it, in lower case. */
static int
parse_id(const char *word, struct queue_id *ret_id)
{
	static const char blanks[] = " \t\r\n";
	char text[QUEUE_ID_SIZE];
	size_t i, len;

	word += strspn(word, blanks);
	word += *word == '#' ? 1 : 0;
	len = strcspn(word, " \t\r\n*!#:");
	if (len >= sizeof(text) ||
	    word[len + strspn(word + len, " \t\r\n*!#:")] != '\0')
		return -EINVAL;
	for (i = 0; i < len; i++)
		text[i] = word[i] >= 'a' && word[i] <= 'f'
		    ? (char)(word[i] - 'a' + 'A')
		    : word[i];
	text[len] = '\0';
	return queue_id_parse(text, ret_id);
}

static int
add_term(struct select *s, const struct select_term *term)
{
	return array_add(
	    &s->terms, &s->nterms, &s->terms_cap, term, sizeof(*term));
}

/* ---- values ---- */

static int
take_text(struct select *s, enum select_key key, const char *value)
{
	const bool is_null = key == SELECT_SENDER && strcmp(value, "<>") == 0;
	const struct select_term term = { .key = key,
		.text = is_null ? "" : value };

	return *value == '\0' ? -EINVAL : add_term(s, &term);
}

/* A time, a size, or a number. */
static int
take_number(struct select *s, enum select_key key, const char *value)
{
	struct select_term term = { .key = key };
	usec_t time = 0;
	int r;

	if (key == SELECT_OLDER || key == SELECT_YOUNGER) {
		r = num_duration(value, 0, TIME_MAX, &time);
		term.number = (uint64_t)time;
	} else if (key == SELECT_LARGER || key == SELECT_SMALLER)
		r = num_size(value, 0, INT64_MAX, &term.number);
	else
		r = num_u64(value, 1, UINT32_MAX, &term.number);
	return r < 0 ? -EINVAL : add_term(s, &term);
}

/* "7", "3-5". */
static int
take_range(struct select *s, const char *text, size_t len)
{
	char copy[16];
	char *dash;
	uint64_t first, last;

	if (len >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	dash = strchr(copy, '-');
	if (dash != NULL)
		*dash++ = '\0';
	if (num_u64(copy, 1, QUEUE_NUM_MAX, &first) < 0)
		return -EINVAL;
	if (dash == NULL)
		last = first;
	else if (num_u64(dash, first, QUEUE_NUM_MAX, &last) < 0)
		return -EINVAL;
	for (; first <= last; first++)
		s->queues[first] = true;
	return 0;
}

static int
take_state(struct select *s, const char *text, size_t len)
{
	enum spool_dir dir;
	int r = message_state_find(text, len, &dir);

	if (r == 0)
		s->states |= 1u << dir;
	return r;
}

/* Values with commas between. */
static int
take_list(struct select *s, enum select_key key, const char *value)
{
	int r = 0;

	for (;;) {
		const size_t len = strcspn(value, ",");

		r = key == SELECT_STATE ? take_state(s, value, len)
					: take_range(s, value, len);
		if (r < 0 || value[len] == '\0')
			return r;
		value += len + 1;
	}
}

/* clang-format off */
static const struct key {
	const char *name, *form;
	int (*take)(struct select *s, enum select_key key, const char *value);
	const char *help;
} keys[SELECT_NKEYS] = {
	[SELECT_ID] = { "id", "ID", take_text,
	    "in this and the next four `*' stands for any text" },
	[SELECT_SENDER] = { "sender", "ADDRESS", take_text,
	    "<> is the null sender" },
	[SELECT_RECIPIENT] = { "recipient", "ADDRESS", take_text,
	    "the message has this undelivered recipient" },
	[SELECT_DOMAIN] = { "domain", "DOMAIN", take_text,
	    "the message has an undelivered recipient in DOMAIN" },
	[SELECT_DESTINATION] = { "destination", "DESTINATION", take_text,
	    "an undelivered recipient is routed to NEXTHOP or\n"
	    "TRANSPORT/NEXTHOP" },
	[SELECT_REASON] = { "reason", "TEXT", take_text,
	    "the last reason of an undelivered recipient has TEXT" },
	[SELECT_QUEUE] = { "queue", "NUMBERS", take_list, "in these queues: 3, 1,4, 2-5" },
	[SELECT_STATE] = { "state", "STATES", take_list,
	    "maildrop, incoming, active, deferred, hold, deleted,\n"
	    "corrupt; the default is all but deleted and corrupt,\nof a list all but deleted" },
	[SELECT_OLDER] = { "older", "TIME", take_number,
	    "accepted longer ago than TIME: 90s, 5m, 2h, 1d, 1w" },
	[SELECT_YOUNGER] = { "younger", "TIME", take_number,
	    "accepted less than TIME ago" },
	[SELECT_LARGER] = { "larger", "SIZE", take_number,
	    "content larger than SIZE bytes: 100, 64k, 10m" },
	[SELECT_SMALLER] = { "smaller", "SIZE", take_number,
	    "content smaller than SIZE bytes" },
	[SELECT_ATTEMPTS] = { "attempts", "COUNT", take_number,
	    "COUNT attempts at delivery or more" },
	[SELECT_FEWER] = { "fewer", "COUNT", take_number,
	    "fewer than COUNT attempts; fewer=1: never tried" },
	[SELECT_RULE] = { "rule", "NUMBER", take_number,
	    "on hold by the rule of this number (qctl rules)" },
};
/* clang-format on */

#define KEYS_OF_TEXT                                                      \
	(1u << SELECT_ID | 1u << SELECT_SENDER | 1u << SELECT_RECIPIENT | \
	    1u << SELECT_DOMAIN | 1u << SELECT_DESTINATION |              \
	    1u << SELECT_REASON)

/* The last term, which KEY!=VALUE has made. */
static void
leave_out(struct select *s)
{
	s->terms[s->nterms - 1].leaves_out = true;
	s->keys |= 1u << SELECT_NOT;
}

static const struct {
	const char *form, *values;
} forms[] = {
	{ "NUMBERS", "1 to 4095, as 3, 1,4, 2-5" },
	{ "STATES",
	    "maildrop, incoming, active, deferred, hold, deleted, corrupt" },
	{ "TIME", "a time, as 90s, 5m, 2h, 1d, 1w" },
	{ "SIZE", "bytes, as 100, 64k, 10m" },
	{ "NUMBER", "the number of a rule, from 1" },
	{ "COUNT", "a number of attempts, from 1; fewer=1: never tried" },
};

/* "filter `state=foo': state takes maildrop, …" */
static int
wrong_value(const struct key *key, const char *what, const char *word,
    struct buf *error)
{
	const char *values = key == &keys[SELECT_SENDER]
	    ? "an address, or <> for the null sender"
	    : "a text that is not empty";
	size_t i;

	for (i = 0; i < ARRAY_LEN(forms); i++)
		if (strcmp(forms[i].form, key->form) == 0)
			values = forms[i].values;
	(void)option_wrong(error, what, word, ": ");
	(void)buf_printf(error, "%s takes %s", key->name, values);
	return -EINVAL;
}

static int
take_key(
    struct select *s, const char *word, const char *equals, struct buf *error)
{
	const bool leaves = equals > word && equals[-1] == '!';
	const size_t len = (size_t)(equals - word) - (leaves ? 1 : 0);
	unsigned i;
	int r;

	for (i = 0; i < SELECT_NKEYS; i++)
		if (strlen(keys[i].name) == len &&
		    memcmp(keys[i].name, word, len) == 0)
			break;
	if (i == SELECT_NKEYS)
		return option_wrong(error, "filter ", word,
		    ": the keys are id, sender, recipient, domain, "
		    "destination, reason, queue, state, older, younger, "
		    "larger, smaller, attempts, fewer, rule");
	if (leaves && (KEYS_OF_TEXT & 1u << i) == 0)
		return option_wrong(error, "filter ", word,
		    ": != goes with id, sender, recipient, domain, "
		    "destination and reason");
	r = keys[i].take(s, (enum select_key)i, equals + 1);
	if (r == 0 && leaves)
		leave_out(s);
	else
		s->keys |= 1u << i;
	return r == -EINVAL ? wrong_value(&keys[i], "filter ", word, error) : r;
}

int
select_add(struct select *s, const char *word, struct buf *error)
{
	const char *equals = strchr(word, '=');
	struct queue_id id;

	if (strcmp(word, "-") == 0) {
		s->from_stdin = true;
		return 0;
	}
	if (strcmp(word, "ALL") == 0) {
		s->all = true;
		return 0;
	}
	if (equals != NULL)
		return take_key(s, word, equals, error);
	if (parse_id(word, &id) == 0)
		return add_id(s, &id);
	return option_wrong(
	    error, "", word, ": neither a queue id, nor KEY=VALUE, nor ALL");
}

int
select_add_id(struct select *s, const char *word, struct buf *error)
{
	struct queue_id id;

	return parse_id(word, &id) == 0
	    ? add_id(s, &id)
	    : option_wrong(error, "", word, ": not a queue id");
}

int
select_add_value(
    struct select *s, enum select_key key, const char *value, struct buf *error)
{
	int r = keys[key].take(s, key, value);

	s->keys |= 1u << key;
	return r == -EINVAL ? wrong_value(&keys[key], "", value, error) : r;
}

int
select_add_part(
    struct select *s, enum select_key key, const char *text, bool leave)
{
	const struct select_term term = {
		.key = key, .text = text, .part = true, .leaves_out = leave
	};

	s->keys |= leave ? 1u << SELECT_NOT : 1u << key;
	return add_term(s, &term);
}

/* ---- ids from a stream ---- */

static int
take_line(struct select *s, char *line, struct buf *error)
{
	struct queue_id id;
	char *word = line + strspn(line, " \t\r");

	word[strcspn(word, " \t\r")] = '\0';
	if (word[strspn(word, "*!#")] == '\0')
		return 0;
	if (parse_id(word, &id) < 0)
		return option_wrong(error, "standard input: ", word,
		    ": not a queue id; nothing is done");
	return add_id(s, &id);
}

/* The rest of a line behind its first LINE_MAX_SIZE bytes is not looked at. */
static int
take_lines(struct select *s, struct buf *text, struct buf *error)
{
	char *line = text->data, *end;
	int r = 0;

	while (r == 0 &&
	    (end = memchr(line, '\n',
		 (size_t)(text->data + text->len - line))) != NULL) {
		*end = '\0';
		r = take_line(s, line, error);
		line = end + 1;
	}
	text->len -= (size_t)(line - text->data);
	memmove(text->data, line, text->len);
	text->data[text->len] = '\0';
	return r;
}

int
select_read_ids(struct select *s, int fd, struct buf *error)
{
	struct buf text = { 0 };
	char chunk[4096];
	int64_t n;
	int r = 0;

	while (r == 0 && (n = io_read_all(fd, chunk, sizeof(chunk))) > 0) {
		r = buf_add(&text, chunk, (size_t)n);
		if (r == 0)
			r = take_lines(s, &text, error);
		if (text.len > LINE_MAX_SIZE)
			text.len = LINE_MAX_SIZE;
	}
	if (r == 0 && n < 0)
		r = (int)n;
	if (r == 0 && text.len > 0) {
		text.data[text.len] = '\0';
		r = take_line(s, text.data, error);
	}
	buf_done(&text);
	return r;
}

void
select_done(struct select *s)
{
	free(s->ids);
	free(s->terms);
	*s = (struct select){ 0 };
}

int
select_help(struct buf *out)
{
	size_t i;

	buf_add_str(out,
	    "  KEY!=VALUE          leaves out what KEY=VALUE selects: id, "
	    "sender, recipient,\n                      domain, destination, "
	    "reason\n");
	for (i = 0; i < SELECT_NKEYS; i++) {
		const char *help = keys[i].help;
		const int first = (int)strcspn(help, "\n");
		int used =
		    (int)strlen(keys[i].name) + (int)strlen(keys[i].form) + 3;

		buf_printf(out, "  %s=%s%*s%.*s\n", keys[i].name, keys[i].form,
		    used < 22 ? 22 - used : 1, "", first, help);
		if (help[first] != '\0')
			buf_printf(out, "%22s%s\n", "", help + first + 1);
	}
	return out->error;
}
