#include "setqload/setqload.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WORDS 10

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
		{ { "x", "-q", "1", "45%" }, { 45, 100 }, { 0, 0 } },
		{ { "x", "-q", "1", "45% 5%" }, { 45, 100 }, { 5, 100 } },
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
		cr_expect_eq(o.nqueues, 1);
		cr_expect_eq(o.queues[0], 1);
		cr_expect_eq(o.local.used, rows[i].local.used, "row %zu", i);
		cr_expect_eq(o.local.limit, rows[i].local.limit, "row %zu", i);
		cr_expect_eq(o.remote.used, rows[i].remote.used, "row %zu", i);
		cr_expect_eq(
		    o.remote.limit, rows[i].remote.limit, "row %zu", i);
	}
}

Test(setqload_options, commands)
{
	static const struct {
		const char *words[WORDS];
		struct options want;
	} rows[] = {
		{ { "x", "-q", "3", "45", "--for", "5m" },
		    { .command = COMMAND_SET,
			.queues = { 3 },
			.nqueues = 1,
			.seconds = 300 } },
		{ { "x", "--for", "90", "-q", "3", "45" },
		    { .command = COMMAND_SET,
			.queues = { 3 },
			.nqueues = 1,
			.seconds = 90 } },
		{ { "x", "45", "-q", "3" },
		    { .command = COMMAND_SET, .queues = { 3 }, .nqueues = 1 } },
		{ { "x", "--clear" }, { .command = COMMAND_CLEAR } },
		{ { "x", "--reload" }, { .command = COMMAND_RELOAD } },
		{ { "x", "--clear", "-q", "3" },
		    { .command = COMMAND_CLEAR,
			.queues = { 3 },
			.nqueues = 1 } },
		{ { "x", "-q3", "--disable" },
		    { .command = COMMAND_DISABLE,
			.queues = { 3 },
			.nqueues = 1 } },
		{ { "x", "--disable", "-q", "3", "--for", "2h", "--reason",
		      "new disk" },
		    { .command = COMMAND_DISABLE,
			.queues = { 3 },
			.nqueues = 1,
			.seconds = 7200,
			.reason = "new disk" } },
		{ { "x", "--disable", "--queue=3", "--for=1500ms",
		      "--reason=" },
		    { .command = COMMAND_DISABLE,
			.queues = { 3 },
			.nqueues = 1,
			.seconds = 2 } },
		{ { "x", "--disable", "-q", "3", "--for", "365d" },
		    { .command = COMMAND_DISABLE,
			.queues = { 3 },
			.nqueues = 1,
			.seconds = 365 * 86400 } },
		{ { "x", "--enable", "-q", "3" },
		    { .command = COMMAND_ENABLE,
			.queues = { 3 },
			.nqueues = 1 } },
		{ { "x", "--count", "7" },
		    { .command = COMMAND_COUNT, .count = 7 } },
		{ { "x", "--count", "256", "--for", "1d" },
		    { .command = COMMAND_COUNT,
			.count = 256,
			.seconds = 86400 } },
		{ { "x", "--list" }, { .command = COMMAND_LIST } },
		{ { "x", "--list", "--json" },
		    { .command = COMMAND_LIST, .json = true } },
		{ { "x", "--disable", "-q", "1", "-q", "2" },
		    { .command = COMMAND_DISABLE,
			.queues = { 1, 2 },
			.nqueues = 2 } },
		{ { "x", "--clear", "-q", "7,3-5", "-q9" },
		    { .command = COMMAND_CLEAR,
			.queues = { 7, 3, 4, 5, 9 },
			.nqueues = 5 } },
		{ { "x", "--enable", "-q", "4094-4095,1-1" },
		    { .command = COMMAND_ENABLE,
			.queues = { 4094, 4095, 1 },
			.nqueues = 3 } },
		{ { "x", "-q1-2", "45" },
		    { .command = COMMAND_SET,
			.queues = { 1, 2 },
			.nqueues = 2 } },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct options *want = &rows[i].want;
		struct options o;
		struct buf error = { 0 };

		cr_assert_eq(parse(rows[i].words, &o, &error), 0, "row %zu: %s",
		    i, buf_str(&error));
		cr_expect_eq(o.command, want->command, "row %zu", i);
		cr_expect_eq(o.nqueues, want->nqueues, "row %zu", i);
		cr_expect_eq(memcmp(o.queues, want->queues, sizeof(o.queues)),
		    0, "row %zu", i);
		cr_expect_eq(o.seconds, want->seconds, "row %zu", i);
		cr_expect_eq(o.count, want->count, "row %zu", i);
		cr_expect_eq(o.json, want->json, "row %zu", i);
		cr_expect_str_eq(o.reason,
		    want->reason == NULL ? "" : want->reason, "row %zu", i);
	}
}

Test(setqload_options, what_does_not_go_together)
{
	static const struct {
		const char *words[WORDS], *want;
	} rows[] = {
		{ { "x", "--disable" }, "no queue given (-q)" },
		{ { "x", "--enable" }, "no queue given (-q)" },
		{ { "x", "--clear", "--list" },
		    "--clear and --list do not go together" },
		{ { "x", "--disable", "--enable", "-q", "1" },
		    "--disable and --enable do not go together" },
		{ { "x", "--count", "3", "--clear" },
		    "--count and --clear do not go together" },
		{ { "x", "--count", "3", "-q", "1" },
		    "-q does not go with --count" },
		{ { "x", "--count", "3", "4" },
		    "a load does not go with --count" },
		{ { "x", "--clear", "45" },
		    "a load does not go with --clear: queues are named by -q" },
		{ { "x", "--disable", "1" },
		    "a load does not go with --disable: queues are named by "
		    "-q" },
		{ { "x", "--json" }, "--json does not go with a load" },
		{ { "x", "--enable", "-q", "1", "--for", "5m" },
		    "--for does not go with --enable" },
		{ { "x", "--clear", "--for", "5m" },
		    "--for does not go with --clear" },
		{ { "x", "--reason", "x", "-q", "1", "45" },
		    "--reason does not go with a load" },
		{ { "x", "--list", "-q", "1" }, "-q does not go with --list" },
		{ { "x", "--json", "-q", "1", "45" },
		    "--json does not go with a load" },
		{ { "x", "-q", "1,2", "-q", "2" },
		    "-q `2': queue 2 is named twice" },
		{ { "x", "-q", "1-3,2" },
		    "-q `1-3,2': queue 2 is named twice" },
		{ { "x", "-q", "5-3" },
		    "-q `5-3': a range begins with the lower number" },
		{ { "x", "-q", "1-257" }, "-q `1-257': more than 256 queues" },
		{ { "x", "-q", "1-256", "-q", "300" },
		    "-q `300': more than 256 queues" },
		{ { "x", "-q", "1-4095" }, "more than 256 queues" },
		{ { "x", "-q", "1," },
		    "-q `1,': not queue numbers (1 to 4095; several: 1,3-5)" },
		{ { "x", "-q", ",1" }, "-q `,1': not queue numbers" },
		{ { "x", "-q", "1,,2" }, "-q `1,,2': not queue numbers" },
		{ { "x", "-q", "1, 2" }, "-q `1, 2': not queue numbers" },
		{ { "x", "-q", "1-" }, "-q `1-': not queue numbers" },
		{ { "x", "-q", "1-2-3" }, "-q `1-2-3': not queue numbers" },
		{ { "x", "-q", "1-4096" }, "-q `1-4096': not queue numbers" },
		{ { "x", "-q", "0-2" }, "-q `0-2': not queue numbers" },
		{ { "x", "--count", "0" },
		    "--count `0': not a number of queues (1 to 256)" },
		{ { "x", "--count", "257" }, "--count `257'" },
		{ { "x", "--count", "-1" }, "--count `-1'" },
		{ { "x", "--count", "4294967297" }, "--count `4294967297'" },
		{ { "x", "--for", "0" }, "--for `0': not a time" },
		{ { "x", "--for", "-1" }, "--for `-1': not a time" },
		{ { "x", "--for", "366d" }, "--for `366d': not a time" },
		{ { "x", "--for", "5 m" }, "--for `5 m': not a time" },
		{ { "x", "--for", "" }, "--for `': not a time" },
		{ { "x", "--for", "18446744073709551616" }, "not a time" },
		{ { "x", "--for", "99999999999999w" }, "not a time" },
		{ { "x", "--reason", "\x1b[2J" }, "control characters" },
		{ { "x", "--reason", "two\nlines" }, "control characters" },
		{ { "x", "--reason", "\xff" }, "not UTF-8" },
		{ { "x", "--reason" }, "option --reason needs a value" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct options o = { .nqueues = 77 };
		struct buf error = { 0 };

		cr_expect_eq(
		    parse(rows[i].words, &o, &error), -EINVAL, "row %zu", i);
		cr_expect_eq(o.nqueues, 77, "row %zu: changed", i);
		cr_expect(strstr(buf_str(&error), rows[i].want) != NULL,
		    "row %zu: %s", i, buf_str(&error));
		buf_done(&error);
	}
}

Test(setqload_options, reason_too_long)
{
	char reason[97], copy[4][16] = { "x", "--disable", "-q1", "--reason" };
	char *argv[] = { copy[0], copy[1], copy[2], copy[3], reason, NULL };
	struct options o;
	struct buf error = { 0 };

	memset(reason, 'x', sizeof(reason));
	reason[95] = '\0';
	cr_expect_eq(options_parse(5, argv, &o, &error), 0);
	reason[95] = 'x';
	reason[96] = '\0';
	cr_expect_eq(options_parse(5, argv, &o, &error), -EINVAL);
	cr_expect_str_eq(
	    buf_str(&error), "--reason: the reason is longer than 95 bytes");
	buf_done(&error);
}

/* The reason names what was typed. */
Test(setqload_options, F2_A1_refused)
{
	static const struct {
		const char *words[WORDS], *want;
	} rows[] = {
		{ { "x" }, "nothing to do; see setqload --help" },
		{ { NULL }, "nothing to do" },
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
		{ { "x", "-q", "1", "%" }, "`%'" },
		{ { "x", "-q", "1", "45%%" }, "`45%%'" },
		{ { "x", "-q", "1", "5%/10" }, "`5%/10'" },
		{ { "x", "-q", "1", "5/10%" }, "`5/10%'" },
		{ { "x", "-q", "1", "101" }, "more than 100 percent" },
		{ { "x", "-q", "1", "101%" }, "more than 100 percent" },
		{ { "x", "-q", "1", "101", "1/2" }, "more than 100 percent" },
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
		struct options o = { .nqueues = 77 };
		struct buf error = { 0 };

		cr_expect_eq(
		    parse(rows[i].words, &o, &error), -EINVAL, "row %zu", i);
		cr_expect_eq(o.nqueues, 77, "row %zu: changed", i);
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
	cr_expect_eq(o.queues[0], 4095);
	cr_expect_not_null(o.instance);
	cr_expect_not_null(o.conf_path);
}
