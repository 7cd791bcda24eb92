/* The order of calls in the spool, which a death, a power cut, or another
 * process in the midst of them shows. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "spool/reason.h"
#include "spool_scratch.h"

/* ---- an acceptance, and who meets it ---- */

static void
close_queue(enum fault_call call, void *arg)
{
	const struct scratch *s = arg;

	if (call != FAULT_LINKAT)
		return;
	fault_watch(NULL, NULL);
	cr_assert_eq(spool_set_sealed(s->base, 1, true), 0);
}

static unsigned
names_in_incoming(const struct scratch *s)
{
	struct spool_scan scan;
	struct spool_item item;
	unsigned n = 0;

	spool_scan_begin(&scan, &s->sp, SPOOL_INCOMING);
	while (spool_scan_next(&scan, false, &item) > 0)
		n++;
	spool_scan_done(&scan);
	return n;
}

/* The supervisor sets the mark and looks into the directory, and has not seen
 * the name: nobody would run the queue that has it.
 * mutation: common/spool/accept.c: make_durable() looks for the mark first. */
Test(spool_order, D20_a_queue_that_is_closed_before_the_name_takes_nothing)
{
	struct queue_id id;
	struct scratch s;

	scratch_open(&s);
	fault_watch(close_queue, &s);
	cr_expect_eq(scratch_accept(&s, &scratch_options, &scratch_mail, &id),
	    -ESHUTDOWN);
	cr_expect_eq(names_in_incoming(&s), 0);
	scratch_close(&s);
}

/* A message that is begun, and has all but its end. */
static void
begin_whole(struct accept *a, const struct spool *sp, enum spool_dir dir)
{
	const struct accept_options opt = { .dir = dir };

	cr_assert_eq(accept_begin(a, sp, &opt, clock_wall(), getuid()), 0);
	cr_assert_eq(queue_file_add_sender(&a->writer, "", 0), 0);
	cr_assert_eq(queue_file_add_rcpt(&a->writer, "b", 1), 0);
}

static struct {
	int fd; /* the one whose close is watched */
	bool locked, closed;
} drop;

static int
close_watched(int fd)
{
	char path[32];
	int again;

	if (fd == drop.fd) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		again = open(path, O_RDONLY | O_CLOEXEC);
		cr_assert_geq(again, 0);
		drop.locked = flock(again, LOCK_SH | LOCK_NB) < 0;
		drop.closed = true;
		close(again);
	}
	return spool_sys_real.close(fd);
}

/* The close tells todo-proc of the drop, which is left while it is locked.
 * mutation: common/spool/accept.c: accept_end() unlocks no drop. */
Test(spool_order, D42_a_drop_is_unlocked_when_its_reader_is_told)
{
	struct spool_sys sys = spool_sys_real;
	struct queue_id id;
	struct scratch s;
	struct accept a;

	scratch_open(&s);
	sys.close = close_watched;
	s.sp.sys = &sys;
	begin_whole(&a, &s.sp, SPOOL_MAILDROP);
	cr_assert_eq(accept_commit(&a, &id), 0);
	drop.fd = a.fd;
	accept_end(&a);
	cr_expect(drop.closed);
	cr_expect_not(drop.locked);
	drop.fd = -1;
	s.sp.sys = &fault_sys;
	scratch_close(&s);
}

static mode_t mode_at_name;

static int
linkat_looked(
    int olddir, const char *old, int newdir, const char *name, int flags)
{
	struct stat st;
	int r = fault_sys.linkat(olddir, old, newdir, name, flags);

	cr_assert_eq(fstatat(newdir, name, &st, 0), 0);
	mode_at_name = st.st_mode & 07777;
	return r;
}

/* What a death leaves behind the link is a message that can be read.
 * mutation: common/spool/accept.c: accept_commit() sets the mode behind
 * make_durable(). */
Test(spool_order, D12_D16_the_mode_is_right_before_there_is_a_name)
{
	struct spool_sys sys = fault_sys;
	struct queue_id id;
	struct scratch s;
	struct accept a;
	mode_t mask;

	scratch_open(&s);
	sys.linkat = linkat_looked;
	s.sp.sys = &sys;
	mask = umask(0777);
	begin_whole(&a, &s.sp, SPOOL_INCOMING);
	umask(mask);
	cr_expect_eq(accept_commit(&a, &id), 0);
	cr_expect_eq(mode_at_name, 0600, "%o", (unsigned)mode_at_name);
	accept_end(&a);
	s.sp.sys = &fault_sys;
	scratch_close(&s);
}

/* ---- lines of reports ---- */

#define INODE 4711

/* a: a line is written; f: it is synced; r: the file gets its name. */
static char calls[32];

static void
note_call(enum fault_call call, void *arg UNUSED)
{
	const size_t n = strlen(calls);

	cr_assert_lt(n + 1, sizeof(calls));
	if (call == FAULT_WRITE)
		calls[n] = 'a';
	else if (call == FAULT_FSYNC)
		calls[n] = 'f';
	else if (call == FAULT_REPLACEAT)
		calls[n] = 'r';
}

static void
begin_calls(void)
{
	fault_reset();
	memset(calls, 0, sizeof(calls));
	fault_watch(note_call, NULL);
}

static const struct queue_id reported = { 1700000000 * USEC_PER_SEC, 7, 1,
	INODE };

static int
add_report(const struct scratch *s, unsigned kind)
{
	const usec_t now = reported.arrival_wall;

	return kind == 0 ? reason_add_report(&s->sp, INODE, now, "A")
	    : kind == 1  ? reason_add_rcpt_report(&s->sp, INODE, now, "A", 3)
			 : reason_add_warning(&s->sp, &reported, now, "A");
}

/* The report leaves behind its line: a power cut that takes the line alone has
 * the sender told again.
 * mutation: common/spool/reason.c: reason_add_rcpt_report() does not sync. */
Test(spool_order, D36_D37_the_line_of_a_report_is_on_disk_or_taken_back)
{
	struct scratch s;
	uint32_t count;
	unsigned kind;

	scratch_open(&s);
	for (kind = 0; kind < 3; kind++) {
		begin_calls();
		fail_nth(FAULT_FSYNC, 1, EIO);
		cr_expect_eq(add_report(&s, kind), -EIO, "%u", kind);
		cr_assert_eq(reason_count_reports(&s.sp, INODE, &count), 0);
		cr_expect_eq(count, 0, "%u", kind);
		begin_calls();
		cr_assert_eq(add_report(&s, kind), 0);
		cr_expect_str_eq(calls, "af", "%u: %s", kind, calls);
		cr_assert_eq(reason_clear(&s.sp, SPOOL_BOUNCE, INODE), 0);
	}
	scratch_close(&s);
}

/* A power cut finds the lines from before, or all of the new ones.
 * mutation: common/spool/reason.c: reason_replace() does not sync. */
Test(spool_order, D36_lines_that_replace_others_are_on_disk_before_the_name)
{
	struct buf line = { 0 };
	struct scratch s;
	uint32_t count;
	int marked;

	scratch_open(&s);
	cr_assert_eq(
	    reason_format_warning(&reported, USEC_PER_SEC, "A", &line), 0);
	for (marked = 0; marked < 2; marked++) {
		cr_assert_eq(add_report(&s, 0), 0);
		cr_assert_eq(add_report(&s, 0), 0);
		begin_calls();
		fail_nth(FAULT_FSYNC, 1, EIO);
		cr_expect_eq(
		    reason_replace(&s.sp, INODE, &line, marked == 1), -EIO);
		cr_expect_eq(scratch_files(&s), 1u, "no other name is left");
		cr_assert_eq(reason_count_reports(&s.sp, INODE, &count), 0);
		cr_expect_eq(count, 2, "as it was");
		begin_calls();
		cr_assert_eq(
		    reason_replace(&s.sp, INODE, &line, marked == 1), 0);
		cr_expect_str_eq(calls, "afr", "%d: %s", marked, calls);
		cr_assert_eq(reason_count_reports(&s.sp, INODE, &count), 0);
		cr_expect_eq(count, 1);
		cr_expect_eq(reason_marks(&s.sp, &reported),
		    marked == 1 ? REASON_WARNED : 0);
		cr_assert_eq(reason_clear(&s.sp, SPOOL_BOUNCE, INODE), 0);
	}
	buf_done(&line);
	scratch_close(&s);
}
