#include "route/sender_map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/domain.h"
#include "base/line.h"
#include "base/line_file.h"
#include "base/texts.h"
#include "base/verp.h"
#include "route/keyed.h"
#include "route/nexthop.h"

#define LINE_MAX_BYTES 2048
#define FILE_MAX_BYTES ((size_t)64 << 20)

static const char no_memory[] = "out of memory";

struct row {
	struct keyed at;   /* folded address, or @ and folded domain */
	const char *value; /* NULL: none */
};

struct sender_map {
	struct texts texts; /* keys and values */
	struct row *rows;   /* by key */
	size_t n, cap;
	const struct sender_kind *kind;
	uint32_t owners;
};

/* ---- one line ---- */

/* An address in the form in which it is compared. -ENOMEM. */
static int
fold_address(const char *address, char out[ADDRESS_FOLDED_MAX + 1])
{
	const int r = address_fold(address, out);

	nexthop_lower_case(out);
	return r;
}

const char *
sender_address_judge(const char *text, char ascii[DOMAIN_MAX + 1])
{
	const char *domain = address_domain(text), *why;

	if (text[0] == '<' || text[strlen(text) - 1] == '>')
		return "write the address without < and >";
	if (strchr(text, '@') == NULL)
		return "is not user@domain or @domain; add the domain";
	if (strlen(text) > ADDRESS_MAX)
		return "the address is too long";
	if (domain_normalize(domain, ascii, &why) < 0)
		return why;
	if (!nexthop_fits_domain(ascii) || domain[strlen(domain) - 1] == '.')
		return "what stands behind the @ is not a domain";
	return NULL;
}

/* NULL, or the complaint. */
static const char *
take_key(struct sender_map *t, const char *text, struct row *row)
{
	char key[ADDRESS_FOLDED_MAX + 1], ascii[DOMAIN_MAX + 1];
	const char *why = sender_address_judge(text, ascii);

	if (why != NULL)
		return why;
	if (fold_address(text, key) < 0)
		return no_memory;
	row->at.key = texts_keep(&t->texts, key);
	return row->at.key == NULL ? no_memory : NULL;
}

static const char *
take_value(struct sender_map *t, const char *text, struct row *row)
{
	char value[SENDER_VALUE_MAX + 1] = "";
	const char *why = t->kind->judge(text, value);

	row->value = NULL;
	if (why != NULL || value[0] == '\0')
		return why;
	row->value = texts_keep(&t->texts, value);
	return row->value == NULL ? no_memory : NULL;
}

static const char blanks[] = " \t";

/* Split a line into key and value. False: the line is empty, or is wrong for
 * the reason *ret_why. */
static bool
split_line(const struct sender_kind *kind, char *line, char **ret_key,
    char **ret_value, const char **ret_why)
{
	bool open;
	char *p = line + strspn(line, blanks);

	if (*p == '\0' || *p == '#')
		return false;
	*ret_key = p;
	p = line_word_end(p, &open);
	*ret_why = open ? "a quote is not closed" : kind->form;
	if (*p == '\0')
		return false;
	*p++ = '\0';
	line_uncomment(p);
	p = line_trim(p);
	*ret_value = p;
	if (*p == '\0' || *line_word_end(p, &open) != '\0')
		return false;
	*ret_why = open ? "a quote is not closed" : NULL;
	return !open;
}

/* Take one line. *ret_word: the word of it that is wrong. */
static int
take_line(void *arg, char *line, uint32_t number, const char **ret_word,
    const char **ret_why)
{
	struct sender_map *t = arg;
	struct row row = { .at.line = number };
	char *key, *value;

	if (!split_line(t->kind, line, &key, &value, ret_why))
		return *ret_why == NULL ? 0 : -EINVAL;
	*ret_word = key;
	*ret_why = take_key(t, key, &row);
	if (*ret_why == NULL) {
		*ret_word = value;
		*ret_why = take_value(t, value, &row);
	}
	return *ret_why != NULL
	    ? -EINVAL
	    : array_add(&t->rows, &t->n, &t->cap, &row, sizeof(row));
}

/* ---- the file ---- */

static int
load(const char *path, const struct sender_kind *kind,
    struct wrong_lines *wrong, struct sender_map **ret_map,
    struct buf *ret_error)
{
	struct sender_map *t = calloc(1, sizeof(*t));
	static const struct line_file how = {
		.max_bytes = FILE_MAX_BYTES,
		.max_line = LINE_MAX_BYTES,
		.take = take_line,
	};
	struct buf text = { 0 };
	int r;

	if (t == NULL)
		return -ENOMEM;
	t->kind = kind;
	t->owners = 1;
	r = line_file_read_on(path, &how, t, &text, wrong, ret_error);
	buf_done(&text);
	if (r == 0)
		r = keyed_sort(
		    t->rows, t->n, sizeof(*t->rows), path, wrong, ret_error);
	if (r < 0)
		sender_map_free(&t);
	else
		*ret_map = t;
	return r;
}

int
sender_map_load(const char *path, const struct sender_kind *kind,
    struct sender_map **ret_map, struct buf *ret_error)
{
	return load(path, kind, NULL, ret_map, ret_error);
}

int
sender_map_judge(
    const char *path, const struct sender_kind *kind, struct buf *ret_errors)
{
	struct wrong_lines wrong = { 0 };
	struct sender_map *t = NULL;
	int r = load(path, kind, &wrong, &t, ret_errors);

	sender_map_free(&t);
	return wrong_lines_tell(&wrong, r, ret_errors);
}

struct sender_map *
sender_map_ref(struct sender_map *map)
{
	if (map != NULL)
		map->owners++;
	return map;
}

void
sender_map_free(struct sender_map **map)
{
	struct sender_map *t = *map;

	*map = NULL;
	if (t == NULL || --t->owners > 0)
		return;
	texts_done(&t->texts);
	free(t->rows);
	free(t);
}

bool
sender_map_is_empty(const struct sender_map *map)
{
	return map == NULL || map->n == 0;
}

/* ---- looking up ---- */

static const struct row *
row_by_key(const struct sender_map *t, const char *key)
{
	return keyed_find(t->rows, t->n, sizeof(*t->rows), key);
}

/* The address without its +extension. */
static const struct row *
find_account(const struct sender_map *t, const char *address)
{
	char key[ADDRESS_FOLDED_MAX + 1];
	const size_t local = address_local_len(address);
	size_t account;

	memcpy(key, address, local);
	key[local] = '\0';
	account = address_account_len(key);
	if (account == local)
		return NULL;
	memcpy(key + account, address + local, strlen(address + local) + 1);
	return row_by_key(t, key);
}

int
sender_map_find(const struct sender_map *map, const char *sender,
    struct sender_row *ret_row)
{
	char base[ADDRESS_MAX + 1], key[ADDRESS_FOLDED_MAX + 1];
	const struct row *row;
	bool whole;

	if (sender_map_is_empty(map) || sender == NULL ||
	    strchr(sender, '@') == NULL || strlen(sender) > ADDRESS_MAX)
		return 0;
	/* The variable part and its suffix are no part of the domain. */
	snprintf(base, sizeof(base), "%.*s",
	    (int)verp_base_len(sender, strlen(sender)), sender);
	if (fold_address(base, key) < 0)
		return -ENOMEM;
	row = row_by_key(map, key);
	whole = row != NULL;
	if (row == NULL)
		row = find_account(map, key);
	if (row == NULL)
		row = row_by_key(map, key + address_local_len(key));
	if (row == NULL)
		return 0;
	*ret_row = (struct sender_row){ row->value, row->at.line, whole };
	return 1;
}
