/* What becomes of a message when a queue, or a call of the spool, fails. */
#include "scratch.h"

#include "queue-inject/inject.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static int
inject(const struct scratch *s, struct run *run)
{
	return scratch_exit(
	    s, run, ARGS("sendmail", "-i", "a@b"), "Subject: x\n\nbody\n");
}

static void
remove_marker(const struct scratch *s, uint32_t queue)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/queue%u/queue", s->base, queue);
	cr_assert_eq(unlink(path), 0);
}

Test(faults, D19_a_queue_that_is_not_there_is_passed_over)
{
	struct stored m = { 0 };
	struct scratch s;
	struct run run;
	int i;

	scratch_new(&s, 3, NULL);
	remove_marker(&s, 1);
	remove_marker(&s, 3);
	for (i = 0; i < 12; i++) {
		if (i == 6)
			scratch_pages(&s, QUEUE_STATE_OPEN, 0);
		cr_expect_eq(inject(&s, &run), 0, "%s", run.err);
		cr_expect_eq(scratch_stored(&s, &m), 1);
		cr_expect_eq(m.queue, 2);
		scratch_empty(&s);
	}
	remove_marker(&s, 2);
	cr_expect_eq(inject(&s, &run), 75);
	cr_expect_not_null(strstr(run.err, "queue"), "%s", run.err);
	stored_done(&m);
	scratch_done(&s);
}

static void
write_marker(const struct scratch *s, uint32_t queue, const char *text)
{
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "%s/queue%u/queue", s->base, queue);
	f = fopen(path, "w");
	cr_assert_not_null(f);
	fputs(text, f);
	cr_assert_eq(fclose(f), 0);
}

/* mutation: common/spool/marker.c: judge_version() takes any version. */
Test(faults, P20_a_queue_of_another_layout_takes_no_mail)
{
	static const char *const older = "qscheduler queue 0 split 3\n",
				 *const newer = "qscheduler queue 2 split 3\n";
	struct stored m = { 0 };
	struct scratch s;
	struct run run;
	int i;

	scratch_new(&s, 3, NULL);
	write_marker(&s, 1, older);
	write_marker(&s, 3, newer);
	for (i = 0; i < 6; i++) {
		cr_expect_eq(inject(&s, &run), 0, "%s", run.err);
		cr_expect_eq(scratch_stored(&s, &m), 1);
		cr_expect_eq(m.queue, 2);
		scratch_empty(&s);
	}
	write_marker(&s, 2, newer);
	cr_expect_eq(inject(&s, &run), 75);
	cr_expect_not_null(
	    strstr(run.err, ", this program reads version 1; nothing"), "%s",
	    run.err);
	stored_done(&m);
	scratch_done(&s);
}

/* The seam: calls of one kind fail the first `times` times. */
static struct {
	int error, times;
	int fsyncs, writes;
	struct spool_sys sys;
} fault;

static bool
fails(void)
{
	if (fault.times-- <= 0)
		return false;
	errno = fault.error;
	return true;
}

static int
bad_openat(int dir, const char *name, int flags, mode_t mode)
{
	if ((flags & O_ACCMODE) != O_RDONLY && fails())
		return -1;
	return spool_sys_real.openat(dir, name, flags, mode);
}

static ssize_t
bad_write(int fd, const void *data, size_t len)
{
	fault.writes++;
	if (fails())
		return -1;
	return spool_sys_real.write(fd, data, len);
}

static ssize_t
short_write(int fd, const void *data, size_t len)
{
	fault.writes++;
	return spool_sys_real.write(fd, data, len > 7 ? 7 : len);
}

static int
bad_linkat(int olddir, const char *old, int newdir, const char *name, int flags)
{
	if (fails())
		return -1;
	return spool_sys_real.linkat(olddir, old, newdir, name, flags);
}

static int
bad_fsync(int fd)
{
	fault.fsyncs++;
	if (fails())
		return -1;
	return spool_sys_real.fsync(fd);
}

static int
full_fstatvfs(int fd, struct statvfs *out)
{
	if (spool_sys_real.fstatvfs(fd, out) < 0)
		return -1;
	if (fault.times-- > 0)
		out->f_favail = 0;
	return 0;
}

static const struct face face = {
	.name = "test", .prepare = mail_prepare, .content = mail_content
};

struct outcome {
	int result;
	enum refusal_kind kind;
	char text[768];
};

static struct outcome
run_job(const struct scratch *s, size_t body_len)
{
	static char rcpt[] = "a@b";
	static char *const rcpts[] = { rcpt };
	struct inject inject = { .face = &face,
		.sys = &fault.sys,
		.stop_fd = -1,
		.deadline_mono = clock_mono() + 60 * USEC_PER_SEC,
		.options = { .rcpts = rcpts, .nrcpts = 1, .ignore_dot = true },
		.eol = "\n" };
	struct buf error = { 0 };
	struct queue_id id;
	struct outcome o;
	int fd = memfd_create("input", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, (off_t)body_len), 0);
	cr_assert_eq(pwrite(fd, "Subject: x\n\nbody\n", 17, 0), 17);
	cr_assert_geq(dup2(fd, 0), 0);
	close(fd);
	cr_assert_eq(
	    conf_load(s->conf, &inject.conf, &error), 0, "%s", buf_str(&error));
	o.result = inject_run(&inject, &id);
	o.kind = inject.why.kind;
	memcpy(o.text, inject.why.text, sizeof(o.text));
	inject_done(&inject);
	return o;
}

struct fault_case {
	const char *name;
	size_t offset; /* of the call in struct spool_sys */
	void (*call)(void);
	int error, times;
	enum refusal_kind want;
	int want_fsyncs; /* at most */
};

#define CALL(member, function) \
	offsetof(struct spool_sys, member), (void (*)(void))function

/* clang-format off */
static const struct fault_case faults[] = {
	{ "D1 once: the other queue takes it", CALL(write, bad_write), ENOSPC, 1, REFUSAL_NONE, 1 },
	{ "D1 for ever", CALL(write, bad_write), ENOSPC, 99, REFUSAL_FULL, 0 },
	{ "D2 open once", CALL(openat, bad_openat), ENOSPC, 1, REFUSAL_NONE, 1 },
	{ "D2 open for ever", CALL(openat, bad_openat), ENOSPC, 99, REFUSAL_FULL, 0 },
	{ "D2 link once", CALL(linkat, bad_linkat), ENOSPC, 1, REFUSAL_NONE, 1 },
	{ "D2 link for ever", CALL(linkat, bad_linkat), ENOSPC, 99, REFUSAL_FULL, 0 },
	{ "D5 one without inodes", CALL(fstatvfs, full_fstatvfs), 0, 1, REFUSAL_NONE, 1 },
	{ "D5 none has inodes", CALL(fstatvfs, full_fstatvfs), 0, 99, REFUSAL_FULL, 0 },
	{ "D6 quota", CALL(write, bad_write), EDQUOT, 99, REFUSAL_FULL, 0 },
	{ "D7 write", CALL(write, bad_write), EIO, 1, REFUSAL_WRITE, 0 },
	{ "D7 fsync", CALL(fsync, bad_fsync), EIO, 1, REFUSAL_WRITE, 1 },
	{ "D7 fsync out of time", CALL(fsync, bad_fsync), ETIMEDOUT, 1, REFUSAL_WRITE, 1 },
	{ "D7 writes out of time", CALL(write, bad_write), ETIMEDOUT, 1000, REFUSAL_WRITE, 0 },
	{ "D7 opens out of time", CALL(openat, bad_openat), ETIMEDOUT, 1000, REFUSAL_CREATE, 0 },
	{ "D9 read-only once", CALL(openat, bad_openat), EROFS, 1, REFUSAL_NONE, 1 },
	{ "D9 read-only", CALL(openat, bad_openat), EROFS, 99, REFUSAL_WRITE, 0 },
	{ "D10 short writes", CALL(write, short_write), 0, 0, REFUSAL_NONE, 1 },
	{ "descriptors", CALL(openat, bad_openat), EMFILE, 99, REFUSAL_CREATE, 0 },
};
/* clang-format on */

Test(faults, D1_D2_D5_D6_D7_D9_D10_faults)
{
	struct scratch s;
	size_t i;

	scratch_new(&s, 2, "queue_minfree_inodes = 1\n");
	for (i = 0; i < ARRAY_LEN(faults); i++) {
		const struct fault_case *c = &faults[i];
		struct outcome o;

		memset(&fault, 0, sizeof(fault));
		fault.sys = spool_sys_real;
		fault.error = c->error;
		fault.times = c->times;
		fault.sys.fsync = bad_fsync;
		if (c->call != (void (*)(void))bad_fsync) {
			fault.sys.fsync = spool_sys_real.fsync;
			memcpy((char *)&fault.sys + c->offset, &c->call,
			    sizeof(c->call));
		}
		o = run_job(&s, 0);
		cr_expect_eq(
		    o.kind, c->want, "%s: %d %s", c->name, o.kind, o.text);
		cr_expect_eq(o.result, c->want == REFUSAL_NONE ? 0 : -1);
		cr_expect_leq(fault.fsyncs, c->want_fsyncs, "%s", c->name);
		cr_expect_eq(scratch_stored(&s, NULL),
		    c->want == REFUSAL_NONE ? 1 : 0, "%s", c->name);
		cr_expect_eq(refusal_exit(o.kind, false),
		    c->want == REFUSAL_NONE ? 0 : 75);
		scratch_empty(&s);
	}
	scratch_done(&s);
}

/* What no longer can be read again is refused, not written twice. */
Test(faults, D1_a_large_message_is_not_tried_again)
{
	struct scratch s;
	struct outcome o;

	scratch_new(&s, 2, NULL);
	memset(&fault, 0, sizeof(fault));
	fault.sys = spool_sys_real;
	fault.sys.linkat = bad_linkat;
	fault.error = ENOSPC;
	fault.times = 1;
	o = run_job(&s, 1000000);
	cr_expect_eq(o.kind, REFUSAL_FULL, "%s", o.text);
	cr_expect_not_null(strstr(o.text, "queue"), "%s", o.text);
	cr_expect_eq(scratch_stored(&s, NULL), 0);
	scratch_done(&s);
}

/* ---- a queue that is closed meanwhile ---- */

static const char *closing; /* QUEUE_BASE */

static void
close_both(void)
{
	cr_assert_eq(spool_set_sealed(closing, 1, true), 0);
	cr_assert_eq(spool_set_sealed(closing, 2, true), 0);
}

/* Whichever queue it is, at the first message; then all others are open. */
static void
close_one(int dir)
{
	char path[160], link[64];
	uint32_t queue;
	ssize_t n;

	if (!fails())
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	n = readlink(link, path, sizeof(path) - 1);
	cr_assert_gt(n, 0);
	path[n] = '\0';
	for (queue = 1; queue <= 2; queue++) {
		snprintf(link, sizeof(link), "/queue%u/", queue);
		if (strstr(path, link) != NULL)
			cr_assert_eq(spool_set_sealed(closing, queue, true), 0);
	}
}

static int
mark_linkat(
    int olddir, const char *old, int newdir, const char *name, int flags)
{
	close_one(newdir);
	return spool_sys_real.linkat(olddir, old, newdir, name, flags);
}

static int
linkat_mark(
    int olddir, const char *old, int newdir, const char *name, int flags)
{
	int r = spool_sys_real.linkat(olddir, old, newdir, name, flags);

	close_one(newdir);
	return r;
}

static int
mark_fsync(int fd)
{
	struct scratch here = { .queues = 2 };

	if (fails()) {
		close_both();
		snprintf(here.base, sizeof(here.base), "%s", closing);
		fault.writes = (int)scratch_stored(&here, NULL);
	}
	return spool_sys_real.fsync(fd);
}

static void
begin_closing(const struct scratch *s)
{
	memset(&fault, 0, sizeof(fault));
	fault.sys = spool_sys_real;
	fault.times = 1;
	closing = s->base;
	spool_set_sealed(closing, 1, false);
	spool_set_sealed(closing, 2, false);
}

/* In whichever order, and wherever the mark comes: nothing is in a queue whose
 * mark was there before its look, and no reader could have taken it. */
Test(faults, a_queue_that_is_closed_meanwhile_is_left_for_another)
{
	static const struct {
		const char *name;
		int (*linkat)(int olddir, const char *old, int newdir,
		    const char *name, int flags);
		size_t body;
		enum refusal_kind want;
	} rows[] = {
		{ "mark, then link", mark_linkat, 0, REFUSAL_NONE },
		{ "link, then mark", linkat_mark, 0, REFUSAL_NONE },
		{ "mark, link: large", mark_linkat, 1000000, REFUSAL_DISABLED },
		{ "link, mark: large", linkat_mark, 1000000, REFUSAL_DISABLED },
	};
	struct stored m = { 0 };
	struct scratch s;
	size_t i;

	scratch_new(&s, 2, NULL);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct outcome o;

		begin_closing(&s);
		fault.sys.linkat = rows[i].linkat;
		o = run_job(&s, rows[i].body);
		cr_expect_eq(
		    o.kind, rows[i].want, "%s: %s", rows[i].name, o.text);
		if (rows[i].want == REFUSAL_NONE) {
			cr_expect_eq(scratch_stored(&s, &m), 1);
			cr_expect_not(spool_is_sealed_at(s.base, m.queue));
		} else {
			cr_expect_eq(scratch_stored(&s, NULL), 0);
			cr_expect_eq(refusal_exit(o.kind, false), 75);
			cr_expect_not_null(
			    strstr(o.text, "being closed"), "%s", o.text);
		}
		scratch_empty(&s);
	}
	stored_done(&m);
	scratch_done(&s);
}

/* A mark that comes after the look: whoever set it sees the file. */
Test(faults, who_closes_after_the_look_sees_the_file)
{
	struct outcome o;
	struct scratch s;

	scratch_new(&s, 2, NULL);
	begin_closing(&s);
	fault.sys.fsync = mark_fsync;
	o = run_job(&s, 0);
	cr_expect_eq(o.kind, REFUSAL_NONE, "%s", o.text);
	cr_expect_eq(fault.writes, 1, "its name was there with the mark");
	scratch_done(&s);
}

Test(faults, a_queue_with_the_mark_is_never_chosen)
{
	struct stored m = { 0 };
	struct outcome o;
	struct scratch s;
	int i;

	scratch_new(&s, 2, NULL);
	begin_closing(&s);
	fault.sys.write = bad_write;
	fault.times = 0;
	cr_assert_eq(spool_set_sealed(s.base, 1, true), 0);
	for (i = 0; i < 6; i++) {
		/* From disk; and by facts that were true a moment ago. */
		if (i == 3)
			scratch_pages(&s, QUEUE_STATE_OPEN, 0);
		o = run_job(&s, 0);
		cr_expect_eq(o.kind, REFUSAL_NONE, "%s", o.text);
		cr_expect_eq(scratch_stored(&s, &m), 1);
		cr_expect_eq(m.queue, 2);
		scratch_empty(&s);
	}
	scratch_no_pages(&s);
	close_both();
	fault.writes = 0;
	o = run_job(&s, 0);
	cr_expect_eq(refusal_exit(o.kind, false), 75, "%s", o.text);
	cr_expect_not_null(strstr(o.text, "closed"), "%s", o.text);
	cr_expect_eq(fault.writes, 0, "refused before any work");
	stored_done(&m);
	scratch_done(&s);
}

Test(faults, D5_reserve_of_the_configuration)
{
	struct scratch s;
	struct run run;

	scratch_new(&s, 1, "queue_minfree_bytes = 1024g\n");
	cr_expect_eq(inject(&s, &run), 75);
	cr_expect_not_null(strstr(run.err, "4.3.1"), "%s", run.err);
	cr_expect_eq(scratch_stored(&s, NULL), 0);
	scratch_done(&s);
}

Test(faults, strict_mode_stores_too)
{
	struct scratch s;
	struct run run;

	scratch_new(&s, 1, "strict_sync = yes\n");
	cr_expect_eq(inject(&s, &run), 0, "%s", run.err);
	cr_expect_eq(scratch_stored(&s, NULL), 1);
	scratch_done(&s);
}
