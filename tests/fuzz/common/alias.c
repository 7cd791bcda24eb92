/* The alias file: any text is loaded or refused with its line; what was loaded
 * keeps its promises, is found by its keys as a slow search finds it, and reads
 * back as the same when it is written with all quotes. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/domain.h"
#include "route/alias.h"
#include "route/nexthop.h"

/* ---- what a table promises ---- */

static void
check_member(const struct alias_member *m)
{
	size_t len = strlen(m->text);

	MUST(len > 0);
	MUST(len <= ADDRESS_MAX || m->kind == ALIAS_REFUSAL);
	switch (m->kind) {
	case ALIAS_ADDRESS:
		MUST(address_check(m->text, len) == 0);
		MUST(strchr("|:/@", m->text[0]) == NULL);
		break;
	case ALIAS_PROGRAM:
		MUST(len < ADDRESS_MAX);
		break;
	case ALIAS_INCLUDE:
		MUST(m->text[0] == '/');
		MUST(len + strlen(ALIAS_INCLUDE_PREFIX) <= ADDRESS_MAX);
		MUST(strstr(m->text, ":|") == NULL);
		MUST(strstr(m->text, ":/") == NULL);
		break;
	case ALIAS_NOTHING:
		MUST(strcmp(m->text, "/dev/null") == 0);
		break;
	case ALIAS_FILE:
		MUST(m->text[0] == '/' && len <= ADDRESS_MAX);
		break;
	case ALIAS_REFUSAL:
		break;
	}
}

static const struct alias *
search(const struct alias_table *table, const char *user, size_t len,
    const char *behind)
{
	const struct alias *a;
	size_t i;

	for (i = 0; (a = alias_at(table, i)) != NULL; i++)
		if (strlen(a->key) == len + strlen(behind) &&
		    memcmp(a->key, user, len) == 0 &&
		    strcmp(a->key + len, behind) == 0)
			return a;
	return NULL;
}

static void
check_table(const struct alias_table *table)
{
	const struct alias *a;
	size_t i, k;

	for (i = 0; (a = alias_at(table, i)) != NULL; i++) {
		const char *at = strchr(a->key, '@');
		char lower[ALIAS_KEY_MAX + 1];

		MUST(a->key[0] != '\0' && strlen(a->key) <= ALIAS_KEY_MAX);
		snprintf(lower, sizeof(lower), "%s", a->key);
		nexthop_lower_case(lower);
		MUST(strcmp(lower, a->key) == 0);
		MUST(at == NULL || nexthop_fits_domain(at + 1));
		/* The first of a name holds. */
		MUST(alias_find_key(table, a->key) ==
		    search(table, a->key, strlen(a->key), ""));
		MUST(a->line > 0 && (a->nmembers > 0 || a->wrong != NULL));
		MUST((a->wrong == NULL) == (a->wrong_line == 0));
		MUST(alias_complaints(table)[0] != '\0' || a->wrong == NULL);
		for (k = 0; k < a->nmembers; k++)
			check_member(&a->members[k]);
	}
}

/* ---- lookups ---- */

static void
check_lookup(const struct alias_table *table, const char *address)
{
	char user[ADDRESS_MAX + 1], folded[DOMAIN_FOLDED_MAX + 1], *domain;
	size_t len = address_user(address, user);
	size_t account = address_account_len(user);
	const struct alias *bare = NULL, *full = NULL, *found;

	(void)domain_fold(address_domain(address), folded);
	MUST(asprintf(&domain, "@%s", folded) > 0);
	if (len > 0 && memchr(user, '@', len) == NULL) {
		bare = search(table, user, len, "");
		if (bare == NULL)
			bare = search(table, user, account, "");
		full = search(table, user, len, domain);
		if (full == NULL)
			full = search(table, user, account, domain);
	}
	MUST(alias_find_account(table, address) == bare);
	MUST(alias_find_address(table, address, folded) ==
	    (domain[1] == '\0' ? NULL : full));
	found = alias_find_domain(table, folded);
	MUST(
	    found == (domain[1] == '\0' ? NULL : search(table, "", 0, domain)));
	free(domain);
}

/* ---- with all quotes, and no blank: one before '#' begins a comment ---- */

static void
print_member(struct buf *out, const struct alias_member *m)
{
	struct buf text = { 0 };

	if (m->kind == ALIAS_PROGRAM)
		MUST(buf_printf(&text, "|%s", m->text) == 0);
	else if (m->kind == ALIAS_INCLUDE)
		MUST(
		    buf_printf(&text, ALIAS_INCLUDE_PREFIX "%s", m->text) == 0);
	else if (m->kind == ALIAS_FILE)
		MUST(buf_add_str(&text, m->text) == 0);
	else if (m->kind == ALIAS_REFUSAL)
		MUST(buf_printf(&text, ":fail: %s", m->text) == 0);
	if (text.len > 0)
		MUST(buf_add_quoted(out, text.data, text.len) == 0);
	else
		MUST(buf_add_str(out, m->text) == 0);
	MUST(buf_add_str(out, ",") == 0);
	buf_done(&text);
}

static void
expect_same(const struct alias *a, const struct alias *b)
{
	size_t k;

	MUST(b != NULL && strcmp(a->key, b->key) == 0);
	MUST(a->nmembers == b->nmembers);
	for (k = 0; k < a->nmembers; k++) {
		MUST(a->members[k].kind == b->members[k].kind);
		MUST(strcmp(a->members[k].text, b->members[k].text) == 0);
	}
}

static void
check_round(const struct alias_table *table)
{
	struct alias_table *again = NULL;
	struct buf text = { 0 }, error = { 0 };
	const struct alias *a;
	size_t i, k;

	if (alias_complaints(table)[0] != '\0')
		return;
	for (i = 0; (a = alias_at(table, i)) != NULL; i++) {
		MUST(buf_add_quoted(&text, a->key, strlen(a->key)) == 0);
		MUST(buf_add_str(&text, ":") == 0);
		for (k = 0; k < a->nmembers; k++)
			print_member(&text, &a->members[k]);
		MUST(buf_add_str(&text, "\n") == 0);
	}
	fuzz_file("again", text.data, text.len);
	MUST(alias_load(fuzz_path("again"), &again, &error) == 0);
	for (i = 0; (a = alias_at(table, i)) != NULL; i++)
		expect_same(a, alias_at(again, i));
	MUST(alias_at(again, i) == NULL);
	alias_free(&again);
	buf_done(&text);
}

/* ---- one line of an include file ---- */

static int
count(void *arg, const struct alias_member *member)
{
	size_t *left = arg;

	check_member(member);
	return (*left)-- == 0 ? -ECANCELED : 0;
}

static void
check_line(const char *line, size_t len)
{
	const char *why = NULL;
	size_t left = 3;
	int r = alias_parse_members(line, len, count, &left, &why);

	MUST(r == 0 || r == -EINVAL || r == -ECANCELED);
	MUST((r == -EINVAL) == (why != NULL));
}

static void
expect_place(const char *error, const char *text, size_t len)
{
	const char *path = fuzz_path("aliases");
	unsigned line = 0, lines = 1;
	size_t i;

	for (i = 0; i < len; i++)
		lines += text[i] == '\n';
	MUST(strncmp(error, path, strlen(path)) == 0);
	MUST(sscanf(error + strlen(path), ":%u: ", &line) == 1);
	MUST(line >= 1 && line <= lines);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	char *address = fuzz_string(&in), *text;
	struct alias_table *table = NULL;
	struct buf error = { 0 };
	size_t len;
	int r;

	text = fuzz_rest(&in, &len);
	check_line(text, len);
	fuzz_file("aliases", text, len);
	r = alias_load(fuzz_path("aliases"), &table, &error);
	MUST(r == 0);
	check_table(table);
	check_lookup(table, address);
	check_round(table);
	if (alias_complaints(table)[0] != '\0')
		expect_place(alias_complaints(table), text, len);
	alias_free(&table);
	buf_done(&error);
	free(text);
	free(address);
	return 0;
}
