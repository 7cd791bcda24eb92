#include "qscheduler/supervisor/supervisor.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base_dir.h"

TestSuite(inforce, .init = base_dir_setup, .fini = base_dir_teardown);

static void
put(const char *name, const char *text)
{
	char file[96];
	FILE *f;

	snprintf(file, sizeof(file), "%s/%s", base_dir.dir, name);
	f = fopen(file, "w");
	cr_assert_not_null(f);
	cr_assert_eq(fchmod(fileno(f), 0600), 0); /* as passwords need it */
	cr_assert_geq(fputs(text, f), 0);
	cr_assert_eq(fclose(f), 0);
}

static void
expect(const char *name, const char *text)
{
	char file[96], got[256] = "";
	FILE *f;

	snprintf(file, sizeof(file), "%s/%s", base_dir.path, name);
	f = fopen(file, "r");
	cr_assert_not_null(f, "%s", file);
	cr_assert_eq(fread(got, 1, sizeof(got) - 1, f), strlen(text));
	cr_assert_eq(fclose(f), 0);
	cr_expect_str_eq(got, text);
}

/* The files change when they have been judged: inforce_write() takes none that
 * is wrong, and none of the others. mutation: qscheduler/supervisor/inforce.c:
 * make_copies() judges none. */
Test(inforce, F10_what_is_in_force_was_judged_itself)
{
	static const struct {
		const char *name, *wrong, *why;
	} rows[] = {
		{ "routing", "b.test nosuch\n", ":1: " },
		{ "programs", "x\n", ":1: " },
		{ "passwords", "x\n", ":1: " },
	};
	char text[512], file[96];
	struct conf conf = { 0 };
	size_t i;

	cr_assert_eq(base_dir_open(base_dir.path), 0);
	snprintf(text, sizeof(text),
	    "queue_base = %s\nalias_file = %s/aliases\n"
	    "routing_file = %s/routing\nprograms_file = %s/programs\n"
	    "smtp_password_file = %s/passwords\n",
	    base_dir.path, base_dir.dir, base_dir.dir, base_dir.dir,
	    base_dir.dir);
	put("conf", text);
	put("aliases", "a: b\n");
	put("routing", "a.test local\n");
	put("programs", "");
	put("passwords", "a.test me secret\n");
	snprintf(file, sizeof(file), "%s/conf", base_dir.dir);
	cr_assert_eq(conf_load(file, &conf, &base_dir.error), 0, "%s",
	    buf_str(&base_dir.error));
	cr_expect_eq(inforce_write(&base_dir.base, &conf, &base_dir.error), 0);
	expect("aliases", "a: b\n");
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		put("aliases", "b: c\n");
		put("routing", "b.test local\n");
		put("passwords", "b.test me other\n");
		put(rows[i].name, rows[i].wrong);
		buf_reset(&base_dir.error);
		cr_expect_eq(
		    inforce_write(&base_dir.base, &conf, &base_dir.error),
		    -EINVAL);
		cr_expect_not_null(
		    strstr(buf_str(&base_dir.error), rows[i].why), "%s",
		    buf_str(&base_dir.error));
		cr_expect_not_null(
		    strstr(buf_str(&base_dir.error), "changed meanwhile"));
		expect("aliases", "a: b\n");
		expect("routing", "a.test local\n");
		expect("programs", "");
		expect("passwords", "a.test me secret\n");
		snprintf(file, sizeof(file), "%s/%s.next", base_dir.path,
		    rows[i].name);
		cr_expect_eq(access(file, F_OK), -1);
		put("programs", "");
	}
	conf_done(&conf);
	base_close(&base_dir.base);
}

static bool
is_kept(const struct inforce_kept *kept, const char *name)
{
	struct stat want, got;
	size_t i;

	cr_assert_eq(fstatat(base_dir.base.fd, name, &want, 0), 0, "%s", name);
	for (i = 0; i < INFORCE_NFILES; i++)
		if (kept->file[i].open && kept->file[i].text != NULL &&
		    fstat(kept->file[i].fd, &got) == 0 &&
		    got.st_ino == want.st_ino)
			return true;
	return false;
}

/* mutation: qscheduler/supervisor/inforce.c: inforce_keep() begins at the
 * second of the copies. */
Test(inforce, D31_each_file_in_force_is_kept_in_memory)
{
	static const struct {
		const char *parameter, *text, *copy;
	} rows[] = {
		{ "routing_file", "a.test local\n", "routing" },
		{ "programs_file", "#\n", "programs" },
		{ "alias_file", "a: b\n", "aliases" },
		{ "smtp_tls_policy_file", "a.test may\n", "tls-policy" },
		{ "smtp_password_file", "a.test me secret\n", "passwords" },
		{ "sender_rewrite", "@a.test @b.test\n", "sender-rewrite" },
		{ "sender_dependent_relayhost", "@a.test b.test\n",
		    "sender-relays" },
	};
	struct inforce_kept kept = { 0 };
	struct buf text = { 0 };
	struct conf conf = { 0 };
	char file[96];
	size_t i;

	cr_assert_eq(base_dir_open(base_dir.path), 0);
	(void)buf_printf(&text, "queue_base = %s\n", base_dir.path);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		(void)buf_printf(&text, "%s = %s/%s\n", rows[i].parameter,
		    base_dir.dir, rows[i].copy);
		put(rows[i].copy, rows[i].text);
	}
	put("conf", buf_str(&text));
	buf_done(&text);
	snprintf(file, sizeof(file), "%s/conf", base_dir.dir);
	cr_assert_eq(conf_load(file, &conf, &base_dir.error), 0, "%s",
	    buf_str(&base_dir.error));
	cr_assert_eq(inforce_write(&base_dir.base, &conf, &base_dir.error), 0,
	    "%s", buf_str(&base_dir.error));
	inforce_keep(&base_dir.base, &kept);
	cr_expect(is_kept(&kept, "conf"));
	for (i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect(is_kept(&kept, rows[i].copy), "%s", rows[i].copy);
	inforce_let_go(&kept);
	conf_done(&conf);
	base_close(&base_dir.base);
}
