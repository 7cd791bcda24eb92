#include "base/option.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Test(base_option, what_was_typed_stands_between)
{
	struct buf error = { 0 };

	cr_expect_eq(option_wrong(&error, "-q ", "x", ": no number"), -EINVAL);
	cr_expect_str_eq(buf_str(&error), "-q `x': no number");
	buf_done(&error);
}

/* ---- the table ---- */

struct taken {
	const char *string;
	bool flag;
	char text[200];
	size_t len;
};

static int
note(struct taken *t, const char *what, const char *value)
{
	t->len += (size_t)snprintf(t->text + t->len, sizeof(t->text) - t->len,
	    "%s%s ", what, value == NULL ? "" : value);
	return 0;
}

static int
take_all(const struct option_row *row UNUSED, void *options, const char *value,
    struct buf *error UNUSED)
{
	return note(options, "all", value);
}

static int
take_number(const struct option_row *row UNUSED, void *options,
    const char *value, struct buf *error)
{
	return value[0] == 'x' ? option_wrong(error, "-n ", value, ": no")
			       : note(options, "number=", value);
}

static int
take_end(const struct option_row *row UNUSED, void *options, const char *value,
    struct buf *error UNUSED)
{
	(void)note(options, "end", value);
	return OPTION_END;
}

static int
take_word(void *options, const char *word, struct buf *error UNUSED)
{
	return note(options, "word=", word);
}

static const struct option_row table_rows[] = {
	{ "all", 'a', NULL, "everything", take_all, 0 },
	{ "number", 'n', "NUMBER", "how many\nof them", take_number, 0 },
	{ "a-long-name", 0, "SOMETHING", "below", take_number, 0 },
	{ NULL, 'z', NULL, "no name", take_all, 0 },
	{ "string", 's', "TEXT", NULL, option_take_string,
	    offsetof(struct taken, string) },
	{ "flag", 'f', NULL, NULL, option_take_flag,
	    offsetof(struct taken, flag) },
	{ "help", 0, NULL, "this", take_end, 0 },
};

static const struct option_table table = { table_rows, ARRAY_LEN(table_rows),
	false, take_word };

Test(base_option, A1_a_table_is_parsed)
{
	static const struct {
		const char *argv[8];
		int want;
		const char *taken; /* or what is said */
	} cases[] = {
		{ { NULL }, 0, "" },
		{ { "p" }, 0, "" },
		{ { "p", "-a", "--all", "-z" }, 0, "all all all " },
		{ { "p", "-n", "7", "-n8", "--number=9", "--number", "10" }, 0,
		    "number=7 number=8 number=9 number=10 " },
		{ { "p", "one", "-a", "two", "-n", "3" }, 0,
		    "word=one all word=two number=3 " },
		{ { "p", "-a", "--", "-a", "--help" }, 0,
		    "all word=-a word=--help " },
		{ { "p", "-an", "-1" }, 0, "all number=-1 " },
		{ { "p", "-a", "", "-" }, 0, "all word= word=- " },
		{ { "p", "-a", "--help", "-n", "x" }, OPTION_END, "all end " },
		{ { "p", "-n", "x" }, -EINVAL, "-n `x': no" },
		{ { "p", "-n" }, -EINVAL, "option -n needs a value" },
		{ { "p", "--numb" }, -EINVAL, "option --numb needs a value" },
		{ { "p", "--all=3" }, -EINVAL, "unknown option `--all=3'" },
		{ { "p", "-y" }, -EINVAL, "unknown option `-y'" },
		{ { "p", "-ay" }, -EINVAL, "unknown option `-y'" },
		{ { "p", "--why" }, -EINVAL, "unknown option `--why'" },
		{ { "p", "-\033" }, -EINVAL, "unknown option `-?'" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct taken t = { .len = 0 };
		struct buf error = { 0 };
		char *argv[9] = { NULL };
		int argc = 0;

		for (; argc < 8 && cases[i].argv[argc] != NULL; argc++)
			argv[argc] = strdup(cases[i].argv[argc]);
		cr_expect_eq(option_parse(&table, argc, argv, &t, &error),
		    cases[i].want, "case %zu", i);
		cr_expect_str_eq(cases[i].want < 0 ? buf_str(&error) : t.text,
		    cases[i].taken, "case %zu", i);
		buf_done(&error);
		while (argc > 0)
			free(argv[--argc]);
	}
}

Test(base_option, a_table_makes_the_help)
{
	struct buf out = { 0 };

	cr_assert_eq(option_help(&table, &out), 0);
	cr_expect_str_eq(buf_str(&out),
	    "  -a, --all           everything\n"
	    "  -n, --number NUMBER how many\n"
	    "                      of them\n"
	    "  --a-long-name SOMETHING\n"
	    "                      below\n"
	    "  -z                  no name\n"
	    "  --help              this\n",
	    "%s", buf_str(&out));
	buf_done(&out);
}

Test(base_option, a_field_is_set)
{
	char *argv[] = { (char[]){ "p" }, (char[]){ "--string=x" },
		(char[]){ "-f" }, NULL };
	struct taken t = { .len = 0 };
	struct buf error = { 0 };

	cr_assert_eq(option_parse(&table, 3, argv, &t, &error), 0);
	cr_expect_str_eq(t.string, "x");
	cr_expect(t.flag);
	cr_assert_eq(option_no_word(&t, "x", &error), -EINVAL);
	cr_expect_str_eq(buf_str(&error), "too many arguments");
	buf_done(&error);
}

Test(base_option, words_of_a_table_that_takes_none_stand_from_optind)
{
	const struct option_table last = { table_rows, ARRAY_LEN(table_rows),
		true, NULL };
	const struct option_table no_words = { table_rows,
		ARRAY_LEN(table_rows), false, NULL };
	char *argv[] = { (char[]){ "p" }, (char[]){ "-a" }, (char[]){ "word" },
		(char[]){ "-a" }, NULL };
	struct taken t = { .len = 0 };
	struct buf error = { 0 };

	cr_assert_eq(option_parse(&no_words, 4, argv, &t, &error), 0);
	cr_expect_str_eq(t.text, "all ");
	cr_expect_eq(optind, 2);
	t.len = 0;
	cr_assert_eq(option_parse(&last, 4, argv, &t, &error), 0);
	cr_expect_str_eq(t.text, "all all ");
	cr_expect_eq(optind, 3);
}
