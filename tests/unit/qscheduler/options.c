#include "qscheduler/supervisor/options.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include "base/text.h"

#define ARGS_MAX 8

/* Words of a command line, copied so that getopt may turn them round. */
static int
parse(const char *line, struct options *ret, struct buf *error)
{
	static char words[1024];
	char *argv[ARGS_MAX + 2] = { (char[]){ "qscheduler" } };
	char *p = words;
	int argc = 1;

	cr_assert(strlen(line) < sizeof(words));
	memcpy(words, line, strlen(line) + 1);
	while (*p != '\0' && argc <= ARGS_MAX) {
		argv[argc++] = p;
		p += strcspn(p, " ");
		if (*p == ' ')
			*p++ = '\0';
	}
	return options_parse(argc, argv, ret, error);
}

Test(options, accepted)
{
	static const struct {
		const char *line;
		enum command command;
		enum mode mode;
		const char *conf;
	} rows[] = {
		{ "", COMMAND_RUN, MODE_CONF, NULL },
		{ "--", COMMAND_RUN, MODE_CONF, NULL },
		{ "-c /a", COMMAND_RUN, MODE_CONF, "/a" },
		{ "-s", COMMAND_RUN, MODE_FIXED, NULL },
		{ "-d", COMMAND_RUN, MODE_DYNAMIC, NULL },
		{ "-n", COMMAND_RUN, MODE_KEEP, NULL },
		{ "-s -c /a", COMMAND_RUN, MODE_FIXED, "/a" },
		{ "-c /a -s", COMMAND_RUN, MODE_FIXED, "/a" },
		{ "-sc /a", COMMAND_RUN, MODE_FIXED, "/a" },
		{ "-s -s", COMMAND_RUN, MODE_FIXED, NULL },
		{ "-s --", COMMAND_RUN, MODE_FIXED, NULL },
		{ "--check", COMMAND_CHECK, MODE_CONF, NULL },
		{ "--check /b", COMMAND_CHECK, MODE_CONF, "/b" },
		{ "--check -c /b", COMMAND_CHECK, MODE_CONF, "/b" },
		{ "--dump", COMMAND_DUMP, MODE_CONF, NULL },
		{ "--sample", COMMAND_SAMPLE, MODE_CONF, NULL },
		{ "--manual", COMMAND_MANUAL, MODE_CONF, NULL },
		{ "--help", COMMAND_HELP, MODE_CONF, NULL },
		{ "--version", COMMAND_VERSION, MODE_CONF, NULL },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct options o;
		struct buf error = { 0 };

		cr_assert_eq(
		    parse(rows[i].line, &o, &error), 0, "%s", rows[i].line);
		cr_expect_eq(o.command, rows[i].command, "%s", rows[i].line);
		cr_expect_eq(o.mode, rows[i].mode, "%s", rows[i].line);
		if (rows[i].conf == NULL)
			cr_expect_null(o.conf_path, "%s", rows[i].line);
		else
			cr_expect_str_eq(o.conf_path, rows[i].conf);
		cr_expect_eq(o.ready_fd, -1);
	}
}

Test(options, A1_refused)
{
	static const char *const rows[] = { "-", "x", "-x", "-c", "-s -c",
		"-s -d", "-s -n", "-s --dump", "--dump --check", "-s extra",
		"--check /a /b", "--check -c /a /b", "--nonsense", "--ready-fd",
		"-s --ready-fd x", "-s --ready-fd -1", "-s --ready-fd 1",
		"-s --ready-fd 99999999", "-s --ready-fd 2147483648" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct options o;
		struct buf error = { 0 };

		cr_expect_eq(
		    parse(rows[i], &o, &error), -EINVAL, "\"%s\"", rows[i]);
		cr_expect(error.len > 0, "\"%s\"", rows[i]);
		buf_done(&error);
	}
}

Test(options, A1_what_is_said_is_short_and_shows_nothing_raw)
{
	static char typed[4000];
	char *argv[] = { (char[]){ "qscheduler" }, (char[]){ "--ready-fd" },
		typed, NULL };
	struct buf error = { 0 };
	struct options o;

	memset(typed, 'x', sizeof(typed) - 1);
	memcpy(typed, "\033[2J\n", 5);
	cr_expect_eq(options_parse(3, argv, &o, &error), -EINVAL);
	cr_expect(text_is_utf8(buf_str(&error), error.len));
	cr_expect_lt(error.len, 200u);
	buf_done(&error);
}

Test(options, A1_many_and_long_arguments)
{
	static char word[128 * 1024], *argv[100002];
	struct options o;
	struct buf error = { 0 };
	int i;

	memset(word, '-', sizeof(word) - 1);
	argv[0] = word;
	for (i = 1; i <= 100000; i++)
		argv[i] = word;
	cr_expect_eq(options_parse(100001, argv, &o, &error), -EINVAL);
	buf_done(&error);
}
