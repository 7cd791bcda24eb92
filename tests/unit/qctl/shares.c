/* Rows of `qctl shares'. */
#include "qctl/show/shares.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "qctl/read/look.h"

/* A user whose number has no name. */
#define USER 3999999999u

static struct share_row row;
static struct buf out;

static void
start(void)
{
	row = (struct share_row){ .uid = USER,
		.knows_door = true,
		.use = { .messages = 20, .bytes = 4096, .made = 7 } };
	row.figures[SHARE_MESSAGES] = (struct share_figure){ 20, 100 };
	row.figures[SHARE_BYTES] = (struct share_figure){ 4096, 1u << 30 };
	row.figures[SHARE_FILES] = (struct share_figure){ 20, 0 };
	row.figures[SHARE_RATE] = (struct share_figure){ 3, 1200 };
	row.figures[SHARE_UNDER_WAY] = (struct share_figure){ 1, 20 };
}

static void
end(void)
{
	buf_done(&out);
}

TestSuite(shares, .init = start, .fini = end);

Test(shares, each_figure_stands_beside_its_limit)
{
	share_row_text(&out, &row);
	cr_assert_eq(out.error, 0);
	cr_expect_str_eq(buf_str(&out),
	    "       20/100         4096/1073741824          20/-        3/1200"
	    "          1/20  3999999999\n");
	buf_reset(&out);
	row.knows_door = false;
	share_row_text(&out, &row);
	cr_assert_eq(out.error, 0);
	cr_expect_str_eq(buf_str(&out),
	    "       20/100         4096/1073741824          20/-             -"
	    "             -  3999999999\n");
}

Test(shares, json)
{
	const struct shares_time when = { 1700000000 * USEC_PER_SEC, true };

	row.knows_door = false;
	share_row_object(&out, &row, &when);
	cr_assert_eq(out.error, 0);
	cr_expect_str_eq(buf_str(&out),
	    "{\"uid\": 3999999999, \"user\": \"\", \"messages\": 20, "
	    "\"messages_limit\": 100, \"bytes\": 4096, "
	    "\"bytes_limit\": 1073741824, \"files\": 20, "
	    "\"files_limit\": null, \"rate\": null, \"rate_limit\": 1200, "
	    "\"under_way\": null, \"under_way_limit\": 20, "
	    "\"expansions\": 7, \"counted_at\": 1700000000, "
	    "\"running\": true}\n");
}

Test(shares, the_fullest_share_comes_first)
{
	struct share_row other = row;

	other.figures[SHARE_BYTES].use = 1u << 29; /* half of it */
	cr_expect_gt(share_row_compare(&row, &other), 0);
	cr_expect_lt(share_row_compare(&other, &row), 0);
	memset(other.figures, 0, sizeof(other.figures)); /* no limits */
	other.use.messages = 1000;
	cr_expect_lt(share_row_compare(&row, &other), 0);
	memset(row.figures, 0, sizeof(row.figures));
	cr_expect_gt(share_row_compare(&row, &other), 0, "by messages");
	cr_expect_eq(share_row_compare(&row, &row), 0);
}

/* mutation: more words are let through. */
Test(shares, X24_words_of_who_is_no_reader)
{
	static struct {
		char words[5][12];
		bool want;
	} rows[] = {
		{ { "qctl", "shares" }, true },
		{ { "qctl", "shares", "--json" }, true },
		{ { "/x/qctl", "shares" }, true },
		{ { "mailq", "shares" }, false },
		{ { "/qctl/mailq", "shares" }, false },
		{ { "qread", "shares" }, false },
		{ { "x", "shares" }, false },
		{ { "qctl" }, false },
		{ { "qctl", "list" }, false },
		{ { "qctl", "shares", "root" }, false },
		{ { "qctl", "--json", "shares" }, false },
		{ { "qctl", "shares", "--json", "root" }, false },
		{ { "qctl", "shares", "-c", "x" }, false },
		{ { "qctl", "shares", "me" }, true },
		{ { "qctl", "shares", "3999999999" }, true },
		{ { "qctl", "shares", "--json", "me" }, true },
		{ { "qctl", "shares", "me", "--json" }, true },
		{ { "qctl", "shares", "mee" }, false },
		{ { "qctl", "shares", "me", "root" }, false },
		{ { "qctl", "shares", "0" }, false },
		{ { "mailq", "shares", "me" }, false },
	};
	char *words[5], none[] = ""; /* no user has this name */
	size_t i;
	int n;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		for (n = 0; rows[i].words[n][0] != '\0'; n++)
			words[n] = rows[i].words[n];
		cr_expect_eq(look_is_own_share(n, words, "me", USER),
		    rows[i].want, "%zu", i);
	}
	words[0] = rows[0].words[0];
	words[1] = rows[0].words[1];
	words[2] = none;
	cr_expect_not(look_is_own_share(3, words, "", USER));
}
