#include "route/alias.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/domain.h"
#include "base/file.h"
#include "base/line.h"
#include "base/text.h"
#include "base/wrong_lines.h"
#include "route/alias_table.h"
#include "route/nexthop.h"

#define FILE_MAX_BYTES ((size_t)64 << 20)

struct reading {
	struct alias_table *table;
	const char *path;
	uint32_t line;
	struct buf *error;
	bool lost;  /* the last line that begins an alias has no usable name */
	bool comma; /* the line before ends in a comma */
	struct wrong_lines wrong;
};

/* A complaint about a line; `name' is of the other line with that alias. */
static int
complain_of(struct reading *rd, uint32_t line, const char *why,
    const char *name, uint32_t first)
{
	struct buf text = { 0 };
	int r;

	buf_printf(&text, "%s:%u: %s", rd->path, line, why);
	if (name != NULL) {
		(void)text_quote(&text, name);
		buf_printf(&text, " is in line %u; this second line is ignored",
		    first);
	}
	r = wrong_lines_go_on(
	    &rd->wrong, line, text.error < 0 ? text.error : -EINVAL, &text);
	buf_done(&text);
	return r;
}

static int
complain(struct reading *rd, uint32_t line, const char *why)
{
	return complain_of(rd, line, why, NULL, 0);
}

/* The alias that was begun last is wrong, for this reason. */
static int
spoil(struct reading *rd, uint32_t line, const char *why)
{
	struct alias *alias = &rd->table->aliases[rd->table->n - 1];

	if (alias->wrong == NULL) {
		alias->wrong = why;
		alias->wrong_line = line;
	}
	return complain(rd, line, why);
}

static int
add_member(struct alias_table *t, const struct alias_member *member)
{
	const int r = array_add(
	    &t->pool, &t->npool, &t->pool_cap, member, sizeof(*member));

	if (r == 0)
		t->aliases[t->n - 1].nmembers++;
	return r;
}

static int
add_alias(struct alias_table *t, const char *key, uint32_t line)
{
	const struct alias alias = { .key = key, .line = line };

	return array_add(&t->aliases, &t->n, &t->cap, &alias, sizeof(alias));
}

/* An alias has ended: with another one, or with the file. */
static int
end_alias(struct reading *rd)
{
	const struct alias *last;

	if (rd->lost || rd->table->n == 0)
		return 0;
	last = &rd->table->aliases[rd->table->n - 1];
	return last->nmembers > 0 || last->wrong != NULL
	    ? 0
	    : spoil(rd, last->line, "no recipient (/dev/null drops mail)");
}

static int
take_members(struct reading *rd, char *at)
{
	struct alias_member member;
	const char *why = NULL;
	int r;

	while ((r = alias_line_member(&at, &member, &why)) > 0) {
		r = add_member(rd->table, &member);
		if (r < 0)
			return r;
	}
	return r < 0 ? spoil(rd, rd->line, why) : 0;
}

/* A line without a colon. Its first word may be the name of an alias, whose
 * mail must not be refused for a slip of the pen. */
static int
take_word(struct reading *rd, char *line)
{
	static const char why[] = "no colon behind the name";
	char copy[ALIAS_KEY_MAX + 2], *at = copy;
	const size_t len = strcspn(line, " \t,@\"");
	const char *key = NULL;
	int r;

	rd->lost = true;
	snprintf(copy, sizeof(copy), "%.*s:", (int)len, line);
	if (len > ALIAS_KEY_MAX || line[len] == '@' || line[len] == '"' ||
	    alias_line_key(&at, &key) != NULL)
		return complain(rd, rd->line, why);
	rd->lost = false;
	line[len] = '\0';
	nexthop_lower_case(line);
	r = add_alias(rd->table, line, rd->line);
	return r < 0 ? r : spoil(rd, rd->line, why);
}

/* Domains of keys are compared as base/domain.h spells them. NULL, or the
 * complaint. */
static const char *
fold_key(struct alias_table *t, const char **key)
{
	char folded[ALIAS_KEY_MAX + DOMAIN_MAX + 1];
	const char *domain = address_domain(*key), *why;
	const size_t at = (size_t)(domain - *key);

	if (!domain_is_utf8(domain))
		return NULL;
	memcpy(folded, *key, at);
	if (domain_normalize(domain, folded + at, &why) < 0)
		return why;
	if (strlen(folded) > ALIAS_KEY_MAX)
		return "the name is too long";
	*key = texts_keep(&t->texts, folded);
	return *key == NULL ? "out of memory" : NULL;
}

static int
take_alias(struct reading *rd, char *line)
{
	const char *key = NULL, *why;
	const bool continues = rd->comma && !rd->lost && rd->table->n > 0;
	int r = end_alias(rd);

	if (r < 0)
		return r;
	if (strchr(line, ':') == NULL)
		return take_word(rd, line);
	rd->lost = false;
	why = alias_line_key(&line, &key);
	if (why == NULL)
		why = fold_key(rd->table, &key);
	if (why != NULL) {
		/* Behind a comma the line may be a member of the alias. */
		rd->lost = true;
		return continues ? spoil(rd, rd->line, why)
				 : complain(rd, rd->line, why);
	}
	r = add_alias(rd->table, key, rd->line);
	return r < 0 ? r : take_members(rd, line);
}

static int
take_line(struct reading *rd, char *line)
{
	size_t blanks = strspn(line, " \t");

	if (line[blanks] == '\0')
		return 0;
	/* Behind a comma a line without a colon can only be a member. */
	if (blanks == 0 && !(rd->comma && strchr(line, ':') == NULL))
		return take_alias(rd, line);
	if (rd->lost)
		return 0;
	if (rd->table->n > 0)
		return take_members(rd, line + blanks);
	rd->lost = true;
	return complain(rd, rd->line,
	    "a line that begins with a blank continues an alias, and there is "
	    "none");
}

static bool
ends_in_comma(const char *line)
{
	size_t len = strlen(line);

	while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	return len > 0 && line[len - 1] == ',';
}

/* How many of len octets are text of one line. */
static size_t
text_length(const char *line, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (((unsigned char)line[i] < 0x20 && line[i] != '\t') ||
		    line[i] == 0x7f)
			break;
	return i;
}

/* A line with octets that are no text: its alias is wrong, and its name is what
 * stands in front of them. */
static int
take_bad_line(struct reading *rd, char *line, size_t len, const char *why)
{
	const char *key = NULL;
	int r = 0;

	line[text_length(line, len)] = '\0';
	if (*line != ' ' && *line != '\t') {
		r = end_alias(rd);
		if (r < 0)
			return r;
		rd->lost = strchr(line, ':') == NULL ||
		    alias_line_key(&line, &key) != NULL;
		if (!rd->lost)
			r = add_alias(rd->table, key, rd->line);
	}
	if (r < 0)
		return r;
	return rd->lost || rd->table->n == 0 ? complain(rd, rd->line, why)
					     : spoil(rd, rd->line, why);
}

static int
take_file(struct reading *rd)
{
	struct line_cursor cursor;
	const char *why = NULL;
	char *line, *begin;
	bool comma;
	int r;

	line_begin(&cursor, &rd->table->text, FILE_MAX_BYTES);
	if (rd->table->text.len >= 3 &&
	    memcmp(cursor.next, "\xef\xbb\xbf", 3) == 0)
		cursor.next += 3;
	for (begin = cursor.next; (r = line_next(&cursor, &line, &why)) != 0;
	     begin = cursor.next) {
		rd->line = cursor.number;
		if (r < 0) {
			r = take_bad_line(
			    rd, begin, (size_t)(cursor.next - begin), why);
			rd->comma = false;
		} else {
			alias_line_uncomment(line);
			comma = line[strspn(line, " \t")] == '\0'
			    ? rd->comma
			    : ends_in_comma(line);
			r = take_line(rd, line);
			rd->comma = comma;
		}
		if (r < 0)
			return r;
	}
	return end_alias(rd);
}

static int
compare(const void *a, const void *b)
{
	const struct alias *x = *(const struct alias *const *)a;
	const struct alias *y = *(const struct alias *const *)b;
	int order = strcmp(x->key, y->key);

	return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

/* Members stand where they stay; keys are sorted for lookups. */
static int
finish(struct reading *rd)
{
	struct alias_table *t = rd->table;
	const struct alias_member *member = t->pool;
	size_t i, nkeys = 0;
	int r = 0;

	if (t->n == 0)
		return 0;
	t->by_key = reallocarray(NULL, t->n, sizeof(*t->by_key));
	if (t->by_key == NULL)
		return -ENOMEM;
	for (i = 0; i < t->n; i++) {
		t->aliases[i].members = member;
		if (t->aliases[i].nmembers > 0)
			member += t->aliases[i].nmembers;
		t->by_key[i] = &t->aliases[i];
	}
	qsort(t->by_key, t->n, sizeof(*t->by_key), compare);
	for (i = 0; r == 0 && i < t->n; i++)
		if (nkeys > 0 &&
		    strcmp(t->by_key[nkeys - 1]->key, t->by_key[i]->key) == 0)
			/* The first one holds, as with Postfix. */
			r = complain_of(rd, t->by_key[i]->line, "alias ",
			    t->by_key[i]->key, t->by_key[nkeys - 1]->line);
		else
			t->by_key[nkeys++] = t->by_key[i];
	t->nkeys = nkeys;
	return r;
}

static int
read_text(struct reading *rd)
{
	struct buf why = { 0 };
	int r = file_read_owned(rd->path, FILE_MAX_BYTES, &rd->table->text,
	    &rd->table->owner, &why);

	if (r < 0)
		(void)buf_printf(rd->error, "%s: %s", rd->path, buf_str(&why));
	buf_done(&why);
	return r;
}

static int
load(struct reading *rd)
{
	int r;

	rd->table = calloc(1, sizeof(*rd->table));
	if (rd->table == NULL)
		return -ENOMEM;
	r = read_text(rd);
	if (r == 0)
		r = take_file(rd);
	if (r == 0)
		r = finish(rd);
	if (r == 0)
		r = wrong_lines_tell(&rd->wrong, 0, &rd->table->complaints);
	if (r == -EINVAL) /* the lines are told, and the table is of use */
		r = 0;
	wrong_lines_done(&rd->wrong);
	if (r < 0)
		alias_free(&rd->table);
	return r;
}

int
alias_load(
    const char *path, struct alias_table **ret_table, struct buf *ret_error)
{
	struct reading rd = { .path = path, .error = ret_error };
	int r = load(&rd);

	if (r == 0)
		*ret_table = rd.table;
	return r;
}

const char *
alias_complaints(const struct alias_table *table)
{
	return buf_str(&table->complaints);
}

void
alias_free(struct alias_table **table)
{
	struct alias_table *t = *table;

	*table = NULL;
	if (t == NULL)
		return;
	buf_done(&t->text);
	texts_done(&t->texts);
	buf_done(&t->complaints);
	free(t->aliases);
	free(t->pool);
	free(t->by_key);
	free(t);
}

uid_t
alias_owner(const struct alias_table *table)
{
	return table->owner;
}

const struct alias *
alias_at(const struct alias_table *table, size_t i)
{
	return table == NULL || i >= table->n ? NULL : &table->aliases[i];
}
