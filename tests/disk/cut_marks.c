/* D32, D34: the power goes while recipients are marked and their messages move.
 * What has moved has its marks, or the order was wrong. */
#include "cut.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"

/* The journal is committed by the syncs of others on ext4 and xfs, on btrfs by
 * time alone: here every few milliseconds. */
static void
commit_often(const struct trial *t)
{
	const struct timespec gap = { .tv_nsec = 5000000 };
	int fd = open(t->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	while (atomic_load(&t->book->power->is_cut) == 0) {
		(void)ioctl(fd, BTRFS_IOC_START_SYNC, NULL);
		nanosleep(&gap, NULL);
	}
	close(fd);
}

static int
mark_and_move(const struct trial *t, const struct spool *sp, uint64_t inode)
{
	enum marks_order order = t->test->order;
	struct queue_file file = { 0 };
	int fd = spool_open_file(sp, SPOOL_INCOMING, inode, O_RDWR), r = fd;

	if (fd >= 0)
		r = queue_file_read(fd, &file);
	if (r == 0)
		r = queue_file_mark(sp->sys, fd, file.rcpt_off, RCPT_DONE);
	if (r == 0 && order == MARKS_SYNCED && fsync(fd) < 0)
		r = -errno;
	if (r == 0)
		r = spool_move(sp, SPOOL_INCOMING, SPOOL_DEFERRED, inode);
	if (r == 0 && order == MARKS_FDATASYNC && fdatasync(fd) < 0)
		r = -errno;
	io_close(&fd);
	return r;
}

static void
write_marks(struct trial *t, uint32_t writer)
{
	const struct accept_options opt = { .dir = SPOOL_INCOMING };
	static char content[3000];
	struct ack ack = { .stamp = { .cut = t->cut, .writer = writer } };
	struct spool sp;

	if (writer == CUT_WRITERS) {
		commit_often(t);
		return;
	}
	if (spool_open(&sp, &spool_sys_real, t->base, 1) < 0)
		return;
	while (atomic_load(&t->book->nacks) < CUT_ACKS_MAX) {
		if (queue_put(&sp, &opt, content, sizeof(content), &ack.id) <
			0 ||
		    mark_and_move(t, &sp, ack.id.inode) < 0)
			return;
		cut_note(t->book, &ack);
	}
}

static bool
is_done(const struct spool *sp, uint64_t inode)
{
	static struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt = { .mark = RCPT_PENDING };
	struct queue_file file;
	int fd = spool_open_file(sp, SPOOL_DEFERRED, inode, O_RDONLY);

	if (fd >= 0 && queue_file_read(fd, &file) == 0) {
		queue_rcpt_begin(&cursor, &file);
		(void)queue_rcpt_next(&cursor, fd, &rcpt);
	}
	io_close(&fd);
	return rcpt.mark == RCPT_DONE;
}

/* Of the order with fdatasync it was told that the move is on disk. */
static void
judge_told(struct trial *t, const struct spool *sp)
{
	unsigned i, n = atomic_load(&t->book->nacks);

	n = n < CUT_ACKS_MAX ? n : CUT_ACKS_MAX;
	for (i = 0; i < n; i++)
		t->tally.lost += !is_done(sp, t->book->acks[i].id.inode);
}

static void
clear(const struct spool *sp, enum spool_dir dir)
{
	struct spool_scan scan;
	struct spool_item item;

	spool_scan_begin(&scan, sp, dir);
	while (spool_scan_next(&scan, false, &item) != 0)
		spool_remove(sp, dir, item.inode);
	spool_scan_done(&scan);
}

static unsigned
judge_marks(struct trial *t, const struct spool *sp)
{
	unsigned lost = t->tally.lost;
	struct spool_scan scan;
	struct spool_item item;

	if (t->test->order == MARKS_FDATASYNC)
		judge_told(t, sp);
	spool_scan_begin(&scan, sp, SPOOL_DEFERRED);
	while (spool_scan_next(&scan, false, &item) != 0) {
		t->tally.named++;
		if (t->test->order != MARKS_FDATASYNC)
			t->tally.lost += !is_done(sp, item.inode);
	}
	spool_scan_done(&scan);
	t->tally.accepted += atomic_load(&t->book->nacks);
	t->tally.late += atomic_load(&t->book->late);
	t->tally.lossy_cuts += t->tally.lost > lost;
	clear(sp, SPOOL_DEFERRED);
	clear(sp, SPOOL_INCOMING);
	return 0;
}

const struct cut_script cut_marks = { write_marks, judge_marks };
