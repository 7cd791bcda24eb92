#include "deliver-local/child.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "scratch.h"

#define TEXT(s) (s), sizeof(s) - 1

/* ---- the seam: the nth call of a kind fails, and all are written down ---- */

enum call {
	CALL_OPENAT,
	CALL_WRITE,
	CALL_LINKAT,
	CALL_RENAMEAT,
	CALL_UNLINKAT,
	CALL_FSYNC,
	CALL_CLOSE,
	NCALLS,
};

static struct {
	enum call call;
	int nth; /* 0: none fails */
	int error;
	int seen[NCALLS];
	int after; /* calls of the kind that failed, after it did */
	bool no_unnamed;
	size_t write_max; /* 0: all */
	bool interrupt;   /* every second write: EINTR */
	char trace[4096];
} fault;

static int
fails(enum call call, char mark)
{
	size_t used = strlen(fault.trace);

	if (used + 1 < sizeof(fault.trace))
		fault.trace[used] = mark;
	fault.seen[call]++;
	if (fault.nth > 0 && call == fault.call && fault.seen[call] > fault.nth)
		fault.after++;
	if (fault.nth == 0 || call != fault.call ||
	    fault.seen[call] != fault.nth)
		return 0;
	errno = fault.error;
	return 1;
}

static int
seam_openat(int dir, const char *name, int flags, mode_t mode)
{
	if (fault.no_unnamed && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return fails(CALL_OPENAT, 'o') ? -1 : openat(dir, name, flags, mode);
}

static ssize_t
seam_write(int fd, const void *data, size_t len)
{
	if (fails(CALL_WRITE, 'w'))
		return -1;
	if (fault.interrupt && fault.seen[CALL_WRITE] % 2 == 0) {
		errno = EINTR;
		return -1;
	}
	if (fault.write_max > 0 && len > fault.write_max)
		len = fault.write_max;
	return write(fd, data, len);
}

static int
seam_linkat(
    int olddir, const char *old, int newdir, const char *name, int flags)
{
	return fails(CALL_LINKAT, 'l')
	    ? -1
	    : linkat(olddir, old, newdir, name, flags);
}

static int
seam_renameat(int olddir, const char *old, int newdir, const char *name)
{
	return fails(CALL_RENAMEAT, 'r') ? -1
					 : renameat(olddir, old, newdir, name);
}

static int
seam_unlinkat(int dir, const char *name, int flags)
{
	return fails(CALL_UNLINKAT, 'u') ? -1 : unlinkat(dir, name, flags);
}

/* f a file, d a directory */
static int
seam_fsync(int fd)
{
	struct stat st;

	cr_assert(fstat(fd, &st) == 0);
	return fails(CALL_FSYNC, S_ISDIR(st.st_mode) ? 'd' : 'f') ? -1
								  : fsync(fd);
}

static int
seam_close(int fd)
{
	int failed = fails(CALL_CLOSE, 'c');

	close(fd);
	return failed ? -1 : 0;
}

static const struct spool_sys seam = {
	.openat = seam_openat,
	.write = seam_write,
	.linkat = seam_linkat,
	.renameat = seam_renameat,
	.unlinkat = seam_unlinkat,
	.fsync = seam_fsync,
	.close = seam_close,
	.fstatvfs = fstatvfs,
};

static uint64_t deliveries;

static int
deliver(const char *path, const void *content, size_t len, const char **step)
{
	struct put md = { .sys = &seam,
		.path = path,
		.host = "a/b:c",
		.delivery = deliveries++ };
	struct message m;
	int r;

	scratch_message(&m, "s@x", "bob@x", content, len);
	r = maildir_deliver(&md, &m);
	scratch_message_done(&m);
	if (step != NULL)
		*step = md.step;
	return r;
}

static int
count(const char *maildir, const char *sub)
{
	return scratch_count(scratch_path("%s/%s", maildir, sub), NULL);
}

/* ---- what is delivered ---- */

static const struct {
	const char *name;
	const char *content;
	size_t len;
} shapes[] = {
	{ "empty", TEXT("") },
	{ "header only", TEXT("Subject: x\n") },
	{ "header without end", TEXT("Subject: x") },
	{ "no header", TEXT("\nbody\n") },
	{ "continuation first", TEXT(" folded\nSubject: x\n\nbody\n") },
	{ "NULs", TEXT("A: b\n\n\0\0\0x\0") },
	{ "bare CR", TEXT("A: b\n\none\rtwo\r") },
	{ "CRLF", TEXT("A: b\r\n\r\nbody\r\n") },
	{ "mixed line ends", TEXT("A: b\r\nC: d\n\r\nbody\n\r\n") },
	{ "8-bit", TEXT("A: \xe4\xff\n\n\x80\xfe\n") },
	{ "no final newline", TEXT("A: b\n\nbody") },
	{ "dots", TEXT("A: b\n\n.\n..\n.\r\n") },
	{ "From line", TEXT("From x\n\nFrom y\n") },
	{ "C4 what a shell or printf would like",
	    TEXT("A: %n%s `id` $(id) ; | & \\\n\n%s") },
	{ "Return-Path of the sender's own",
	    TEXT("Return-Path: <evil@x>\n\nx\n") },
};

Test(maildir, C1_delivered_byte_exact, .fini = scratch_done)
{
	struct buf got = { 0 }, want = { 0 };
	const struct message head = { .sender = "s@x", .recipient = "bob@x" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(shapes); i++) {
		const char *md = scratch_path("m%zu", i);
		char name[256];

		cr_assert_eq(
		    deliver(md, shapes[i].content, shapes[i].len, NULL), 0,
		    "%s", shapes[i].name);
		cr_assert_eq(
		    scratch_count(scratch_path("m%zu/new", i), name), 1);
		scratch_read(scratch_path("m%zu/new/%s", i, name), &got);
		scratch_whole(&head, shapes[i].content, shapes[i].len, &want);
		cr_expect_eq(got.len, want.len, "%s", shapes[i].name);
		cr_expect_eq(memcmp(got.data, want.data, want.len), 0, "%s",
		    shapes[i].name);
	}
	buf_done(&got);
	buf_done(&want);
}

Test(maildir, C2_large_in_bounded_memory, .fini = scratch_done)
{
	size_t len = 3u << 20, i;
	char *content = malloc(len);
	struct buf got = { 0 }, want = { 0 };
	const struct message head = { .sender = "s@x", .recipient = "bob@x" };
	char name[256];

	for (i = 0; i < len; i++)
		content[i] = (char)(i * 31 >> 3);
	cr_assert_eq(deliver(scratch_path("m"), content, len, NULL), 0);
	scratch_count(scratch_path("m/new"), name);
	scratch_read(scratch_path("m/new/%s", name), &got);
	scratch_whole(&head, content, len, &want);
	cr_assert_eq(got.len, want.len);
	cr_expect_eq(memcmp(got.data, want.data, want.len), 0);
	buf_done(&got);
	buf_done(&want);
	free(content);
}

static void
expect_mode(const char *path, mode_t mode)
{
	struct stat st;

	cr_assert(lstat(path, &st) == 0, "%s", path);
	cr_expect_eq(
	    st.st_mode & 07777, mode, "%s %o", path, (unsigned)st.st_mode);
}

Test(maildir, made_where_its_parent_is, .fini = scratch_done)
{
	char name[256];
	const char *step = "";

	umask(0);
	cr_assert_eq(deliver(scratch_path("m"), TEXT("x"), NULL), 0);
	expect_mode(scratch_path("m"), 0700);
	expect_mode(scratch_path("m/tmp"), 0700);
	expect_mode(scratch_path("m/new"), 0700);
	expect_mode(scratch_path("m/cur"), 0700);
	scratch_count(scratch_path("m/new"), name);
	expect_mode(scratch_path("m/new/%s", name), 0600);
	cr_expect_null(strpbrk(name, "/:"), "%s", name);
	cr_expect_eq(
	    deliver(scratch_path("none/m"), TEXT("x"), &step), -ENOENT);
	cr_expect_str_eq(step, "open or make the maildir");
	cr_expect_eq(access(scratch_path("none"), F_OK), -1);
}

Test(maildir, made_whole_when_parts_are_missing, .fini = scratch_done)
{
	cr_assert(mkdir(scratch_path("m"), 0700) == 0);
	cr_assert(mkdir(scratch_path("m/cur"), 0700) == 0);
	cr_assert_eq(deliver(scratch_path("m"), TEXT("x"), NULL), 0);
	cr_expect_eq(count("m", "new"), 1);
	cr_expect_eq(count("m", "tmp"), 0);
}

Test(maildir, a_name_that_is_no_directory, .fini = scratch_done)
{
	scratch_file("file", TEXT("x"));
	cr_assert(mkfifo(scratch_path("fifo"), 0600) == 0);
	cr_expect_eq(deliver(scratch_path("file"), TEXT("x"), NULL), -ENOTDIR);
	cr_expect_eq(deliver(scratch_path("fifo"), TEXT("x"), NULL), -ENOTDIR);
	cr_assert(symlink("loop", scratch_path("loop")) == 0);
	cr_expect_eq(deliver(scratch_path("loop"), TEXT("x"), NULL), -ELOOP);
}

Test(maildir, names_are_never_used_twice, .fini = scratch_done)
{
	int i;

	for (i = 0; i < 200; i++) {
		deliveries = 7;
		cr_assert_eq(deliver(scratch_path("m"), TEXT("x"), NULL), 0);
	}
	cr_expect_eq(count("m", "new"), 200);
}

/* ---- order and faults ---- */

Test(maildir, D12_content_then_name_then_directory, .fini = scratch_done)
{
	cr_assert_eq(deliver(scratch_path("m"), TEXT("x"), NULL), 0);
	memset(&fault, 0, sizeof(fault));
	cr_assert_eq(deliver(scratch_path("m"), TEXT("x"), NULL), 0);
	cr_expect_str_eq(fault.trace, "oooowfldc", "%s", fault.trace);
	memset(&fault, 0, sizeof(fault));
	fault.no_unnamed = true;
	cr_assert_eq(deliver(scratch_path("m"), TEXT("x"), NULL), 0);
	cr_expect_str_eq(fault.trace, "oooowfrdc", "%s", fault.trace);
	cr_expect_eq(count("m", "tmp"), 0);
	cr_expect_eq(count("m", "new"), 3);
}

/* A new maildir is synced too, and its parent. */
Test(maildir, D12_a_new_maildir_is_durable, .fini = scratch_done)
{
	cr_assert_eq(deliver(scratch_path("m"), TEXT("x"), NULL), 0);
	cr_expect_str_eq(fault.trace,
	    "oooooooo"
	    "dod"
	    "owfldc",
	    "%s", fault.trace);
}

/* Every call in turn fails: an error comes back, nothing stays, and nothing
 * that failed is done again. */
static void
fail_each(enum call call, int error, bool no_unnamed)
{
	int nth, r = -1;

	for (nth = 1; nth < 20; nth++) {
		const char *step = "";

		memset(&fault, 0, sizeof(fault));
		fault.call = call;
		fault.nth = nth;
		fault.error = error;
		fault.no_unnamed = no_unnamed;
		r = deliver(scratch_path("m"), TEXT("body"), &step);
		if (r == 0)
			break;
		cr_expect_eq(r, -error, "call %d of %d: %d", nth, call, r);
		cr_expect_str_neq(step, "deliver");
		cr_expect_eq(count("m", "new"), 0, "call %d of %d", nth, call);
		cr_expect_eq(count("m", "tmp"), 0, "call %d of %d", nth, call);
		if (call == CALL_FSYNC)
			cr_expect_eq(fault.after, 0, "D7: synced again");
	}
	cr_expect_eq(r, 0, "the first call that is not made does not fail");
	cr_expect_gt(nth, 1, "calls of kind %d are made", call);
}

static void
clear(void)
{
	char name[256];

	while (scratch_count(scratch_path("m/new"), name) > 0)
		unlink(scratch_path("m/new/%s", name));
}

static const struct {
	enum call call;
	int error;
	bool no_unnamed;
} faults[] = {
	{ CALL_OPENAT, EMFILE, false },
	{ CALL_OPENAT, ENOSPC, true },
	{ CALL_WRITE, ENOSPC, false },
	{ CALL_WRITE, EDQUOT, true },
	{ CALL_WRITE, EIO, false },
	{ CALL_FSYNC, EIO, false },
	{ CALL_FSYNC, EIO, true },
	{ CALL_LINKAT, ENOSPC, false },
	{ CALL_RENAMEAT, EIO, true },
	{ CALL_CLOSE, EIO, false },
	{ CALL_CLOSE, EDQUOT, true },
};

Test(maildir, D1_D2_D6_D7_D11_a_fault_leaves_nothing, .fini = scratch_done)
{
	size_t i;

	cr_assert_eq(deliver(scratch_path("m"), TEXT("x"), NULL), 0);
	for (i = 0; i < ARRAY_LEN(faults); i++) {
		clear();
		fail_each(
		    faults[i].call, faults[i].error, faults[i].no_unnamed);
	}
}

/* The time is over at the first step after the content was synced. */
static int
late_when_synced(void *arg UNUSED)
{
	return fault.seen[CALL_FSYNC] > 0 ? -ETIMEDOUT : 0;
}

/* A name that is taken back may have been read meanwhile, and the message
 * comes again. */
Test(maildir, X12_one_that_is_late_gets_no_name, .fini = scratch_done)
{
	const char *path = scratch_path("m");
	struct put md = { .sys = &seam,
		.path = path,
		.host = "a",
		.progress = late_when_synced };
	struct message m;
	int named;

	cr_assert_eq(deliver(path, TEXT("x"), NULL), 0);
	for (named = 0; named < 2; named++) {
		memset(&fault, 0, sizeof(fault));
		fault.no_unnamed = named != 0;
		scratch_message(&m, "s@x", "bob@x", TEXT("x"));
		cr_expect_eq(maildir_deliver(&md, &m), -ETIMEDOUT);
		scratch_message_done(&m);
		cr_expect_eq(fault.seen[CALL_LINKAT], 0);
		cr_expect_eq(fault.seen[CALL_RENAMEAT], 0);
		cr_expect_eq(count("m", "new"), 1);
		cr_expect_eq(count("m", "tmp"), 0);
	}
}

Test(maildir, D10_short_and_interrupted_writes, .fini = scratch_done)
{
	struct buf got = { 0 }, want = { 0 };
	const struct message head = { .sender = "s@x", .recipient = "bob@x" };
	char name[256];

	fault.write_max = 3;
	fault.interrupt = true;
	cr_assert_eq(
	    deliver(scratch_path("m"), TEXT("Subject: x\n\nbody"), NULL), 0);
	scratch_count(scratch_path("m/new"), name);
	scratch_read(scratch_path("m/new/%s", name), &got);
	scratch_whole(&head, TEXT("Subject: x\n\nbody"), &want);
	cr_assert_eq(got.len, want.len);
	cr_expect_eq(memcmp(got.data, want.data, want.len), 0);
	buf_done(&got);
	buf_done(&want);
}

Test(maildir, a_name_that_is_taken_is_not_replaced, .fini = scratch_done)
{
	cr_assert_eq(deliver(scratch_path("m"), TEXT("x"), NULL), 0);
	fault.call = CALL_LINKAT;
	fault.nth = fault.seen[CALL_LINKAT] + 1;
	fault.error = EEXIST;
	cr_assert_eq(deliver(scratch_path("m"), TEXT("y"), NULL), 0);
	cr_expect_eq(fault.after, 1, "tried again under another name");
	cr_expect_eq(count("m", "new"), 2);
}

/* A directory that cannot be synced at all is no failure. */
Test(maildir, a_file_system_without_directory_sync, .fini = scratch_done)
{
	cr_assert_eq(deliver(scratch_path("m"), TEXT("x"), NULL), 0);
	memset(&fault, 0, sizeof(fault));
	fault.call = CALL_FSYNC;
	fault.nth = 2;
	fault.error = EINVAL;
	cr_expect_eq(deliver(scratch_path("m"), TEXT("y"), NULL), 0);
	cr_expect_eq(count("m", "new"), 2);
}

Test(maildir, D8_a_message_that_cannot_be_read, .fini = scratch_done)
{
	struct put md = {
		.sys = &seam, .path = scratch_path("m"), .host = "h"
	};
	struct message m;

	scratch_message(&m, "", "bob@x", TEXT("x"));
	m.len = 1000;
	cr_expect_eq(maildir_deliver(&md, &m), -EIO);
	cr_expect_str_eq(md.step, "read the message");
	cr_expect_eq(count("m", "new"), 0);
	cr_expect_eq(count("m", "tmp"), 0);
	scratch_message_done(&m);
}

Test(maildir, a_real_limit_of_the_file_size, .fini = scratch_done)
{
	const struct rlimit limit = { 1000, RLIM_INFINITY };
	static char content[5000];
	struct put md = {
		.sys = &spool_sys_real, .path = scratch_path("m"), .host = "h"
	};
	struct message m;

	signal(SIGXFSZ, SIG_IGN);
	scratch_message(&m, "", "bob@x", content, sizeof(content));
	cr_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	cr_expect_eq(maildir_deliver(&md, &m), -EFBIG);
	cr_expect_str_eq(md.step, "write");
	cr_expect_eq(count("m", "new"), 0);
	scratch_message_done(&m);
}
