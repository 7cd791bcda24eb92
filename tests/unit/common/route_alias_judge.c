/* All that is wrong in a file of aliases. */
#include "alias_scratch.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "route/alias.h"

TestSuite(route_alias_judge, .init = alias_scratch_enter,
    .fini = alias_scratch_leave);

static struct alias_table *
load(const char *text)
{
	struct alias_table *table = NULL;
	struct buf error = { 0 };

	alias_scratch_write(text, strlen(text));
	cr_assert_eq(alias_load("a", &table, &error), 0);
	buf_done(&error);
	return table;
}

/* mutation: common/route/alias.c, take_word() begins no alias; finish() keeps
 * the last of two; spoil() begins with wrong_line 0. */
Test(route_alias_judge, F10_a_wrong_line_is_one_of_its_alias_alone)
{
	static const struct {
		const char *text, *key;
		uint32_t wrong; /* line; 0: the alias is right */
		size_t nmembers;
	} cases[] = {
		{ "a: b\nx: c d\ne: f\n", "a", 0, 1 },
		{ "a: b\nx: c d\ne: f\n", "x", 2, 0 },
		{ "a: b\nx: c d\ne: f\n", "e", 0, 1 },
		{ "x: a,\n b c\n d\ne: f\n", "x", 2, 2 },
		/* A line behind a comma that may be a member. */
		{ "x: a,\n:include:/b\ne: f\n", "x", 2, 1 },
		{ "x: a,\n:include:/b\ne: f\n", "e", 0, 1 },
		{ "x: a,\n# note\n\nb\ne: f g\n", "x", 0, 2 },
		{ "staff a, b\n c\ne: f\n", "staff", 1, 1 },
		{ "Staff\n c\ne: f\n", "staff", 1, 1 },
		{ "staff", "staff", 1, 0 },
		{ "a b: c\n d\ne: f\n", "e", 0, 1 },
		{ "x: a\001b\n c\ne: f\n", "x", 1, 1 },
		{ "x: a\n b\001\n c\ne: f\n", "x", 2, 2 },
		{ "x:\ne: f\n", "x", 1, 0 },
		{ "root: b\nROOT: c, d\n", "root", 0, 1 },
		{ "x: b c\nx: d\n", "x", 1, 0 },
	};
	const struct alias *alias;
	struct alias_table *table;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		table = load(cases[i].text);
		alias = alias_find_key(table, cases[i].key);
		cr_assert_not_null(alias, "case %zu", i);
		cr_expect_eq(
		    alias->wrong != NULL, cases[i].wrong > 0, "case %zu", i);
		cr_expect_eq(alias->wrong_line, cases[i].wrong, "case %zu", i);
		cr_expect_eq(alias->nmembers, cases[i].nmembers, "case %zu", i);
		cr_expect_str_neq(alias_complaints(table), "");
		alias_free(&table);
	}
	table = load("x@y.example\n");
	cr_expect_null(alias_at(table, 0));
	alias_free(&table);
}

/* mutation: common/route/alias.c, complain() is always -EINVAL. */
Test(route_alias_judge, F10_each_line)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "" },
		{ "a: b\n", "" },
		{ "x\n c\na: \"\"\n \"\"\nd:\ny z\ne: f\na: g\n",
		    "a:1: no colon behind the name\n"
		    "a:3: an empty name\n"
		    "a:4: an empty name\n"
		    "a:5: no recipient (/dev/null drops mail)\n"
		    "a:6: no colon behind the name\n"
		    "a:8: alias `a' is in line 3; this second line is "
		    "ignored" },
		{ " b\na: b\n",
		    "a:1: a line that begins with a blank continues an alias, "
		    "and there is none" },
	};
	struct alias_table *table = NULL;
	struct buf error = { 0 }, text = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		alias_scratch_write(rows[i].text, strlen(rows[i].text));
		cr_assert_eq(alias_load("a", &table, &error), 0);
		cr_expect_str_eq(alias_complaints(table), rows[i].want, "%s",
		    alias_complaints(table));
		alias_free(&table);
	}
	for (i = 0; i < 30; i++)
		cr_assert_eq(buf_printf(&text, "w%zu\n", i), 0);
	alias_scratch_write(buf_str(&text), text.len);
	cr_assert_eq(alias_load("a", &table, &error), 0);
	cr_expect_not_null(strstr(alias_complaints(table),
	    "\na:20: no colon behind the name\n10 more wrong lines"));
	cr_expect_str_eq(buf_str(&error), "");
	alias_free(&table);
	buf_done(&text);
	unlink("a");
	cr_expect_eq(alias_load("a", &table, &error), -ENOENT);
	cr_expect_null(table);
	buf_done(&error);
}
