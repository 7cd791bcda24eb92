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

static void
judge(const char *text, struct buf *error, int want)
{
	alias_scratch_write(text, strlen(text));
	cr_expect_eq(alias_judge("a", error), want, "\"%s\"", text);
}

/* mutation: common/route/alias.c: fail() is always -EINVAL. */
Test(route_alias_judge, F10_each_line)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "" },
		{ "a: b\n", "" },
		{ "x\n c\na: /b\n /c\nd:\nx y\ne: f\na: g\n",
		    "a:1: no colon behind the name\n"
		    "a:3: mail is not appended to files: /dev/null is the only "
		    "path\n"
		    "a:4: mail is not appended to files: /dev/null is the only "
		    "path\n"
		    "a:5: no recipient (/dev/null drops mail)\n"
		    "a:6: no colon behind the name\n"
		    "a:8: `a': already in line 3" },
		{ " b\na: b\n",
		    "a:1: a line that begins with a blank continues an alias, "
		    "and there is none" },
	};
	struct buf error = { 0 }, text = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		judge(rows[i].text, &error, rows[i].want[0] ? -EINVAL : 0);
		cr_expect_str_eq(
		    buf_str(&error), rows[i].want, "%s", buf_str(&error));
		buf_reset(&error);
	}
	for (i = 0; i < 30; i++)
		cr_assert_eq(buf_printf(&text, "w%zu\n", i), 0);
	judge(buf_str(&text), &error, -EINVAL);
	cr_expect_not_null(strstr(buf_str(&error),
	    "\na:20: no colon behind the name\na: 10 more wrong lines"));
	buf_done(&text);
	buf_done(&error);
	unlink("a");
	cr_expect_eq(alias_judge("a", &error), -ENOENT);
	buf_done(&error);
}
