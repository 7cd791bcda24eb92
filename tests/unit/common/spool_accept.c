#include "spool/accept.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "spool_scratch.h"
#include "tests/unit/descriptors.h"

/* As a reader sees it: 0, or why it is not taken. */
static int
look(const struct scratch *s, uint64_t inode)
{
	struct queue_file file;
	int fd, r;

	fd = spool_open_file(&s->sp, SPOOL_INCOMING, inode, O_RDONLY);
	if (fd < 0)
		return fd;
	r = spool_file_settled(fd);
	if (r == 0)
		r = queue_file_read(fd, &file);
	if (r == 0)
		r = queue_file_verify(fd, &file);
	close(fd);
	return r;
}

Test(accept, what_is_accepted_is_there)
{
	struct scratch s;
	struct queue_id id;
	struct stat st;
	unsigned fds;

	scratch_open(&s);
	fds = unit_descriptors();
	id = scratch_put(&s);
	cr_expect_eq(id.queue, 1u);
	cr_expect_eq(look(&s, id.inode), 0);
	cr_expect_eq(scratch_files(&s), 1u);
	cr_expect_eq(unit_descriptors(), fds, "no descriptor is left");
	cr_expect_eq(stat(scratch_path(&s, SPOOL_INCOMING, id.inode), &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600u);
	scratch_close(&s);
}

/* The calls that decide, in their order; the rest is free to change. */
static struct {
	enum fault_call call[32];
	size_t n;
} seen;

static void
note_call(enum fault_call call, void *arg UNUSED)
{
	if (call != FAULT_OPENAT && call != FAULT_CLOSE &&
	    call != FAULT_FSTATVFS && seen.n < ARRAY_LEN(seen.call))
		seen.call[seen.n++] = call;
}

/* Strict mode syncs the directory, too: what is left where the first fsync can
 * say 0 while the file system aborts. */
Test(accept, D12_D29_link_comes_before_the_one_fsync)
{
	static const enum fault_call plain[] = { FAULT_WRITE, FAULT_FLOCK,
		FAULT_LINKAT, FAULT_FSYNC };
	static const enum fault_call strict[] = { FAULT_WRITE, FAULT_FLOCK,
		FAULT_LINKAT, FAULT_FSYNC, FAULT_FSYNC };
	static const enum fault_call named[] = { FAULT_WRITE, FAULT_FLOCK,
		FAULT_RENAMEAT, FAULT_FSYNC };
	static const struct {
		const char *name;
		bool strict;
		int no_tmpfile;
		const enum fault_call *want;
		size_t n;
	} rows[] = {
		{ "usual", false, 0, plain, ARRAY_LEN(plain) },
		{ "strict", true, 0, strict, ARRAY_LEN(strict) },
		{ "no O_TMPFILE", false, EOPNOTSUPP, named, ARRAY_LEN(named) },
		{ "O_TMPFILE unknown", false, EISDIR, named, ARRAY_LEN(named) },
	};
	struct scratch s;
	size_t i;

	scratch_open(&s);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct accept_options opt = scratch_options;
		struct queue_id id;

		seen.n = 0;
		fault_reset();
		fault_watch(note_call, NULL);
		fault_no_tmpfile(rows[i].no_tmpfile);
		opt.strict = rows[i].strict;
		cr_assert_eq(scratch_accept(&s, &opt, &scratch_mail, &id), 0);
		cr_expect_eq(
		    seen.n, rows[i].n, "%s: %zu", rows[i].name, seen.n);
		cr_expect_eq(memcmp(seen.call, rows[i].want,
				 rows[i].n * sizeof(seen.call[0])),
		    0, "%s", rows[i].name);
		cr_expect_eq(look(&s, id.inode), 0);
	}
	cr_expect_eq(scratch_files(&s), ARRAY_LEN(rows));
	scratch_close(&s);
}

/* Fail every call of every kind in turn, with what it can say: refused means
 * that nothing is left, neither a name nor a descriptor, and accepted means
 * that all is there. */
static void
fail_each(struct scratch *s, const struct accept_options *opt, int no_tmpfile)
{
	static const struct {
		enum fault_call call;
		int error;
	} rows[] = {
		{ FAULT_OPENAT, EMFILE },
		{ FAULT_OPENAT, ENOSPC }, /* D2 */
		{ FAULT_OPENAT, EROFS },  /* D9 */
		{ FAULT_WRITE, ENOSPC },  /* D1 */
		{ FAULT_WRITE, EDQUOT },  /* D6 */
		{ FAULT_WRITE, EIO },     /* D7 */
		{ FAULT_LINKAT, ENOSPC }, /* D2 */
		{ FAULT_LINKAT, EEXIST },
		{ FAULT_RENAMEAT, ENOSPC },
		{ FAULT_FLOCK, ENOLCK },
		{ FAULT_FSYNC, EIO }, /* D7 */
		{ FAULT_FSYNC, ENOSPC },
		{ FAULT_FSYNC, EDQUOT },
		{ FAULT_FSTATVFS, EIO },
	};
	unsigned fds = unit_descriptors(), nth;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		for (nth = 1;; nth++) {
			struct queue_id id;
			unsigned calls;
			int r;

			fault_reset();
			fault_no_tmpfile(no_tmpfile);
			fail_nth(rows[i].call, nth, rows[i].error);
			r = scratch_accept(s, opt, &scratch_mail, &id);
			calls = fault_count(rows[i].call);
			fault_reset();
			cr_assert_eq(unit_descriptors(), fds);
			if (calls < nth) {
				cr_assert_eq(r, 0);
				cr_assert_eq(look(s, id.inode), 0);
				spool_remove(&s->sp, SPOOL_INCOMING, id.inode);
				break;
			}
			cr_assert_eq(r, -rows[i].error, "%s %u: %d",
			    fault_names[rows[i].call], nth, r);
			cr_assert_eq(scratch_files(s), 0u, "%s %u",
			    fault_names[rows[i].call], nth);
		}
	}
}

Test(accept, D1_D2_D6_D7_D9_whatever_fails_leaves_nothing)
{
	struct accept_options opt = scratch_options;
	struct scratch s;

	scratch_open(&s);
	fail_each(&s, &opt, 0);
	fail_each(&s, &opt, EOPNOTSUPP);
	opt.strict = true;
	fail_each(&s, &opt, 0);
	scratch_close(&s);
}

Test(accept, D7_fsync_error_is_not_retried)
{
	struct scratch s;
	struct queue_id id;

	scratch_open(&s);
	fail_nth(FAULT_FSYNC, 1, EIO);
	cr_expect_eq(
	    scratch_accept(&s, &scratch_options, &scratch_mail, &id), -EIO);
	cr_expect_eq(fault_count(FAULT_FSYNC), 1u);
	cr_expect_eq(fault_count(FAULT_UNLINKAT), 1u);
	cr_expect_eq(scratch_files(&s), 0u);
	scratch_close(&s);
}

/* The name goes while the lock is still held: no reader ever gets it, also not
 * behind the close that unlocks the file. */
static void
try_to_read(enum fault_call call, void *arg)
{
	struct scratch *s = arg;
	struct spool_scan scan;
	struct spool_item item;
	static bool inside;

	if (inside ||
	    (call != FAULT_LINKAT && call != FAULT_UNLINKAT &&
		call != FAULT_CLOSE))
		return;
	inside = true;
	spool_scan_begin(&scan, &s->sp, SPOOL_INCOMING);
	while (spool_scan_next(&scan, false, &item) != 0)
		cr_expect_eq(look(s, item.inode), -EAGAIN);
	spool_scan_done(&scan);
	inside = false;
}

/* mutation: common/spool/accept.c: accept_end() closes before it removes. */
Test(accept, D7_no_reader_gets_what_may_still_be_refused)
{
	struct scratch s;
	struct queue_id id;

	scratch_open(&s);
	fault_watch(try_to_read, &s);
	fail_nth(FAULT_FSYNC, 1, EIO);
	cr_expect_eq(
	    scratch_accept(&s, &scratch_options, &scratch_mail, &id), -EIO);
	cr_expect_eq(fault_count(FAULT_LINKAT), 1u);
	scratch_close(&s);
}

Test(accept, the_lock_is_held_until_the_end)
{
	struct scratch s;
	struct queue_id id;
	struct accept a;

	scratch_open(&s);
	cr_assert_eq(
	    accept_begin(&a, &s.sp, &scratch_options, clock_wall(), 0), 0);
	cr_assert_eq(scratch_files(&s), 0u, "nothing is visible");
	queue_file_add_content(&a.writer, "x", 1);
	queue_file_add_sender(&a.writer, "", 0);
	queue_file_add_rcpt(&a.writer, "b", 1);
	cr_assert_eq(accept_commit(&a, &id), 0);
	cr_expect_eq(look(&s, id.inode), -EAGAIN);
	accept_end(&a);
	cr_expect_eq(look(&s, id.inode), 0);
	accept_end(&a);
	cr_expect_eq(look(&s, id.inode), 0, "ending twice does no harm");
	scratch_close(&s);
}

Test(accept, D5_the_reserve_is_refused_before_any_work)
{
	static const struct {
		const char *name;
		struct statvfs v;
		int want;
	} rows[] = {
		{ "enough",
		    { .f_frsize = 4096,
			.f_bavail = 256,
			.f_files = 100,
			.f_favail = 10 },
		    0 },
		{ "one block too few",
		    { .f_frsize = 4096,
			.f_bavail = 255,
			.f_files = 100,
			.f_favail = 10 },
		    -ENOSPC },
		{ "one inode too few",
		    { .f_frsize = 4096,
			.f_bavail = 256,
			.f_files = 100,
			.f_favail = 9 },
		    -ENOSPC },
		{ "inodes are not counted",
		    { .f_frsize = 4096, .f_bavail = 256 }, 0 },
		{ "free space beyond 64 bits",
		    { .f_frsize = 4096, .f_bavail = ~0ul }, 0 },
		{ "D9 read-only",
		    { .f_frsize = 4096, .f_bavail = 256, .f_flag = ST_RDONLY },
		    -EROFS },
	};
	const struct accept_options opt = {
		.dir = SPOOL_INCOMING,
		.reserve.bytes = 1 << 20,
		.reserve.inodes = 10,
	};
	struct scratch s;
	size_t i;

	scratch_open(&s);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct queue_id id;

		fault_reset();
		fault_statvfs(&rows[i].v);
		cr_expect_eq(scratch_accept(&s, &opt, &scratch_mail, &id),
		    rows[i].want, "%s", rows[i].name);
		if (rows[i].want < 0)
			cr_expect_eq(fault_count(FAULT_OPENAT), 0u);
	}
	scratch_close(&s);
}

Test(accept, D10_short_writes_and_signals)
{
	static const size_t sizes[] = { 1, 7, 100 };
	struct scratch s;
	size_t i;

	scratch_open(&s);
	for (i = 0; i < ARRAY_LEN(sizes); i++) {
		struct queue_id id;

		fault_reset();
		fault_short_writes(sizes[i]);
		cr_assert_eq(
		    scratch_accept(&s, &scratch_options, &scratch_mail, &id),
		    0);
		cr_expect_gt(fault_count(FAULT_WRITE), 1u);
		cr_expect_eq(look(&s, id.inode), 0);
	}
	scratch_close(&s);
}

/* The fsync has told what a close could still tell. */
Test(accept, D11_close_after_the_fsync_has_nothing_to_say)
{
	struct scratch s;
	struct queue_id id;

	scratch_open(&s);
	fail_nth(FAULT_CLOSE, 1, EIO);
	cr_expect_eq(
	    scratch_accept(&s, &scratch_options, &scratch_mail, &id), 0);
	cr_expect_eq(look(&s, id.inode), 0);
	scratch_close(&s);
}

/* A name that is taken by what is not ours is never written over. */
Test(accept, D21_a_taken_name_is_refused)
{
	struct accept a;
	struct scratch s;
	struct queue_id id;
	struct stat st;
	char path[256];

	scratch_open(&s);
	cr_assert_eq(
	    accept_begin(&a, &s.sp, &scratch_options, clock_wall(), 0), 0);
	cr_assert_eq(fstat(a.fd, &st), 0);
	snprintf(path, sizeof(path), "%s",
	    scratch_path(&s, SPOOL_INCOMING, st.st_ino));
	scratch_spill(path, "restored from a backup");
	queue_file_add_sender(&a.writer, "", 0);
	queue_file_add_rcpt(&a.writer, "b", 1);
	cr_expect_eq(accept_commit(&a, &id), -EEXIST);
	accept_end(&a);
	cr_expect_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_size, 22, "as it was");
	scratch_close(&s);
}

Test(accept, T3_the_clock_is_taken_as_it_is)
{
	static const struct {
		usec_t now, want;
	} rows[] = {
		{ INT64_MIN, 0 },
		{ -1, 0 },
		{ 0, 0 },
		{ QUEUE_ID_ARRIVAL_MAX, QUEUE_ID_ARRIVAL_MAX },
		{ INT64_MAX, QUEUE_ID_ARRIVAL_MAX },
	};
	struct scratch s;
	size_t i;

	scratch_open(&s);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct accept a;

		cr_assert_eq(
		    accept_begin(&a, &s.sp, &scratch_options, rows[i].now, 0),
		    0);
		cr_expect_eq(a.writer.file.arrival_wall, rows[i].want);
		accept_end(&a);
	}
	scratch_close(&s);
}

/* What a killed writer leaves where there is no O_TMPFILE. */
/* noatime, relatime and a backup that reads all leave any access time. */
Test(accept, D27_access_times_decide_nothing)
{
	const struct timespec ages[2] = { { .tv_sec = 1 },
		{ .tv_nsec = UTIME_OMIT } };
	struct scratch s;
	struct spool_scan scan;
	struct spool_item item;
	struct accept a;

	scratch_open(&s);
	fault_no_tmpfile(EOPNOTSUPP);
	cr_assert_eq(
	    accept_begin(&a, &s.sp, &scratch_options, clock_wall(), 0), 0);
	cr_assert_eq(futimens(a.fd, ages), 0);
	spool_scan_begin(&scan, &s.sp, SPOOL_INCOMING);
	cr_expect_eq(spool_scan_next(&scan, true, &item), 0);
	spool_scan_done(&scan);
	cr_expect_eq(scratch_files(&s), 1u, "read long ago, written now");
	accept_end(&a);
	scratch_close(&s);
}

Test(accept, temporary_names_are_swept_when_old)
{
	const struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct scratch s;
	struct spool_scan scan;
	struct spool_item item;
	struct accept a, b;

	scratch_open(&s);
	fault_no_tmpfile(EOPNOTSUPP);
	cr_assert_eq(
	    accept_begin(&a, &s.sp, &scratch_options, clock_wall(), 0), 0);
	cr_assert_eq(
	    accept_begin(&b, &s.sp, &scratch_options, clock_wall(), 0), 0);
	cr_assert_eq(futimens(a.fd, old), 0);
	cr_assert_eq(scratch_files(&s), 2u);
	spool_scan_begin(&scan, &s.sp, SPOOL_INCOMING);
	cr_expect_eq(spool_scan_next(&scan, true, &item), 0, "never shown");
	spool_scan_done(&scan);
	cr_expect_eq(scratch_files(&s), 1u, "the old one is gone");
	accept_end(&a);
	accept_end(&b);
	cr_expect_eq(scratch_files(&s), 0u);
	scratch_close(&s);
}
