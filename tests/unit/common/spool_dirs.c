#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "spool/reason.h"
#include "spool_scratch.h"

Test(spool, paths)
{
	struct scratch s;
	char path[SPOOL_PATH_MAX];

	scratch_open(&s);
	spool_path(&s.sp, SPOOL_INCOMING, 4711, path, sizeof(path));
	cr_expect_str_eq(path, "incoming/1/4711");
	spool_path(&s.sp, SPOOL_HOLD, UINT64_MAX, path, sizeof(path));
	cr_expect_str_eq(path, "hold/18446744073709551615");
	spool_leaf(&s.sp, SPOOL_DEFERRED, UINT64_MAX, path, sizeof(path));
	cr_expect_str_eq(path, "0/18446744073709551615");
	scratch_close(&s);
}

Test(spool, moves)
{
	static const enum spool_dir road[] = { SPOOL_INCOMING, SPOOL_ACTIVE,
		SPOOL_DEFERRED, SPOOL_ACTIVE, SPOOL_INCOMING, SPOOL_HOLD,
		SPOOL_CORRUPT };
	struct scratch s;
	struct queue_id id;
	size_t i;

	scratch_open(&s);
	id = scratch_put(&s);
	for (i = 1; i < ARRAY_LEN(road); i++) {
		cr_assert_eq(
		    spool_move(&s.sp, road[i - 1], road[i], id.inode), 0);
		cr_expect_eq(
		    access(scratch_path(&s, road[i], id.inode), F_OK), 0);
		cr_expect_eq(
		    spool_move(&s.sp, road[i - 1], road[i], id.inode), -ENOENT);
	}
	cr_expect_eq(scratch_files(&s), 1u);
	cr_expect_eq(spool_remove(&s.sp, SPOOL_CORRUPT, id.inode), 0);
	cr_expect_eq(spool_remove(&s.sp, SPOOL_CORRUPT, id.inode), -ENOENT);
	scratch_close(&s);
}

Test(spool, D21_a_move_never_writes_over_a_file)
{
	struct scratch s;
	struct queue_id id;

	scratch_open(&s);
	id = scratch_put(&s);
	scratch_spill(scratch_path(&s, SPOOL_ACTIVE, id.inode), "other");
	cr_expect_eq(
	    spool_move(&s.sp, SPOOL_INCOMING, SPOOL_ACTIVE, id.inode), -EEXIST);
	cr_expect_eq(scratch_files(&s), 2u);
	fail_nth(FAULT_RENAMEAT, 1, EROFS);
	cr_expect_eq(
	    spool_move(&s.sp, SPOOL_INCOMING, SPOOL_DEFERRED, id.inode),
	    -EROFS);
	scratch_close(&s);
}

Test(spool, D17_foreign_names_go_to_corrupt)
{
	static const struct {
		const char *name, *want;
	} rows[] = {
		{ "core", "core" },
		{ "core", "core.1" },
		{ "core", "core.2" },
		{ ".hidden", "_hidden" },
		{ "...", "_.." },
		{ "a b\n;$(id)\x1b[2J", "a_b____id___2J" },
		{ "\xc3\xa4", "__" },
	};
	struct scratch s;
	char path[512];
	size_t i;

	scratch_open(&s);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(path, sizeof(path), "%s/incoming/2/%s", s.sp.path,
		    rows[i].name);
		scratch_spill(path, "");
		cr_assert_eq(
		    spool_move_corrupt(&s.sp, SPOOL_INCOMING, 2, rows[i].name),
		    0);
		snprintf(path, sizeof(path), "%s/corrupt/%s", s.sp.path,
		    rows[i].want);
		cr_expect_eq(access(path, F_OK), 0, "%s", path);
	}
	/* A directory, and from one that is not split. */
	snprintf(path, sizeof(path), "%s/gate/maildrop/core", s.sp.path);
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_expect_eq(spool_move_corrupt(&s.sp, SPOOL_MAILDROP, 0, "core"), 0);
	cr_expect_eq(
	    spool_move_corrupt(&s.sp, SPOOL_MAILDROP, 0, "gone"), -ENOENT);
	cr_expect_eq(
	    spool_move_corrupt(&s.sp, SPOOL_MAILDROP, 0, "../queue"), -EINVAL);
	scratch_close(&s);
}

Test(spool, D17_the_longest_name)
{
	struct scratch s;
	char path[512], name[256];

	scratch_open(&s);
	memset(name, 'n', 255);
	name[255] = '\0';
	snprintf(path, sizeof(path), "%s/incoming/1/%s", s.sp.path, name);
	scratch_spill(path, "");
	cr_expect_eq(spool_move_corrupt(&s.sp, SPOOL_INCOMING, 1, name), 0);
	scratch_spill(path, "");
	cr_expect_eq(spool_move_corrupt(&s.sp, SPOOL_INCOMING, 1, name), 0);
	cr_expect_eq(scratch_files(&s), 2u);
	scratch_close(&s);
}

Test(spool, D17_a_scan_tells_what_is_foreign)
{
	static const struct {
		const char *path;
		uint64_t inode;
		int seen;
	} rows[] = {
		{ "incoming/0/6", 6, 1 }, { "incoming/1/7", 7, 1 },
		{ "incoming/2/7", 0, 1 }, /* in the wrong place */
		{ "incoming/2/core", 0, 1 }, { "incoming/2/tmp.12.0000", 0, 0 },
		{ "incoming/8", 8, 0 }, /* not in a subdirectory */
	};
	unsigned found[ARRAY_LEN(rows)] = { 0 };
	struct spool_scan scan;
	struct spool_item item;
	struct scratch s;
	char path[512];
	size_t i;
	int r;

	scratch_open(&s);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(path, sizeof(path), "%s/%s", s.sp.path, rows[i].path);
		scratch_spill(path, "12345");
	}
	spool_scan_begin(&scan, &s.sp, SPOOL_INCOMING);
	while ((r = spool_scan_next(&scan, true, &item)) > 0) {
		snprintf(path, sizeof(path), "incoming/%u/%s", item.split,
		    item.name);
		cr_expect_eq(item.size, 5u);
		cr_expect_gt(item.mtime_wall, 0);
		for (i = 0; i < ARRAY_LEN(rows); i++) {
			if (strcmp(rows[i].path, path) != 0)
				continue;
			found[i]++;
			cr_expect_eq(item.inode, rows[i].inode, "%s", path);
		}
	}
	cr_expect_eq(r, 0);
	cr_expect_eq(spool_scan_next(&scan, true, &item), 0, "stays so");
	spool_scan_done(&scan);
	for (i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq((int)found[i], rows[i].seen, "%s", rows[i].path);
	scratch_close(&s);
}

/* mutation: common/spool/spool_scan.c: temp_since() is mtime(). */
Test(spool, D17_D43_a_scan_sweeps_what_is_old_but_no_name_that_is_looked_at)
{
	static const struct timespec then[2] = { { 1000, 0 }, { 1000, 0 } };
	static const char *const names[] = { "tmp.lost.6", "tmp.6" };
	struct spool_scan scan;
	struct spool_item item;
	char path[2][512];
	struct scratch s;
	int i;

	scratch_open(&s);
	for (i = 0; i < 2; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/bounce/0/%s", s.sp.path,
		    names[i]);
		scratch_spill(path[i], "");
		cr_assert_eq(utimensat(AT_FDCWD, path[i], then, 0), 0);
	}
	spool_scan_begin(&scan, &s.sp, SPOOL_BOUNCE);
	cr_expect_eq(spool_scan_next(&scan, false, &item), 0);
	spool_scan_done(&scan);
	cr_expect_eq(access(path[0], F_OK), 0, "it was renamed a moment ago");
	cr_expect_eq(access(path[1], F_OK), -1);
	scratch_close(&s);
}

Test(spool, a_scan_goes_on_behind_what_it_cannot_read)
{
	struct spool_scan scan;
	struct spool_item item;
	struct scratch s;
	unsigned items = 0, errors = 0, hidden = 0;
	uint64_t split[12];
	int i, r;

	scratch_open(&s);
	for (i = 0; i < 12; i++) {
		split[i] = scratch_put(&s).inode % s.sp.split;
		hidden += split[i] == split[0];
	}
	fail_nth(FAULT_OPENAT, (unsigned)split[0] + 1, EIO);
	spool_scan_begin(&scan, &s.sp, SPOOL_INCOMING);
	while ((r = spool_scan_next(&scan, false, &item)) != 0) {
		items += r > 0;
		errors += r == -EIO;
	}
	spool_scan_done(&scan);
	cr_expect_eq(errors, 1u);
	cr_expect_eq(items, 12 - hidden);
	spool_scan_begin(&scan, &s.sp, SPOOL_LOCK);
	cr_expect_eq(spool_scan_next(&scan, false, &item), 0, "empty");
	spool_scan_done(&scan);
	scratch_close(&s);
}

Test(spool, the_due_time_is_kept)
{
	static const usec_t rows[] = { 0, 1, 1700000000123456,
		4000000000 * USEC_PER_SEC };
	struct spool_scan scan;
	struct spool_item item;
	struct scratch s;
	struct queue_id id;
	size_t i;

	scratch_open(&s);
	id = scratch_put(&s);
	cr_assert_eq(
	    spool_move(&s.sp, SPOOL_INCOMING, SPOOL_DEFERRED, id.inode), 0);
	for (i = 0; i <= ARRAY_LEN(rows); i++) {
		spool_scan_begin(&scan, &s.sp, SPOOL_DEFERRED);
		cr_assert_eq(spool_scan_next(&scan, true, &item), 1);
		spool_scan_done(&scan);
		cr_expect_eq(item.inode, id.inode);
		cr_expect_gt(item.size, 0u);
		if (i == 0) /* without one it is when the file was written */
			cr_expect(item.mtime_wall > 1700000000123456 &&
			    item.mtime_wall <= clock_wall());
		else
			cr_expect_eq(item.mtime_wall, rows[i - 1]);
		if (i < ARRAY_LEN(rows))
			cr_assert_eq(
			    spool_set_due(&s.sp, id.inode, rows[i]), 0);
	}
	fail_nth(FAULT_UTIMENSAT, 1, EROFS);
	cr_expect_eq(spool_set_due(&s.sp, id.inode, 1), -EROFS);
	cr_assert_eq(spool_remove(&s.sp, SPOOL_DEFER, id.inode), 0);
	fail_nth(FAULT_OPENAT, 1, ENOSPC);
	cr_expect_eq(spool_set_due(&s.sp, id.inode, 1), -ENOSPC);
	scratch_close(&s);
}

static int
in_child(int (*body)(struct scratch *s), struct scratch *s)
{
	int status;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0)
		_exit(body(s));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int
try_lock(struct scratch *s)
{
	int fd = spool_lock(&s->sp, "one", false);

	return fd == -EAGAIN ? 1 : fd < 0 ? 2 : 0;
}

Test(spool, a_lock_has_one_owner)
{
	struct scratch s;
	struct stat st;
	int fd, again;

	scratch_open(&s);
	fd = spool_lock(&s.sp, "one", false);
	cr_assert_geq(fd, 0);
	cr_expect_eq(in_child(try_lock, &s), 1, "held by another process");
	cr_expect_eq(spool_lock(&s.sp, "one", false), -EAGAIN,
	    "not by the process, by the descriptor");
	again = spool_lock(&s.sp, "two", true);
	cr_expect_geq(again, 0);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600u, "X13");
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	cr_expect_eq(in_child(try_lock, &s), 0, "gone with the descriptor");
	close(again);
	scratch_close(&s);
}
