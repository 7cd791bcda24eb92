#include "tests/unit/files.h"

#include "cut_queue.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "spool/accept.h"
#include "spool/reason.h"

static struct {
	unsigned count, at;
} cut;

void
cut_queue_at(unsigned nth)
{
	cut.count = 0;
	cut.at = nth;
}

bool
cut_queue_was_cut(void)
{
	return cut.at > 0 && cut.count >= cut.at;
}

static bool
ends(void)
{
	cut.count++;
	errno = EIO;
	return cut_queue_was_cut();
}

/* ---- the seam ---- */

static int
cut_openat(int dir, const char *name, int flags, mode_t mode)
{
	if ((flags & O_CREAT) != 0 && ends())
		return -1;
	return spool_sys_real.openat(dir, name, flags, mode);
}

static ssize_t
cut_write(int fd, const void *data, size_t len)
{
	return ends() ? -1 : spool_sys_real.write(fd, data, len);
}

static ssize_t
cut_pwrite(int fd, const void *data, size_t len, off_t off)
{
	return ends() ? -1 : spool_sys_real.pwrite(fd, data, len, off);
}

static int
cut_ftruncate(int fd, off_t len)
{
	return ends() ? -1 : spool_sys_real.ftruncate(fd, len);
}

static int
cut_linkat(int olddir, const char *old, int newdir, const char *name, int flags)
{
	return ends() ? -1
		      : spool_sys_real.linkat(olddir, old, newdir, name, flags);
}

static int
cut_renameat(int olddir, const char *old, int newdir, const char *name)
{
	return ends() ? -1 : spool_sys_real.renameat(olddir, old, newdir, name);
}

static int
cut_replaceat(int dir, const char *old, const char *name)
{
	return ends() ? -1 : spool_sys_real.replaceat(dir, old, name);
}

static int
cut_unlinkat(int dir, const char *name, int flags)
{
	return ends() ? -1 : spool_sys_real.unlinkat(dir, name, flags);
}

static int
cut_fsync(int fd)
{
	return ends() ? -1 : spool_sys_real.fsync(fd);
}

static struct spool_sys
cut_sys(void)
{
	struct spool_sys sys = spool_sys_real;

	sys.openat = cut_openat;
	sys.write = cut_write;
	sys.pwrite = cut_pwrite;
	sys.ftruncate = cut_ftruncate;
	sys.linkat = cut_linkat;
	sys.renameat = cut_renameat;
	sys.replaceat = cut_replaceat;
	sys.unlinkat = cut_unlinkat;
	sys.fsync = cut_fsync;
	return sys;
}

/* ---- the queue ---- */

void
cut_queue_open(struct cut_queue *q)
{
	static struct spool_sys sys;
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };
	const char *tmp = getenv("TMPDIR");

	sys = cut_sys();
	cut_queue_at(0);
	snprintf(q->base, sizeof(q->base), "%.40s/qcut.XXXXXX",
	    tmp == NULL ? "/tmp" : tmp);
	cr_assert_not_null(mkdtemp(q->base));
	cr_assert_eq(
	    spool_create(q->base, 1, 3, &owner), 0, "%s", queue_file_reason());
	cr_assert_eq(spool_open(&q->sp, &sys, q->base, 1), 0);
}

void
cut_queue_close(struct cut_queue *q)
{
	cut_queue_at(0);
	spool_close(&q->sp);
	unit_remove_tree(q->base);
}

struct queue_id
cut_queue_put(struct cut_queue *q, uint32_t rcpts, uint8_t notify)
{
	const struct accept_options options = { .dir = SPOOL_INCOMING };
	const struct dsn_rcpt wish = { .notify = notify };
	struct queue_id id;
	struct accept a;
	char rcpt[32];
	uint32_t i;

	cr_assert_eq(
	    accept_begin(&a, &q->sp, &options, clock_wall(), getuid()), 0);
	cr_assert_eq(queue_file_add_content(&a.writer, "a\n\nb\n", 5), 0);
	cr_assert_eq(queue_file_add_sender(&a.writer, "s@x.test", 8), 0);
	for (i = 0; i < rcpts; i++) {
		snprintf(rcpt, sizeof(rcpt), "r%u@x.test", i);
		cr_assert_eq(
		    queue_file_add_rcpt(&a.writer, rcpt, strlen(rcpt)), 0);
		cr_assert_eq(queue_file_add_rcpt_dsn(&a.writer, &wish), 0);
	}
	cr_assert_eq(accept_commit(&a, &id), 0);
	accept_end(&a);
	return id;
}

static enum rcpt_mark
mark_of(char letter)
{
	return letter == 'D' ? RCPT_DONE
	    : letter == 'F'  ? RCPT_FAILED
			     : RCPT_PENDING;
}

const char *
cut_queue_marks(
    struct cut_queue *q, enum spool_dir dir, uint64_t inode, const char *set)
{
	static char marks[16];
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct queue_file file;
	size_t n = 0;
	int fd = spool_open_file(&q->sp, dir, inode, O_RDWR);

	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	queue_rcpt_begin(&cursor, &file);
	while (queue_rcpt_next(&cursor, fd, &rcpt) > 0) {
		if (set != NULL)
			cr_assert_eq(queue_file_mark(q->sp.sys, fd, rcpt.offset,
					 mark_of(set[n])),
			    0);
		marks[n] = set != NULL         ? set[n]
		    : rcpt.mark == RCPT_DONE   ? 'D'
		    : rcpt.mark == RCPT_FAILED ? 'F'
					       : '.';
		n++;
	}
	marks[n] = '\0';
	io_close(&fd);
	return marks;
}

void
cut_queue_add_reason(
    struct cut_queue *q, enum spool_dir dir, uint64_t name, uint32_t index)
{
	const struct reason reason = {
		.index = index,
		.dsn = "5.1.1",
		.relay = "none",
		.address = "r@x.test",
		.text = "why",
	};

	cr_assert_eq(reason_add(&q->sp, dir, name, &reason), 0);
}

struct count {
	uint32_t index, lines;
};

static int
count_line(const struct reason *reason, void *arg)
{
	struct count *c = arg;

	c->lines += reason->index == c->index;
	return 0;
}

uint32_t
cut_queue_lines(
    struct cut_queue *q, uint64_t name, uint32_t index, uint32_t reports)
{
	struct count c = { .index = index };

	(void)reason_read_after(&q->sp, name, reports, count_line, &c);
	return c.lines;
}
