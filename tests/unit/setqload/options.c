#include "setqload/options.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WORDS 8

static int
count(const char *const words[WORDS])
{
	int n = 0;

	while (n < WORDS && words[n] != NULL)
		n++;
	return n;
}

static int
parse(const char *const words[WORDS], struct options *ret, struct buf *error)
{
	char *argv[WORDS + 1] = { NULL };
	char copies[WORDS][64];
	int i, argc = count(words);

	for (i = 0; i < argc; i++) {
		snprintf(copies[i], sizeof(copies[i]), "%s", words[i]);
		argv[i] = copies[i];
	}
	return options_parse(argc, argv, ret, error);
}

Test(setqload_options, loads)
{
	static const struct {
		const char *words[WORDS];
		struct ratio local, remote;
	} rows[] = {
		{ { "x", "-q", "1", "45" }, { 45, 100 }, { 0, 0 } },
		{ { "x", "-q", "1", "0" }, { 0, 100 }, { 0, 0 } },
		{ { "x", "-q", "1", "100" }, { 100, 100 }, { 0, 0 } },
		{ { "x", "-q", "1", "45/100" }, { 45, 100 }, { 0, 0 } },
		{ { "x", "-q", "1", "2/10", "5/20" }, { 2, 10 }, { 5, 20 } },
		{ { "x", "-q", "1", "2/10 5/20" }, { 2, 10 }, { 5, 20 } },
		{ { "x", "-q", "1", "30 5/20" }, { 30, 100 }, { 5, 20 } },
		{ { "x", "-q", "1", "--", "30", "40" }, { 30, 100 },
		    { 40, 100 } },
		{ { "x", "-q1", "1000000/1000000" }, { 1000000, 1000000 },
		    { 0, 0 } },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct options o;
		struct buf error = { 0 };

		cr_assert_eq(parse(rows[i].words, &o, &error), 0, "row %zu: %s",
		    i, buf_str(&error));
		cr_expect_eq(o.queue, 1);
		cr_expect_eq(o.local.used, rows[i].local.used, "row %zu", i);
		cr_expect_eq(o.local.limit, rows[i].local.limit, "row %zu", i);
		cr_expect_eq(o.remote.used, rows[i].remote.used, "row %zu", i);
		cr_expect_eq(
		    o.remote.limit, rows[i].remote.limit, "row %zu", i);
	}
}

/* The reason names what was typed. */
Test(setqload_options, F2_A1_refused)
{
	static const struct {
		const char *words[WORDS], *want;
	} rows[] = {
		{ { "x" }, "no queue" },
		{ { NULL }, "no queue" },
		{ { "x", "45" }, "no queue" },
		{ { "x", "--", "45" }, "no queue" },
		{ { "x", "-q", "1" }, "no load" },
		{ { "x", "-q" }, "-q needs a value" },
		{ { "x", "-q", "1", "-i" }, "-i needs a value" },
		{ { "x", "-Z" }, "`-Z'" },
		{ { "x", "--nope" }, "`--nope'" },
		{ { "x", "--help=3" }, "`--help=3'" },
		{ { "x", "-q", "0", "45" }, "`0'" },
		{ { "x", "-q", "-1", "45" }, "`-1'" },
		{ { "x", "-q", "4096", "45" }, "`4096'" },
		{ { "x", "-q", "99999", "45" }, "`99999'" },
		{ { "x", "-q", "4294967297", "45" }, "`4294967297'" },
		{ { "x", "-q", "1x", "45" }, "`1x'" },
		{ { "x", "-q", " 1", "45" }, "` 1'" },
		{ { "x", "-q", "", "45" }, "`'" },
		{ { "x", "-q", "1", "" }, "`'" },
		{ { "x", "-q", "1", "x" }, "`x'" },
		{ { "x", "-q", "1", "1/0" }, "`1/0'" },
		{ { "x", "-q", "1", "0/0" }, "`0/0'" },
		{ { "x", "-q", "1", "/" }, "`/'" },
		{ { "x", "-q", "1", "1/" }, "`1/'" },
		{ { "x", "-q", "1", "/1" }, "`/1'" },
		{ { "x", "-q", "1", "1/2/3" }, "`1/2/3'" },
		{ { "x", "-q", "1", "--", "-1" }, "`-1'" },
		{ { "x", "-q", "1", "-1" }, "unknown option `-1'" },
		{ { "x", "-q", "1", "+1" }, "`+1'" },
		{ { "x", "-q", "1", "0x10" }, "`0x10'" },
		{ { "x", "-q", "1", "4.5" }, "`4.5'" },
		{ { "x", "-q", "1", "45%" }, "`45%'" },
		{ { "x", "-q", "1", "101" }, "more in use" },
		{ { "x", "-q", "1", "3/2" }, "more in use" },
		{ { "x", "-q", "1", "1/1000001" }, "`1/1000001'" },
		{ { "x", "-q", "1", "1/18446744073709551617" }, "limit" },
		{ { "x", "-q", "1", "1 2 3" }, "`2 3'" },
		{ { "x", "-q", "1", "1  2" }, "` 2'" },
		{ { "x", "-q", "1", " 1" }, "` 1'" },
		{ { "x", "-q", "1", "1 " }, "`'" },
		{ { "x", "-q", "1", "1 2", "3" }, "`1 2'" },
		{ { "x", "-q", "1", "1", "2", "3" }, "too many" },
		{ { "x", "-q", "1", "1\x1b[2J" }, "`1?[2J'" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct options o = { .queue = 77 };
		struct buf error = { 0 };

		cr_expect_eq(
		    parse(rows[i].words, &o, &error), -EINVAL, "row %zu", i);
		cr_expect_eq(o.queue, 77, "row %zu: changed", i);
		cr_expect(strstr(buf_str(&error), rows[i].want) != NULL,
		    "row %zu: %s", i, buf_str(&error));
		buf_done(&error);
	}
}

Test(setqload_options, what_is_not_a_load)
{
	static const char *const help[WORDS] = { "x", "--help" };
	static const char *const version[WORDS] = { "x", "--version" };
	static const char *const where[WORDS] = { "x", "-i", "mine", "-c", "/f",
		"-q", "4095", "1" };
	struct options o;
	struct buf error = { 0 };

	cr_assert_eq(parse(help, &o, &error), 0);
	cr_expect_eq(o.command, COMMAND_HELP);
	cr_assert_eq(parse(version, &o, &error), 0);
	cr_expect_eq(o.command, COMMAND_VERSION);
	cr_assert_eq(parse(where, &o, &error), 0);
	cr_expect_eq(o.queue, 4095);
	cr_expect_not_null(o.instance);
	cr_expect_not_null(o.conf_path);
}
