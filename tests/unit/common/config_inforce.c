/* What is used when the operator's file is wrong. mutation:
 * conf_load_in_force() returns what conf_load() does. */
#include "config/conf.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/param.h"

static char dir[] = "/tmp/config_inforce.XXXXXX";
static char base[64], file[64];
static struct conf conf;
static struct buf error;

static void
put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert_not_null(f);
	fputs(text, f);
	cr_assert_eq(fclose(f), 0);
	cr_assert_eq(chmod(path, 0644), 0);
}

static const char *
in_base(const char *name)
{
	static char path[96];

	snprintf(path, sizeof(path), "%s/%s", base, name);
	return path;
}

static void
put_in_force(void)
{
	char text[200];

	snprintf(
	    text, sizeof(text), "queue_base = %s\nqueue_count = 3\n", base);
	put(in_base("conf"), text);
}

static void
setup(void)
{
	const struct param *p;

	for (p = params; p < params + nparams; p++)
		if (p->env != NULL)
			unsetenv(p->env);
	unsetenv("QSCHED_CONF");
	umask(022);
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chmod(dir, 0755), 0);
	snprintf(base, sizeof(base), "%s/queue", dir);
	snprintf(file, sizeof(file), "%s/c", dir);
	cr_assert_eq(mkdir(base, 0755), 0);
	put_in_force();
}

static void
teardown(void)
{
	char control[96];

	snprintf(control, sizeof(control), "%s/queue_base", dir);
	(void)unlink(control);
	(void)unlink(in_base("conf"));
	(void)unlink(file);
	(void)rmdir(base);
	cr_expect_eq(rmdir(dir), 0);
	buf_done(&error);
}

TestSuite(config_inforce, .init = setup, .fini = teardown);

/* The file says: this, and where QUEUE_BASE is. */
static void
put_file(const char *text)
{
	char all[400];

	snprintf(all, sizeof(all), "queue_base = %s\n%s\n", base, text);
	put(file, all);
}

static int
load(void)
{
	int r;

	buf_reset(&error);
	r = conf_load_in_force(file, &conf, &error);
	if (r < 0)
		return r;
	cr_expect_eq(conf.queue_count, r == 0 ? 7 : 3);
	conf_done(&conf);
	return r;
}

Test(config_inforce, F9_a_right_file_is_used)
{
	put_file("queue_count = 7");
	cr_expect_eq(load(), 0);
	cr_expect_eq(error.len, 0);
}

Test(config_inforce, F9_one_wrong_line_is_told_and_the_one_in_force_used)
{
	static const char *const wrong[] = { "no_such = 1", "queue_count = x",
		"not a line", "queue_count = 1\nqueue_count = 2",
		"queue_count = 9\nqueue_max = 8", "log_level = \x01" };
	char want[80];
	size_t i;

	snprintf(want, sizeof(want), "%s:", file);
	for (i = 0; i < ARRAY_LEN(wrong); i++) {
		put_file(wrong[i]);
		cr_expect_eq(load(), 1, "%s", wrong[i]);
		cr_expect(strstr(buf_str(&error), want) != NULL, "%s: %s",
		    wrong[i], buf_str(&error));
	}
}

Test(config_inforce, F9_its_path_is_told)
{
	put_file("no_such = 1");
	cr_assert_eq(conf_load_in_force(file, &conf, &error), 1);
	cr_expect_str_eq(conf_path(&conf), in_base("conf"));
	conf_done(&conf);
}

/* Where QUEUE_BASE is when the file does not say. */
Test(config_inforce, F9_the_base_is_found_by_rank)
{
	char control[96];

	put(file, "no_such = 1\n");
	cr_expect_lt(load(), 0, "the default, where nothing of ours is");
	snprintf(control, sizeof(control), "%s/queue_base", dir);
	put(control, base);
	cr_expect_eq(load(), 1, "control file");
	put(file, "queue_base = /no/such\nno_such = 1\n");
	cr_expect_lt(load(), 0, "the file outranks the control file");
	setenv("QUEUE_BASE", base, 1);
	cr_expect_eq(load(), 1, "the environment outranks both");
	unsetenv("QUEUE_BASE");
}

/* The control file names a base that has a conf: not to be used for them.
 * mutation: locate_base() asks the next source where base_of_file() fails. */
Test(config_inforce, F9_a_file_that_leaves_the_base_open_is_refused)
{
	static const char *const wrong[] = { "queue_base = relative",
		"queue_base =", "queue_base", "queue_base /srv/queue",
		"queue_bse = /srv/queue", "queue_base = /a\nqueue_base = /b",
		"queue_base = \x01/a" };
	char control[96], twice[200];
	size_t i;

	snprintf(control, sizeof(control), "%s/queue_base", dir);
	put(control, base);
	for (i = 0; i < ARRAY_LEN(wrong); i++) {
		put(file, wrong[i]);
		cr_expect_lt(load(), 0, "%s", wrong[i]);
		cr_expect(strstr(buf_str(&error), file) != NULL, "%s: %s",
		    wrong[i], buf_str(&error));
	}
	snprintf(twice, sizeof(twice), "queue_base = %s", base);
	put_file(twice);
	cr_expect_lt(load(), 0, "the line stands twice");
	put(file, "no_such = 1\n");
	cr_expect_eq(load(), 1);
	put(control, "relative");
	cr_expect_lt(load(), 0, "a wrong control file");
}

static int
load_as_nobody(void)
{
	int r;

	cr_assert_eq(seteuid(65534), 0);
	r = load();
	cr_assert_eq(seteuid(0), 0);
	return r;
}

Test(config_inforce, F9_a_file_that_the_caller_may_not_read_is_refused)
{
	char control[96];

	snprintf(control, sizeof(control), "%s/queue_base", dir);
	put(control, base);
	put_file("queue_count = 7");
	cr_assert_eq(chmod(file, 0), 0);
	cr_expect_eq(geteuid() == 0 ? load_as_nobody() : load(), -EACCES);
	cr_expect(strstr(buf_str(&error), "Permission denied") != NULL, "%s",
	    buf_str(&error));
}

Test(config_inforce, F9_a_file_that_is_gone)
{
	cr_expect_eq(load(), -ENOENT, "may be a slip: not the default base");
	setenv("QUEUE_BASE", base, 1);
	cr_expect_eq(load(), 1);
	unsetenv("QUEUE_BASE");
}

Test(config_inforce, F9_what_others_may_have_written_is_not_used)
{
	put_file("no_such = 1");
	cr_assert_eq(chmod(in_base("conf"), 0664), 0);
	cr_expect_lt(load(), 0, "conf");
	cr_assert_eq(chmod(in_base("conf"), 0644), 0);
	cr_assert_eq(chmod(base, 0775), 0);
	cr_expect_lt(load(), 0, "QUEUE_BASE");
	cr_assert_eq(chmod(base, 0755), 0);
	cr_expect_eq(load(), 1);
	if (geteuid() == 0) {
		cr_assert_eq(chown(in_base("conf"), 65534, 65534), 0);
		cr_expect_lt(load(), 0, "of somebody else");
	}
}

Test(config_inforce, F9_damaged_or_of_another_base)
{
	put_file("no_such = 1");
	put(in_base("conf"), "queue_base = /somewhere/else\nqueue_count = 3\n");
	cr_expect_eq(load(), -EINVAL, "of another base");
	cr_expect(strstr(buf_str(&error), "no_such") != NULL);
	put(in_base("conf"), "queue_count = no\n");
	cr_expect_lt(load(), 0, "damaged");
	cr_expect(strstr(buf_str(&error), "queue_count") == NULL,
	    "the file is what is wrong: %s", buf_str(&error));
	(void)unlink(in_base("conf"));
	cr_expect_lt(load(), 0, "none");
}
