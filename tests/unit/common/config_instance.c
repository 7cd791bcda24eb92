#include "config/conf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/conf-instance.XXXXXX";

static void
setup(void)
{
	static const char text[] = "instance = of-file\n";
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void
teardown(void)
{
	unlink(path);
}

TestSuite(conf_instance, .init = setup, .fini = teardown);

static void
set(const char *name, const char *value)
{
	if (value == NULL)
		unsetenv(name);
	else
		setenv(name, value, 1);
}

Test(conf_instance, rank)
{
	static const struct {
		const char *name, *given, *path, *env, *conf, *want;
	} rows[] = {
		{ "given", "mine", path, "of-env", path, "mine" },
		{ "given empty: the nameless", "", path, "of-env", path, "" },
		{ "variable", NULL, NULL, "of-env", path, "of-env" },
		{ "variable, no file needed", NULL, NULL, "of-env", "/none",
		    "of-env" },
		{ "variable empty", NULL, NULL, "", path, "" },
		{ "variable before file", NULL, path, "of-env", NULL,
		    "of-env" },
		{ "file named by variable", NULL, NULL, NULL, path, "of-file" },
		{ "file", NULL, path, NULL, "/none", "of-file" },
	};
	struct buf name = { 0 }, error = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		set("QSCHED_INSTANCE", rows[i].env);
		set("QSCHED_CONF", rows[i].conf);
		cr_expect_eq(
		    conf_instance(rows[i].given, rows[i].path, &name, &error),
		    0, "%s: %s", rows[i].name, buf_str(&error));
		cr_expect_str_eq(
		    buf_str(&name), rows[i].want, "%s", rows[i].name);
	}
	buf_done(&name);
	buf_done(&error);
}

Test(conf_instance, I16_refused)
{
	static const struct {
		const char *given, *path, *env, *want;
	} rows[] = {
		{ "a/b", NULL, NULL, "-i `a/b': " },
		{ "..", NULL, NULL, "-i `..': " },
		{ "a\n", NULL, NULL, "-i `a?': " },
		{ "0123456789012345678901234567890123456789012345678901234567"
		  "890123",
		    NULL, NULL, "..." },
		{ NULL, NULL, "a.b", "QSCHED_INSTANCE `a.b': " },
		{ NULL, "/none", "of-env", "/none" },
	};
	struct buf name = { 0 }, error = { 0 };
	size_t i;

	set("QSCHED_CONF", NULL);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		set("QSCHED_INSTANCE", rows[i].env);
		buf_reset(&error);
		cr_expect_lt(
		    conf_instance(rows[i].given, rows[i].path, &name, &error),
		    0, "row %zu", i);
		cr_expect(strstr(buf_str(&error), rows[i].want) != NULL,
		    "row %zu: %s", i, buf_str(&error));
	}
	buf_done(&error);
}
