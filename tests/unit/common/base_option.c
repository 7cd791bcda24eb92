#include "base/option.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <getopt.h>
#include <string.h>

static const struct option longs[] = {
	{ "help", no_argument, NULL, OPTION_LONG },
	{ "number", required_argument, NULL, OPTION_LONG + 1 },
	{ NULL, 0, NULL, 0 },
};

static const struct {
	const char *name;
	const char *argv[4];
	const char *want;
} rows[] = {
	{ "short", { "p", "-x", NULL }, "unknown option `-x'" },
	{ "behind another", { "p", "-bx", NULL }, "unknown option `-x'" },
	{ "long", { "p", "--why", NULL }, "unknown option `--why'" },
	{ "long with a value", { "p", "--help=1", NULL },
	    "unknown option `--help=1'" },
	{ "no value", { "p", "-n", NULL }, "option -n needs a value" },
	{ "long without a value", { "p", "--number", NULL },
	    "option --number needs a value" },
	{ "A1 not fit to be shown", { "p", "-\033", NULL },
	    "unknown option `-?'" },
};

Test(base_option, A1_what_cannot_be_taken_is_named)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		char *argv[4];
		struct buf error = { 0 };
		int c;

		memcpy(argv, rows[i].argv, sizeof(argv));
		opterr = 0;
		optind = 0;
		do {
			c = getopt_long(2, argv, "+:bn:", longs, NULL);
		} while (c == 'b');
		cr_expect_eq(option_unknown(&error, c, argv), -EINVAL);
		cr_expect_str_eq(
		    buf_str(&error), rows[i].want, "%s", rows[i].name);
		buf_done(&error);
	}
}

Test(base_option, what_was_typed_stands_between)
{
	struct buf error = { 0 };

	cr_expect_eq(option_wrong(&error, "-q ", "x", ": no number"), -EINVAL);
	cr_expect_str_eq(buf_str(&error), "-q `x': no number");
	buf_done(&error);
}
