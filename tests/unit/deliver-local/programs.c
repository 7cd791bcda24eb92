#include "route/programs.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.h"

static const char *const values[PROGRAM_NVALUES] = {
	[PROGRAM_SENDER] = "s@x",
	[PROGRAM_RECIPIENT] = "bob;id $(id) `id`@y",
	[PROGRAM_USER] = "bob;id $(id) `id`",
	[PROGRAM_DOMAIN] = "y",
	[PROGRAM_NEXTHOP] = "name",
};

/* The arguments of the program of this name, each in <>; "-" without it, "!"
 * when they cannot be made. */
static void
show(const struct programs *programs, const char *name,
    const char *const with[PROGRAM_NVALUES], struct buf *out)
{
	const struct program *p = programs_find(programs, name);
	char **argv = NULL;
	size_t i;

	buf_reset(out);
	if (p == NULL) {
		buf_add_str(out, "-");
	} else if (program_argv(p, with, &argv) < 0) {
		buf_add_str(out, "!");
	} else {
		for (i = 0; argv[i] != NULL; i++)
			buf_printf(out, "<%s>", argv[i]);
		program_argv_free(&argv);
	}
}

static int
load(const char *text, struct programs **programs, struct buf *error)
{
	buf_reset(error);
	return programs_load(
	    scratch_file("programs", text, strlen(text)), programs, error);
}

static const struct {
	const char *text;
	const char *name;
	const char *args;
} good[] = {
	{ "", "x", "-" },
	{ "# x u /bin/x\n\n  \t\n", "x", "-" },
	{ "x u /bin/x", "x", "</bin/x>" },
	{ "x u /bin/x\r\n", "x", "</bin/x>" },
	{ "  x\tu   /bin/x  a\tb  \n", "x", "</bin/x><a><b>" },
	{ "x u /bin/x\ny u /bin/y\n", "y", "</bin/y>" },
	{ "Big u /bin/x\n", "bIG", "</bin/x>" },
	{ "x u /bin/x \"a b\"c\"\" \"\" d\n", "x", "</bin/x><a bc><><d>" },
	{ "x u /bin/x \"a\\\"b\\\\c\\d\" e\\f\n", "x",
	    "</bin/x><a\"b\\c\\d><e\\f>" },
	{ "x u /bin/x # no\n", "x", "</bin/x><#><no>" },
	{ "x u /bin/x $ $x ${ user} }\n", NULL, NULL },
	{ "x u /bin/x $ $x }{\n", "x", "</bin/x><$><$x><}{>" },
	{ "x u /bin/x ${sender}${domain}\n", "x", "</bin/x><s@xy>" },
	{ "x u /bin/x to=${recipient}\n", "x",
	    "</bin/x><to=bob;id $(id) `id`@y>" },
	{ "x u /bin/x \"a ${user} b\" ${nexthop}\n", "x",
	    "</bin/x><a bob;id $(id) `id` b><name>" },
};

Test(programs, X9_lines_become_argument_vectors, .fini = scratch_done)
{
	struct buf out = { 0 }, error = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(good); i++) {
		struct programs *programs = NULL;
		int r = load(good[i].text, &programs, &error);

		cr_expect_eq(r, good[i].name == NULL ? -EINVAL : 0, "%s: %s",
		    good[i].text, buf_str(&error));
		if (r == 0) {
			show(programs, good[i].name, values, &out);
			cr_expect_str_eq(buf_str(&out), good[i].args, "%s: %s",
			    good[i].text, buf_str(&out));
		}
		programs_free(&programs);
	}
	buf_done(&out);
	buf_done(&error);
}

static const struct {
	const char *text;
	const char *error;
} bad[] = {
	{ "x", "1: name, user and path are needed" },
	{ "\n#\nx u\n", "3: name, user and path are needed" },
	{ "x/y u /bin/x\n",
	    "1: a name is letters, digits, dot, hyphen, underscore" },
	{ "\"\" u /bin/x\n",
	    "1: a name is letters, digits, dot, hyphen, underscore" },
	{ "x u! /bin/x\n",
	    "1: the second word is no name of a user: a line is "
	    "NAME USER PATH [ARGUMENT...]" },
	{ "x root /bin/x\n", "1: programs do not run as root" },
	{ "x u bin/x\n", "1: the path is not absolute" },
	{ "x u ${user}\n", "1: the path is not absolute" },
	{ "x u /bin/${user}\n", "1: the path cannot depend on the message" },
	{ "x u /bin/x\nX v /bin/y\n", "2: the name is there already" },
	{ "x u /bin/x \"a b\n", "1: a quote is not closed" },
	{ "x u /bin/x ${shell}\n", "1: unknown ${value}" },
	{ "x u /bin/x ${}\n", "1: unknown ${value}" },
	{ "x u /bin/x ${user\n", "1: unknown ${value}" },
	{ "x u /bin/x ${user} ${USER}\n", "1: unknown ${value}" },
	{ "x u /bin/x a\001b\n", "1: control character" },
};

Test(programs, F4_wrong_files_name_their_line, .fini = scratch_done)
{
	struct buf error = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(bad); i++) {
		struct programs *programs = NULL;
		char want[512];

		snprintf(want, sizeof(want), "%s:%s", scratch_path("programs"),
		    bad[i].error);
		cr_expect_eq(load(bad[i].text, &programs, &error), -EINVAL,
		    "%s", bad[i].text);
		cr_expect_eq(strncmp(buf_str(&error), want, strlen(want)), 0,
		    "%s: %s", bad[i].text, buf_str(&error));
		cr_expect_null(programs);
	}
	buf_done(&error);
}

Test(programs, the_user_of_the_instance, .fini = scratch_done)
{
	struct programs *programs = NULL;
	struct buf error = { 0 };

	cr_expect_eq(load("x - /bin/x\n", &programs, &error),
	    geteuid() == 0 ? -EINVAL : 0, "%s", buf_str(&error));
	programs_free(&programs);
	buf_done(&error);
}

Test(programs, too_many_arguments, .fini = scratch_done)
{
	struct buf text = { 0 }, error = { 0 };
	struct programs *programs = NULL;
	int i;

	buf_add_str(&text, "x u /bin/x");
	for (i = 1; i < PROGRAMS_ARGS_MAX; i++)
		buf_add_str(&text, " a");
	cr_expect_eq(load(buf_str(&text), &programs, &error), 0);
	programs_free(&programs);
	buf_add_str(&text, " a");
	cr_expect_eq(load(buf_str(&text), &programs, &error), -EINVAL);
	buf_done(&text);
	buf_done(&error);
}

Test(programs, F1_files_that_are_none, .fini = scratch_done)
{
	struct buf error = { 0 };
	struct programs *programs = NULL;

	cr_expect_eq(
	    programs_load(scratch_path("absent"), &programs, &error), 0);
	cr_assert_not_null(programs, "an absent file is an empty table");
	cr_expect_null(programs_find(programs, "x"));
	programs_free(&programs);
	cr_expect_lt(programs_load(scratch(), &programs, &error), 0);
	cr_expect_null(programs);
	cr_assert(mkfifo(scratch_path("fifo"), 0600) == 0);
	cr_expect_lt(programs_load(scratch_path("fifo"), &programs, &error), 0);
	buf_done(&error);
}

Test(programs, F8_root_believes_no_file_that_others_write, .fini = scratch_done)
{
	struct buf error = { 0 };
	struct programs *programs = NULL;

	if (geteuid() != 0)
		cr_skip("only for root");

	scratch_file("programs", "x u /bin/x\n", 11);
	cr_assert(chmod(scratch_path("programs"), 0666) == 0);
	cr_expect_eq(
	    programs_load(scratch_path("programs"), &programs, &error), -EPERM);
	cr_expect_null(programs);
	buf_done(&error);
}

/* Addresses as somebody would choose them who wants to speak to getopt(). */
Test(programs, X9_an_address_plays_no_option, .fini = scratch_done)
{
	static const struct {
		const char *line;
		const char *recipient;
		const char *args;
	} rows[] = {
		{ "x u /bin/x ${recipient}", "-oProxy@x", "!" },
		{ "x u /bin/x ${recipient}", "-", "!" },
		{ "x u /bin/x -- ${recipient}", "-oProxy@x",
		    "</bin/x><--><-oProxy@x>" },
		{ "x u /bin/x ${recipient} --", "-oProxy@x", "!" },
		{ "x u /bin/x --to=${recipient}", "-oProxy@x",
		    "</bin/x><--to=-oProxy@x>" },
		{ "x u /bin/x -f ${recipient}", "bob@x",
		    "</bin/x><-f><bob@x>" },
		{ "x u /bin/x -f \"\" ${recipient} z", "",
		    "</bin/x><-f><><><z>" },
		{ "x u /bin/x ${recipient}", "--", "!" },
		{ "x u /bin/x ${recipient}", "${sender} \"a b\"",
		    "</bin/x><${sender} \"a b\">" },
	};
	struct buf out = { 0 }, error = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const char *with[PROGRAM_NVALUES];
		struct programs *programs = NULL;

		memcpy(with, values, sizeof(with));
		with[PROGRAM_RECIPIENT] = rows[i].recipient;
		cr_assert_eq(load(rows[i].line, &programs, &error), 0);
		show(programs, "x", with, &out);
		cr_expect_str_eq(buf_str(&out), rows[i].args, "%s with %s: %s",
		    rows[i].line, rows[i].recipient, buf_str(&out));
		programs_free(&programs);
	}
	buf_done(&out);
	buf_done(&error);
}
