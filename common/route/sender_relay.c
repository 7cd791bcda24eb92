#include "route/sender_relay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/domain.h"
#include "base/file.h"
#include "base/line.h"
#include "base/texts.h"
#include "base/verp.h"
#include "base/wrong_lines.h"
#include "route/nexthop.h"

#define LINE_MAX_BYTES 2048
#define FILE_MAX_BYTES ((size_t)64 << 20)

static const char no_memory[] = "out of memory";

struct row {
	const char *key; /* folded address, or @ and folded domain */
	struct sender_relay relay;
};

struct sender_relays {
	struct texts texts; /* keys and next hops */
	struct row *rows;   /* by key */
	size_t n, cap;
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

/* NULL, or the complaint. */
static const char *
take_key(struct sender_relays *t, const char *text, struct row *row)
{
	char key[ADDRESS_FOLDED_MAX + 1], ascii[DOMAIN_MAX + 1];
	const char *domain = address_domain(text), *why;

	if (strchr(text, '@') == NULL)
		return "neither user@domain nor @domain";
	if (strlen(text) > ADDRESS_MAX)
		return "the address is too long";
	if (domain_normalize(domain, ascii, &why) < 0)
		return domain_is_utf8(domain) ? why : "not a domain";
	if (!nexthop_fits_domain(ascii) || domain[strlen(domain) - 1] == '.')
		return "not a domain";
	if (fold_address(text, key) < 0)
		return no_memory;
	row->key = texts_keep(&t->texts, key);
	return row->key == NULL ? no_memory : NULL;
}

static const char *
take_nexthop(struct sender_relays *t, const char *text, struct row *row)
{
	char ascii[NEXTHOP_TEXT_MAX + 1];
	struct nexthop hop;

	row->relay.nexthop = NULL;
	if (strcmp(text, "DUNNO") == 0)
		return NULL;
	if (nexthop_parse(text, 1, &hop) < 0 || hop.kind == NEXTHOP_UNIX)
		return "not a next hop: it must be domain, domain:port, "
		       "[host]:port or [address]:port";
	if (nexthop_to_ascii(text, ascii) < 0)
		return "the next hop is too long";
	row->relay.nexthop = texts_keep(&t->texts, ascii);
	return row->relay.nexthop == NULL ? no_memory : NULL;
}

/* The words of a line: 0, where there is none, or the next hop is missing, or
 * more follows, or a quote is open: *ret_why. A quoted local part may have
 * blanks. */
static bool
split_line(char *line, char **ret_key, char **ret_nexthop, const char **ret_why)
{
	static const char blanks[] = " \t";
	bool quoted = false;
	char *p = line + strspn(line, blanks);

	if (*p == '\0' || *p == '#')
		return false;
	*ret_key = p;
	for (; *p != '\0' && (quoted || strchr(blanks, *p) == NULL); p++) {
		if (*p == '"')
			quoted = !quoted;
		else if (quoted && *p == '\\' && p[1] != '\0')
			p++;
	}
	*ret_why = quoted ? "a quote is not closed"
			  : "not `user@domain nexthop` or `@domain nexthop`";
	if (*p == '\0')
		return false;
	*p++ = '\0';
	line_uncomment(p);
	p = line_trim(p);
	*ret_nexthop = p;
	if (*p == '\0' || strpbrk(p, blanks) != NULL)
		return false;
	*ret_why = NULL;
	return true;
}

static int
add_row(struct sender_relays *t, const struct row *row)
{
	size_t cap = t->cap == 0 ? 16 : t->cap * 2;
	struct row *rows;

	if (t->n == t->cap) {
		rows = reallocarray(t->rows, cap, sizeof(*rows));
		if (rows == NULL)
			return -ENOMEM;
		t->rows = rows;
		t->cap = cap;
	}
	t->rows[t->n++] = *row;
	return 0;
}

/* *ret_why for a wrong line. -ENOMEM. */
static int
take_line(
    struct sender_relays *t, char *line, uint32_t number, const char **ret_why)
{
	struct row row = { .relay.line = number };
	char *key, *nexthop;

	if (!split_line(line, &key, &nexthop, ret_why))
		return 0;
	*ret_why = take_key(t, key, &row);
	if (*ret_why == NULL)
		*ret_why = take_nexthop(t, nexthop, &row);
	return *ret_why == NULL ? add_row(t, &row) : 0;
}

/* ---- the file ---- */

static int
take_text(struct sender_relays *t, const char *path, struct buf *text,
    struct wrong_lines *wrong, struct buf *error)
{
	struct line_cursor cursor;
	const char *why = NULL;
	char *line;
	int r;

	line_begin(&cursor, text, LINE_MAX_BYTES);
	while ((r = line_next(&cursor, &line, &why)) != 0) {
		if (r > 0)
			r = take_line(t, line, cursor.number, &why);
		if (why != NULL) {
			r = buf_printf(
			    error, "%s:%u: %s", path, cursor.number, why);
			r = wrong_lines_go_on(
			    wrong, cursor.number, r < 0 ? r : -EINVAL, error);
			why = NULL;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int
compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order = strcmp(x->key, y->key);

	return order != 0
	    ? order
	    : (x->relay.line > y->relay.line) - (x->relay.line < y->relay.line);
}

static int
sort_rows(struct sender_relays *t, const char *path, struct wrong_lines *wrong,
    struct buf *error)
{
	const struct row *row;
	size_t i;
	int r = 0;

	if (t->n > 0)
		qsort(t->rows, t->n, sizeof(*t->rows), compare_rows);
	for (i = 1; r == 0 && i < t->n; i++) {
		row = &t->rows[i];
		if (strcmp(row[-1].key, row->key) != 0)
			continue;
		r = buf_printf(error, "%s:%u: %s: already in line %u", path,
		    row->relay.line, row->key, row[-1].relay.line);
		r = wrong_lines_go_on(
		    wrong, row->relay.line, r < 0 ? r : -EINVAL, error);
	}
	return r;
}

static int
load(const char *path, struct wrong_lines *wrong,
    struct sender_relays **ret_relays, struct buf *ret_error)
{
	struct sender_relays *t = calloc(1, sizeof(*t));
	struct buf text = { 0 }, why = { 0 };
	int r;

	if (t == NULL)
		return -ENOMEM;
	r = file_read(path, FILE_MAX_BYTES, &text, &why);
	if (r < 0)
		(void)buf_printf(ret_error, "%s: %s", path, buf_str(&why));
	buf_done(&why);
	if (r == 0)
		r = take_text(t, path, &text, wrong, ret_error);
	buf_done(&text);
	if (r == 0)
		r = sort_rows(t, path, wrong, ret_error);
	if (r < 0)
		sender_relays_free(&t);
	else
		*ret_relays = t;
	return r;
}

int
sender_relays_load(
    const char *path, struct sender_relays **ret_relays, struct buf *ret_error)
{
	return load(path, NULL, ret_relays, ret_error);
}

int
sender_relays_judge(const char *path, struct buf *ret_errors)
{
	struct wrong_lines wrong = { 0 };
	struct sender_relays *t = NULL;
	int r = load(path, &wrong, &t, ret_errors);

	sender_relays_free(&t);
	return wrong_lines_tell(&wrong, r, ret_errors);
}

void
sender_relays_free(struct sender_relays **relays)
{
	struct sender_relays *t = *relays;

	*relays = NULL;
	if (t == NULL)
		return;
	texts_done(&t->texts);
	free(t->rows);
	free(t);
}

/* ---- looking up ---- */

static int
compare_key(const void *key, const void *row)
{
	return strcmp(key, ((const struct row *)row)->key);
}

static const struct row *
find(const struct sender_relays *t, const char *key)
{
	return t->n == 0
	    ? NULL
	    : bsearch(key, t->rows, t->n, sizeof(*t->rows), compare_key);
}

/* The address without its +extension. */
static const struct row *
find_account(const struct sender_relays *t, const char *address)
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
	return find(t, key);
}

int
sender_relays_find(const struct sender_relays *relays, const char *sender,
    struct sender_relay *ret_relay)
{
	char base[ADDRESS_MAX + 1], key[ADDRESS_FOLDED_MAX + 1];
	const struct row *row;

	if (relays == NULL || relays->n == 0 || sender == NULL ||
	    strchr(sender, '@') == NULL || strlen(sender) > ADDRESS_MAX)
		return 0;
	/* The variable part and its suffix are no part of the domain. */
	snprintf(base, sizeof(base), "%.*s",
	    (int)verp_base_len(sender, strlen(sender)), sender);
	if (fold_address(base, key) < 0)
		return -ENOMEM;
	row = find(relays, key);
	if (row == NULL)
		row = find_account(relays, key);
	if (row == NULL)
		row = find(relays, key + address_local_len(key));
	if (row == NULL)
		return 0;
	*ret_relay = row->relay;
	return 1;
}
