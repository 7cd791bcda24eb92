#include "route/tls_policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/domain.h"
#include "base/line.h"
#include "base/line_file.h"
#include "base/texts.h"
#include "route/hop_key.h"

#define MATCH "match="

struct tls_policies {
	struct tls_policy *rows; /* by key */
	size_t count, room;
	struct texts texts; /* keys and names */
};

static const char *const level_words[TLS_NLEVELS] = {
	[TLS_LEVEL_NONE] = "none",
	[TLS_LEVEL_MAY] = "may",
	[TLS_LEVEL_ENCRYPT] = "encrypt",
	[TLS_LEVEL_VERIFY] = "verify",
};

const char *
tls_level_word(enum tls_level level)
{
	return level_words[level];
}

/* ---- one line ---- */

/* ".domain"; false: it is none. */
static bool
set_domain(char key[HOP_KEY_MAX], const char *word)
{
	char *domain = key + 1;
	const char *why;

	key[0] = '.';
	return domain_normalize(word + 1, domain, &why) == 0 &&
	    word[strlen(word) - 1] != '.' && nexthop_fits_domain(domain) &&
	    strchr(domain, '[') == NULL;
}

static const char *
set_key(struct tls_policies *t, struct tls_policy *row, const char *word)
{
	char key[HOP_KEY_MAX] = "";
	const bool fits = *word == '.' ? set_domain(key, word)
				       : hop_key_of_row(word, key) == 0;

	if (!fits)
		return "is neither a next hop nor a domain behind a dot";
	row->at.key = texts_keep(&t->texts, key);
	return row->at.key == NULL ? "out of memory" : NULL;
}

static const char *
set_level(struct tls_policy *row, const char *word)
{
	int i;

	for (i = 0; i < TLS_NLEVELS; i++)
		if (strcmp(word, level_words[i]) == 0) {
			row->level = (enum tls_level)i;
			return NULL;
		}
	return "the level must be one of: " TLS_LEVEL_WORDS;
}

static const char *
add_name(struct tls_policies *t, struct tls_policy *row, const char *name)
{
	char text[1 + NEXTHOP_TEXT_MAX + 1] = ".", *host = text + 1;
	const bool below = *name == '.';
	struct nexthop hop;
	bool fits = nexthop_to_ascii(below ? name + 1 : name, host) == 0 &&
	    nexthop_parse(host, HOP_PORT_SMTP, &hop) == 0 &&
	    hop.kind != NEXTHOP_UNIX && strcmp(hop.host, host) == 0;

	if (!fits)
		return "match= needs a name, a domain behind a dot, or an "
		       "address";
	if (row->nnames == TLS_POLICY_NAMES_MAX)
		return "too many names";
	nexthop_lower_case(host);
	row->names[row->nnames] = texts_keep(&t->texts, below ? text : host);
	return row->names[row->nnames++] == NULL ? "out of memory" : NULL;
}

static const char *
set_option(struct tls_policies *t, struct tls_policy *row, const char *word)
{
	if (strncmp(word, MATCH, strlen(MATCH)) == 0)
		return add_name(t, row, word + strlen(MATCH));
	if (strcmp(word, "implicit") != 0)
		return "behind the level stand match=NAME and implicit";
	row->implicit = true;
	return NULL;
}

static const char *
judge(const struct tls_policy *row, size_t nwords)
{
	if (nwords < 2)
		return "a next hop and a level are needed";
	if (row->nnames > 0 && row->level != TLS_LEVEL_VERIFY)
		return "match= is for the level verify alone";
	if (row->implicit && row->level < TLS_LEVEL_ENCRYPT)
		return "implicit needs the level encrypt or verify";
	return NULL;
}

/* NULL, or the complaint. *ret_word is the wrong word, or NULL if the line as a
 * whole is wrong. */
static const char *
parse_line(struct tls_policies *t, struct tls_policy *row, char *line,
    const char **ret_word)
{
	static const char blanks[] = " \t";
	const char *why = NULL;
	size_t n = 0;
	char *word, *next = NULL;

	for (word = strtok_r(line, blanks, &next); word != NULL;
	     word = strtok_r(NULL, blanks, &next)) {
		why = n == 0 ? (n++, set_key(t, row, word))
		    : n == 1 ? (n++, set_level(row, word))
			     : set_option(t, row, word);
		*ret_word = word;
		if (why != NULL)
			return why;
	}
	*ret_word = NULL;
	return judge(row, n);
}

/* ---- the table ---- */

static int
take_line(void *arg, char *line, uint32_t number, const char **ret_word,
    const char **ret_why)
{
	struct tls_policies *t = arg;
	struct tls_policy row = { .at.line = number };

	line_uncomment(line);
	line = line_trim(line);
	if (*line == '\0')
		return 0;
	*ret_why = parse_line(t, &row, line, ret_word);
	return *ret_why != NULL
	    ? -EINVAL
	    : array_add(&t->rows, &t->count, &t->room, &row, sizeof(row));
}

int
tls_policies_load(
    const char *path, struct tls_policies **ret_policies, struct buf *ret_error)
{
	static const struct line_file how = {
		.max_bytes = TLS_POLICY_FILE_MAX,
		.max_line = TLS_POLICY_LINE_MAX,
		.take = take_line,
	};
	struct tls_policies *t = calloc(1, sizeof(*t));
	int r = 0;

	if (t == NULL)
		return -ENOMEM;
	if (*path != '\0')
		r = line_file_read(path, &how, t, ret_error);
	if (r == 0)
		r = keyed_sort(
		    t->rows, t->count, sizeof(*t->rows), path, NULL, ret_error);
	if (r < 0)
		tls_policies_free(&t);
	else
		*ret_policies = t;
	return r;
}

void
tls_policies_free(struct tls_policies **policies)
{
	struct tls_policies *t = *policies;

	*policies = NULL;
	if (t == NULL)
		return;
	texts_done(&t->texts);
	free(t->rows);
	free(t);
}

/* ---- looking up ---- */

static const struct tls_policy *
find_key(const struct tls_policies *t, const char *key)
{
	return keyed_find(t->rows, t->count, sizeof(*t->rows), key);
}

const struct tls_policy *
tls_policies_find(const struct tls_policies *policies, const char *nexthop)
{
	const struct tls_policy *row = NULL;
	struct hop_keys keys;
	const char *s;
	size_t i;

	hop_keys_of(nexthop, &keys);
	for (i = 0; row == NULL && i < keys.count; i++)
		row = find_key(policies, keys.key[i]);
	if (row != NULL || keys.count == 0)
		return row;
	/* The last key is the host alone. */
	for (s = strchr(keys.key[keys.count - 1], '.');
	     s != NULL && row == NULL; s = strchr(s + 1, '.'))
		row = find_key(policies, s);
	return row;
}

enum tls_level
tls_policies_strictest(const struct tls_policies *policies)
{
	enum tls_level level = TLS_LEVEL_NONE;
	size_t i;

	for (i = 0; i < policies->count; i++)
		if (policies->rows[i].level > level)
			level = policies->rows[i].level;
	return level;
}
