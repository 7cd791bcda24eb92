/* What goes along with an offer: the file, open, and counts. */
#include "tests/unit/todo-proc/world.h"

#include "base/clock.h"
#include "todo-proc/todo.h"
#include "tests/unit/descriptors.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct world w;

/* The time that the loop reads; 0: as it is. */
static usec_t stopped_at;

int
clock_gettime(clockid_t id, struct timespec *ret_ts)
{
	if (id != CLOCK_MONOTONIC || stopped_at == 0)
		return (int)syscall(SYS_clock_gettime, id, ret_ts);
	*ret_ts = (struct timespec){ .tv_sec = stopped_at / USEC_PER_SEC,
		.tv_nsec = stopped_at % USEC_PER_SEC * 1000 };
	return 0;
}

static void
start(void)
{
	world_start(&w, "");
	world_link(&w);
	world_run(&w);
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(passing, .init = start, .fini = end, .timeout = 60);

static struct spool_sys failing;
static int refused; /* of opens for writing */

static int
refuse_openat(int dir, const char *name, int flags, mode_t mode)
{
	if (refused != 0 && (flags & O_ACCMODE) == O_RDWR) {
		errno = refused;
		return -1;
	}
	return spool_sys_real.openat(dir, name, flags, mode);
}

/* Does a descriptor come along with a message for these? */
static bool
is_passed(uint64_t inode)
{
	const uint32_t n = w.nmessages;

	world_bell(&w, inode);
	world_credit(&w, 1);
	cr_assert_eq(w.nmessages, n + 1);
	return w.fds[n] >= 0;
}

/* mutation: todo-proc/examine_task.c: the file is opened read-only; it is not
 * unlocked. */
Test(passing, D22_the_file_goes_along_for_its_marks_and_unlocked)
{
	const uint64_t inode = world_file(&w, SPOOL_INCOMING, "d", 1);
	struct stat st;
	int own;

	cr_assert(is_passed(inode));
	cr_assert_eq(fstat(w.fds[0], &st), 0);
	cr_expect_eq((uint64_t)st.st_ino, inode);
	cr_expect_eq(fcntl(w.fds[0], F_GETFL) & O_ACCMODE, O_RDWR);
	cr_expect_neq(fcntl(w.fds[0], F_GETFD) & FD_CLOEXEC, 0);
	own = spool_open_file(&w.t.sp, SPOOL_INCOMING, inode, O_RDONLY);
	cr_assert_geq(own, 0);
	cr_expect_eq(flock(own, LOCK_EX | LOCK_NB), 0);
	close(own);
}

static uint64_t
with(const struct dsn_mail *dsn, const char *content, size_t len)
{
	const struct accept_options options = { .dir = SPOOL_INCOMING };
	struct accept a;
	struct queue_id id;

	cr_assert_eq(
	    accept_begin(&a, &w.t.sp, &options, clock_wall(), getuid()), 0);
	cr_assert_eq(queue_file_add_content(&a.writer, content, len), 0);
	cr_assert_eq(queue_file_add_sender(&a.writer, "s@here.test", 11), 0);
	cr_assert_eq(queue_file_add_dsn(&a.writer, dsn), 0);
	cr_assert_eq(queue_file_add_rcpt(&a.writer, "r@d.test", 8), 0);
	cr_assert_eq(accept_commit(&a, &id), 0);
	accept_end(&a);
	return id.inode;
}

static uint64_t
with_wishes(void)
{
	const struct dsn_mail dsn = { .ret = DSN_RET_HDRS };

	return with(&dsn, "a\n\nb\n", 5);
}

static uint64_t
with_a_mark(void)
{
	const uint64_t inode = world_file(&w, SPOOL_INCOMING, "d", 1);
	int fd = spool_open_file(&w.t.sp, SPOOL_INCOMING, inode, O_RDWR);
	struct queue_file file;

	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_assert_eq(
	    queue_file_mark(w.t.sp.sys, fd, file.rcpt_off, RCPT_DONE), 0);
	close(fd);
	return inode;
}

/* mutation: todo-proc/examine_task.c: needs_descriptor() without one of its
 * conditions; todo-proc/routing.c: no transport takes content. */
Test(passing, in_memory_the_file_goes_along_if_it_is_read_or_marked)
{
	w.t.in_memory = true;
	cr_expect_not(is_passed(world_file(&w, SPOOL_INCOMING, "d", 1)));
	cr_expect(is_passed(world_file(&w, SPOOL_INCOMING, "d", 2)));
	cr_expect(is_passed(world_file(&w, SPOOL_INCOMING, "r@smtp.test", 1)));
	cr_expect(is_passed(with_wishes()));
	cr_expect(is_passed(with_a_mark()));
	cr_expect_not(is_passed(world_file(&w, SPOOL_INCOMING, "d", 1)));
}

/* Content that is not read together with the recipients.
 * mutation: todo-proc/examine_task.c: count_pass() reads by another cursor. */
Test(passing, recipients_of_a_large_file_go_along)
{
	static char content[2 * 65536];
	static const struct dsn_mail none;
	uint64_t inode;

	memset(content, 'x', sizeof(content));
	inode = with(&none, content, sizeof(content));
	cr_expect(is_passed(inode));
	cr_expect_eq(w.messages[0].rcpts.len, w.messages[0].rcpt_len);
	cr_expect_eq(w.messages[0].pending, 1);
	cr_expect_not_null(
	    memmem(w.rcpts[0], w.messages[0].rcpt_len, "r@d.test", 8));
}

/* mutation: todo-proc/examine_task.c: may_be_read() is false; what may be read
 * alone is passed. */
Test(passing, a_file_that_may_only_be_read_stays_here)
{
	static const int errors[] = { EROFS, EACCES, EPERM, ETXTBSY };
	size_t i;

	failing = spool_sys_real;
	failing.openat = refuse_openat;
	w.t.sp.sys = &failing;
	for (i = 0; i < ARRAY_LEN(errors); i++) {
		refused = 0;
		const uint64_t inode = world_file(&w, SPOOL_INCOMING, "d", 1);

		refused = errors[i];
		cr_expect_not(is_passed(inode), "%zu", i);
		cr_expect_neq(w.messages[i].version, 0);
	}
	refused = 0;
}

static bool had;

static void
not_offered(struct todo *t UNUSED, struct examination *e)
{
	had = e->t.fd >= 0;
}

/* mutation: todo-proc/examine_task.c: examine_task_drop() closes nothing. */
Test(passing, a_descriptor_that_is_not_passed_is_closed)
{
	const uint64_t inode = world_file(&w, SPOOL_INCOMING, "d", 1);
	const struct inbox_file from = { .inode = inode };
	const unsigned before = unit_descriptors();

	cr_assert_eq(examine_begin(&w.t, inode, &from, not_offered), 0);
	cr_expect(had);
	cr_expect_eq(unit_descriptors(), before);
	cr_assert(is_passed(inode));
	cr_expect_eq(unit_descriptors(), before + 1, "the one that came here");
}

/* mutation: todo-proc/offer.c: COUNTS_ALONG is COUNTS_EVERY. */
Test(passing, counts_go_with_a_message)
{
	const uint32_t before = w.ncounts;
	uint64_t inode = world_file(&w, SPOOL_INCOMING, "d", 1);

	stopped_at = w.t.told_at + USEC_PER_SEC / 2;
	world_bell(&w, inode);
	world_credit(&w, 1);
	cr_assert_eq(w.nmessages, 1);
	cr_expect_eq(w.ncounts, before + 1);
	cr_expect_eq(w.ncounts_alone, before);
	/* Others wait for their second. */
	world_bell(&w, inode);
	world_run(&w);
	cr_expect_eq(w.ncounts, before + 1);
	stopped_at += USEC_PER_SEC;
	world_run(&w);
	cr_expect_eq(w.ncounts, before + 2);
	cr_expect_eq(w.ncounts_alone, before + 1);
	stopped_at = 0;
}
