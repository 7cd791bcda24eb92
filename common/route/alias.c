#include "route/alias.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/file.h"
#include "base/line.h"
#include "base/text.h"
#include "route/nexthop.h"

#define FILE_MAX_BYTES ((size_t)64 << 20)
#define LINES_MAX      20

struct alias_table {
	struct buf text;             /* that keys and members point into */
	struct alias *aliases;       /* as in the file */
	struct alias_member *pool;   /* the members of all, in this order */
	const struct alias **by_key; /* sorted */
	size_t n, cap, npool, pool_cap;
	uid_t owner;
};

struct reading {
	struct alias_table *table;
	const char *path;
	uint32_t line;
	struct buf *error;
	/* For alias_judge(), which goes on behind a wrong line. */
	bool all;
	bool lost;      /* the alias has no name, or something wrong told */
	uint32_t wrong; /* lines, of which LINES_MAX are told */
};

/* The complaint about a line begins: 1. 0: it is not told. */
static int
begin_wrong(struct reading *rd, uint32_t line)
{
	int r = 0;

	rd->lost = true;
	if (++rd->wrong > LINES_MAX)
		return 0;
	if (rd->wrong > 1)
		r = buf_add_char(rd->error, '\n');
	if (r == 0)
		r = buf_printf(rd->error, "%s:%u: ", rd->path, line);
	return r < 0 ? r : 1;
}

static int
fail(struct reading *rd, uint32_t line, const char *why)
{
	int r = begin_wrong(rd, line);

	if (r > 0)
		r = buf_add_str(rd->error, why);
	return r < 0 ? r : rd->all ? 0 : -EINVAL;
}

/* Room for one more in an array of things of this size. */
static int
grow(void **array, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap == 0 ? 64 : *cap * 2;
	void *larger;

	if (n < *cap)
		return 0;
	larger = reallocarray(*array, more, size);
	if (larger == NULL)
		return -ENOMEM;
	*array = larger;
	*cap = more;
	return 0;
}

static int
add_member(struct alias_table *t, const struct alias_member *member)
{
	void *pool = t->pool;
	int r = grow(&pool, t->npool, &t->pool_cap, sizeof(*t->pool));

	t->pool = pool;
	if (r < 0)
		return r;
	t->pool[t->npool++] = *member;
	t->aliases[t->n - 1].nmembers++;
	return 0;
}

static int
add_alias(struct alias_table *t, const char *key, uint32_t line)
{
	void *aliases = t->aliases;
	int r = grow(&aliases, t->n, &t->cap, sizeof(*t->aliases));

	t->aliases = aliases;
	if (r < 0)
		return r;
	t->aliases[t->n++] = (struct alias){ .key = key, .line = line };
	return 0;
}

/* An alias has ended: with another one, or with the file. */
static int
end_alias(struct reading *rd)
{
	const struct alias_table *t = rd->table;

	if (rd->lost || t->n == 0 || t->aliases[t->n - 1].nmembers > 0)
		return 0;
	return fail(rd, t->aliases[t->n - 1].line,
	    "no recipient (/dev/null drops mail)");
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
	return r < 0 ? fail(rd, rd->line, why) : 0;
}

static int
take_alias(struct reading *rd, char *line)
{
	const char *key = NULL, *why;
	int r = end_alias(rd);

	if (r < 0)
		return r;
	rd->lost = false;
	why = alias_line_key(&line, &key);
	if (why != NULL)
		return fail(rd, rd->line, why);
	r = add_alias(rd->table, key, rd->line);
	return r < 0 ? r : take_members(rd, line);
}

static int
take_line(struct reading *rd, char *line)
{
	size_t blanks = strspn(line, " \t");

	if (line[blanks] == '\0' || line[blanks] == '#')
		return 0;
	if (blanks == 0)
		return take_alias(rd, line);
	if (rd->table->n == 0 && rd->lost)
		return 0;
	if (rd->table->n == 0)
		return fail(rd, rd->line,
		    "a line that begins with a blank continues an alias, and "
		    "there is none");
	return take_members(rd, line + blanks);
}

static int
take_file(struct reading *rd)
{
	struct line_cursor cursor;
	const char *why = NULL;
	char *line;
	int r;

	line_begin(&cursor, &rd->table->text, FILE_MAX_BYTES);
	while ((r = line_next(&cursor, &line, &why)) > 0) {
		rd->line = cursor.number;
		r = take_line(rd, line);
		if (r < 0)
			return r;
	}
	return r < 0 ? fail(rd, cursor.number, why) : end_alias(rd);
}

static int
compare(const void *a, const void *b)
{
	const struct alias *x = *(const struct alias *const *)a;
	const struct alias *y = *(const struct alias *const *)b;
	int order = strcmp(x->key, y->key);

	return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

static int
fail_twice(struct reading *rd, const struct alias *first, const struct alias *a)
{
	int r = begin_wrong(rd, a->line);

	if (r > 0)
		r = text_quote(rd->error, a->key);
	if (r == 0 && rd->wrong <= LINES_MAX)
		r = buf_printf(rd->error, ": already in line %u", first->line);
	return r < 0 ? r : rd->all ? 0 : -EINVAL;
}

/* Members stand where they stay; keys are sorted for lookups. */
static int
finish(struct reading *rd)
{
	struct alias_table *t = rd->table;
	const struct alias_member *member = t->pool;
	size_t i;
	int r = 0;

	if (t->n == 0)
		return 0;
	t->by_key = reallocarray(NULL, t->n, sizeof(*t->by_key));
	if (t->by_key == NULL)
		return -ENOMEM;
	for (i = 0; i < t->n; i++) {
		t->aliases[i].members = member;
		member += t->aliases[i].nmembers;
		t->by_key[i] = &t->aliases[i];
	}
	qsort(t->by_key, t->n, sizeof(*t->by_key), compare);
	for (i = 1; r == 0 && i < t->n; i++)
		if (strcmp(t->by_key[i - 1]->key, t->by_key[i]->key) == 0)
			r = fail_twice(rd, t->by_key[i - 1], t->by_key[i]);
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

int
alias_judge(const char *path, struct buf *ret_errors)
{
	struct reading rd = { .path = path, .error = ret_errors, .all = true };
	int r = load(&rd);

	alias_free(&rd.table);
	if (r == 0 && rd.wrong > LINES_MAX)
		r = buf_printf(ret_errors, "\n%s: %u more wrong lines", path,
		    rd.wrong - LINES_MAX);
	return r < 0 ? r : rd.wrong > 0 ? -EINVAL : 0;
}

void
alias_free(struct alias_table **table)
{
	struct alias_table *t = *table;

	*table = NULL;
	if (t == NULL)
		return;
	buf_done(&t->text);
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

/* ---- lookups ---- */

static int
compare_key(const void *key, const void *element)
{
	return strcmp(key, (*(const struct alias *const *)element)->key);
}

/* The key is in lower case. */
static const struct alias *
find(const struct alias_table *t, const char *key)
{
	const struct alias *const *found;

	if (t == NULL || t->n == 0)
		return NULL;
	found = bsearch(key, t->by_key, t->n, sizeof(*t->by_key), compare_key);
	return found == NULL ? NULL : *found;
}

/* user, or user+extension where the account has no alias. `behind` follows
 * either: "" or "@domain". */
static const struct alias *
find_user(const struct alias_table *t, const char *user, const char *behind)
{
	char key[ALIAS_KEY_MAX + 1];
	size_t len = strlen(user), account = address_account_len(user);
	size_t rest = strlen(behind) + 1;
	const struct alias *found = NULL;

	/* A quoted @ is part of a name, and no name in the file has one. */
	if (len == 0 || strchr(user, '@') != NULL)
		return NULL;
	if (len + rest <= sizeof(key)) {
		memcpy(key, user, len);
		memcpy(key + len, behind, rest);
		found = find(t, key);
	}
	if (found != NULL || account == len || account + rest > sizeof(key))
		return found;
	memcpy(key, user, account);
	memcpy(key + account, behind, rest);
	return find(t, key);
}

/* "@domain" in lower case; false: there is none, or it is too long. */
static bool
domain_key(const char *address, char out[ALIAS_KEY_MAX + 1])
{
	const char *domain = address_domain(address);
	size_t len = strlen(domain);

	if (len == 0 || len + 1 > ALIAS_KEY_MAX)
		return false;
	out[0] = '@';
	memcpy(out + 1, domain, len + 1);
	nexthop_lower_case(out);
	return true;
}

const struct alias *
alias_find_address(const struct alias_table *table, const char *address)
{
	char user[ADDRESS_MAX + 1], domain[ALIAS_KEY_MAX + 1];

	if (table == NULL || !domain_key(address, domain))
		return NULL;
	(void)address_user(address, user);
	return find_user(table, user, domain);
}

const struct alias *
alias_find_account(const struct alias_table *table, const char *address)
{
	char user[ADDRESS_MAX + 1];

	if (table == NULL)
		return NULL;
	(void)address_user(address, user);
	return find_user(table, user, "");
}

const struct alias *
alias_find_domain(const struct alias_table *table, const char *address)
{
	char domain[ALIAS_KEY_MAX + 1];

	return table != NULL && domain_key(address, domain)
	    ? find(table, domain)
	    : NULL;
}

const struct alias *
alias_find_key(const struct alias_table *table, const char *key)
{
	char lower[ALIAS_KEY_MAX + 1];
	size_t len = strlen(key);

	if (len > ALIAS_KEY_MAX)
		return NULL;
	memcpy(lower, key, len + 1);
	nexthop_lower_case(lower);
	return find(table, lower);
}
