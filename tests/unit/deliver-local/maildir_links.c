/* Maildirs that others left things in, or put links into. */
#include "deliver-local/child.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "scratch.h"

#define TEXT(s) (s), sizeof(s) - 1

static uint64_t deliveries;

static int
run(const char *path, bool sweeps, const char **step)
{
	struct put md = { .sys = &spool_sys_real,
		.path = path,
		.host = "h",
		.delivery = deliveries++,
		.sweep = sweeps };
	struct message m;
	int r;

	scratch_message(&m, "", "bob@x", TEXT("x"));
	r = maildir_deliver(&md, &m);
	scratch_message_done(&m);
	if (step != NULL)
		*step = md.step;
	return r;
}

static int
sweep(const char *maildir)
{
	return run(scratch_path("%s", maildir), true, NULL);
}

static int
count(const char *maildir, const char *sub)
{
	return scratch_count(scratch_path("%s/%s", maildir, sub), NULL);
}

/* ---- what others left ---- */

static void
make_old(const char *name, usec_t age)
{
	const char *path = scratch_file(name, TEXT("x"));
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT },
		{ .tv_sec = (clock_wall() - age) / USEC_PER_SEC } };

	cr_assert(utimensat(AT_FDCWD, path, t, 0) == 0);
}

Test(maildir, old_files_in_tmp_are_removed, .fini = scratch_done)
{
	const usec_t hour = 3600 * USEC_PER_SEC;

	cr_assert_eq(run(scratch_path("m"), false, NULL), 0);
	make_old("m/tmp/1754000000.M000042P123Q7R0.host", 37 * hour);
	make_old("m/tmp/1754000000.M000042P123Q8R0.host", 35 * hour);
	make_old("m/tmp/old", 37 * hour);
	make_old("m/tmp/.hidden", 37 * hour);
	make_old("m/new/kept", 99 * hour);
	cr_assert(mkdir(scratch_path("m/tmp/dir"), 0700) == 0);
	cr_assert_eq(sweep("m"), 0);
	cr_expect_eq(access(scratch_path("m/tmp/"
					 "1754000000.M000042P123Q7R0.host"),
			 F_OK),
	    -1);
	cr_expect_eq(access(scratch_path("m/tmp/"
					 "1754000000.M000042P123Q8R0.host"),
			 F_OK),
	    0);
	cr_expect_eq(access(scratch_path("m/tmp/old"), F_OK), 0);
	cr_expect_eq(access(scratch_path("m/tmp/.hidden"), F_OK), 0);
	cr_expect_eq(access(scratch_path("m/tmp/dir"), F_OK), 0);
	cr_expect_eq(access(scratch_path("m/new/kept"), F_OK), 0);
}

/* mutation: deliver-local/maildir.c, is_our_name() returns true always. */
Test(maildir, only_names_of_ours_are_swept, .fini = scratch_done)
{
	static const char *const others[] = { "1754000000.P1Q0.host",
		"1754000000.M1P1Q1R1.", "1754000000.M1P1Q1R1", "M1P1Q1R1.host",
		"1754000000.M1P1Q1Rx.host", "1754000000.12_0.host", "1.2.3" };
	size_t i;

	cr_assert_eq(run(scratch_path("m"), false, NULL), 0);
	for (i = 0; i < ARRAY_LEN(others); i++) {
		char name[64];

		snprintf(name, sizeof(name), "m/tmp/%s", others[i]);
		make_old(name, 2 * MAILDIR_TMP_AGE);
	}
	cr_assert_eq(sweep("m"), 0);
	cr_expect_eq(count("m", "tmp"), (int)ARRAY_LEN(others));
}

/* ---- links ---- */

/* mutation: deliver-local/maildir.c, DIR_FLAGS without O_NOFOLLOW. */
Test(maildir, X13_no_part_of_it_may_be_a_link, .fini = scratch_done)
{
	static const char *const subs[] = { "tmp", "new", "cur" };
	size_t i;

	cr_assert_eq(run(scratch_path("alice"), false, NULL), 0);
	make_old(
	    "alice/new/1754000000.M000042P123Q7R0.host", 2 * MAILDIR_TMP_AGE);
	for (i = 0; i < ARRAY_LEN(subs); i++) {
		const char *step = "";
		char path[64];

		snprintf(path, sizeof(path), "m%zu", i);
		cr_assert_eq(run(scratch_path("%s", path), false, NULL), 0);
		cr_assert_eq(rename(scratch_path("%s/%s", path, subs[i]),
				 scratch_path("%s/away", path)),
		    0);
		cr_assert_eq(symlink(scratch_path("alice/new"),
				 scratch_path("%s/%s", path, subs[i])),
		    0);
		cr_expect_eq(
		    run(scratch_path("%s", path), false, &step), -ENOTDIR);
		cr_expect_str_eq(step, "open or make tmp, new, cur");
		cr_expect_eq(sweep(path), -ENOTDIR);
	}
	cr_expect_eq(count("alice", "new"), 2, "nothing was removed or added");
}

/* mutation: deliver-local/walk.c, follow() without is_of_root(), or
 * STEP_FLAGS without O_NOFOLLOW. */
Test(maildir, X13_nor_may_a_directory_above_it, .fini = scratch_done)
{
	const char *step = "";

	cr_assert_eq(mkdir(scratch_path("alice"), 0777), 0);
	cr_assert_eq(chmod(scratch_path("alice"), 0777), 0);
	cr_assert_eq(chmod(scratch(), 0777), 0);
	cr_assert_eq(run(scratch_path("alice/m"), false, NULL), 0);
	cr_assert_eq(symlink("alice", scratch_path("bob")), 0);
	cr_expect_eq(run(scratch_path("bob/m"), false, &step), -ELOOP);
	cr_expect_str_eq(step, "open or make the maildir");
	cr_expect_eq(run(scratch_path("bob/n"), false, NULL), -ELOOP);
	cr_assert_eq(symlink("alice/m", scratch_path("m")), 0);
	cr_expect_eq(run(scratch_path("m"), false, NULL), -ELOOP);
	cr_expect_eq(count("alice/m", "new"), 1);
	cr_expect_eq(access(scratch_path("alice/n"), F_OK), -1);
}

/* mutation: deliver-local/walk.c, is_of_root() returns false always. */
Test(maildir, a_link_of_root_in_a_directory_of_root, .fini = scratch_done)
{
	if (geteuid() != 0)
		cr_skip("needs root");
	cr_assert_eq(chmod(scratch(), 0755), 0);
	cr_assert_eq(mkdir(scratch_path("real"), 0755), 0);
	cr_assert_eq(symlink("real", scratch_path("home")), 0);
	cr_assert_eq(symlink(scratch_path("home"), scratch_path("far")), 0);
	cr_expect_eq(run(scratch_path("far/m"), false, NULL), 0);
	cr_expect_eq(run(scratch_path("home/m"), false, NULL), 0);
	cr_assert_eq(symlink("real/m", scratch_path("md")), 0);
	cr_expect_eq(run(scratch_path("md"), false, NULL), 0);
	cr_expect_eq(count("real/m", "new"), 3);
	cr_assert_eq(lchown(scratch_path("home"), 65534, 0), 0);
	cr_expect_eq(run(scratch_path("far/m"), false, NULL), -ELOOP);
	cr_assert_eq(symlink("loop", scratch_path("loop")), 0);
	cr_expect_eq(run(scratch_path("loop/m"), false, NULL), -ELOOP);
}
