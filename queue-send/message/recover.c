#include "queue-send/message/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "log/log.h"
#include "spool/reason.h"

/* The number of recipients with each mark. */
struct marks {
	uint32_t pending, done, failed;
	uint32_t succeeded; /* of done: perhaps to be reported */
	struct queue_id id; /* without an arrival: not read */
};

static int
read_marks(int fd, uint64_t inode, struct marks *ret_marks)
{
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct queue_file file;
	int r = queue_file_read(fd, &file);

	*ret_marks = (struct marks){ 0 };
	if (r < 0)
		return r;
	ret_marks->id = (struct queue_id){ file.arrival_wall, file.nonce,
		file.queue, inode };
	queue_rcpt_begin(&cursor, &file);
	while ((r = queue_rcpt_next(&cursor, fd, &rcpt)) > 0) {
		ret_marks->pending += rcpt.mark == RCPT_PENDING;
		ret_marks->done += rcpt.mark == RCPT_DONE;
		ret_marks->failed += rcpt.mark == RCPT_FAILED;
		ret_marks->succeeded += rcpt.mark == RCPT_DONE &&
		    (rcpt.dsn.notify & DSN_SUCCESS) != 0;
	}
	return r;
}

static int
count_marks(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    struct marks *ret_marks)
{
	int fd = spool_open_file(sp, dir, inode, O_RDONLY);
	int r = fd < 0 ? fd : read_marks(fd, inode, ret_marks);

	io_close(&fd);
	return r;
}

/* Recipients that failed, without a reason in bounce/, are pending again. */
static int
compare_reasons(const struct spool *sp, uint64_t inode, struct recovered *done)
{
	int fd = spool_open_file(sp, SPOOL_ACTIVE, inode, O_RDWR);
	uint32_t unmarked = 0;
	int r =
	    fd < 0 ? fd : reason_compare_marks(sp, fd, inode, true, &unmarked);

	done->unmarked += unmarked;
	done->synced &= unmarked == 0;
	io_close(&fd);
	return r;
}

/* ---- one message ---- */

/* Once is enough, until a mark is taken back. */
static void
sync_marks(const struct spool *sp, struct recovered *done)
{
	int fd;

	if (done->synced)
		return;
	done->synced = true;
	fd = sp->sys->openat(
	    sp->dir[SPOOL_ACTIVE], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0 || sp->sys->syncfs(fd) < 0)
		log_error("%s: cannot sync what was delivered: %s: a power cut "
			  "may repeat it",
		    sp->path, strerror(errno));
	io_close(&fd);
}

static int
remove_done(const struct queue_id *id, struct recovered *done)
{
	int r = removal_begin_left(done->behind, id);

	done->removed += r == 0;
	return r;
}

static int
go_back(const struct spool *sp, uint64_t inode, const struct marks *marks,
    struct recovered *done)
{
	int r = spool_move(sp, SPOOL_ACTIVE, SPOOL_INCOMING, inode);

	done->returned += r == 0;
	if (r == 0 && marks->id.arrival_wall != 0)
		accepted_note(done->accepted, inode, marks->id.arrival_wall);
	return r;
}

/* Failures, and deliveries whose sender is to be told, may not have been
 * reported: such a message goes its way again. */
static bool
goes_on(const struct marks *marks)
{
	return marks->pending + marks->failed + marks->succeeded > 0;
}

/* A file that cannot be read goes back, and todo-proc judges it. */
static const struct marks unread = { .pending = 1 };

int
recover_stray(const struct spool *sp, uint64_t inode, struct queue_id *ret_id)
{
	struct marks marks = { 0 };
	int r = count_marks(sp, SPOOL_ACTIVE, inode, &marks);

	if (r == -ENOENT)
		return r;
	if (r < 0)
		marks = unread;
	r = goes_on(&marks)
	    ? spool_move(sp, SPOOL_ACTIVE, SPOOL_INCOMING, inode)
	    : 0;
	if (r < 0)
		return r;
	*ret_id = marks.id;
	return goes_on(&marks);
}

/* A file that a power cut left with two names keeps one of them first, which
 * may be the other one. */
static int
count_at_start(const struct spool *sp, uint64_t inode, struct marks *ret_marks)
{
	char leaf[SPOOL_PATH_MAX];
	int r = count_marks(sp, SPOOL_ACTIVE, inode, ret_marks);

	spool_leaf(sp, SPOOL_ACTIVE, inode, leaf, sizeof(leaf));
	if (r == -EPERM && spool_keep_one_name(sp, SPOOL_ACTIVE, leaf) == 0)
		r = count_marks(sp, SPOOL_ACTIVE, inode, ret_marks);
	return r;
}

static int
recover_at_start(const struct spool *sp, uint64_t inode, struct recovered *done)
{
	struct marks marks = { 0 };
	int r = count_at_start(sp, inode, &marks);

	if (r == -ENOENT)
		return r;
	if (r == 0 && marks.failed > 0)
		r = compare_reasons(sp, inode, done);
	if (marks.failed + marks.done > 0)
		sync_marks(sp, done);
	if (r < 0)
		marks = unread;
	return goes_on(&marks) ? go_back(sp, inode, &marks, done)
			       : remove_done(&marks.id, done);
}

void
recover_active(const struct spool *sp, struct recovered *done)
{
	struct spool_scan scan;
	struct spool_item item;
	int r;

	spool_scan_begin(&scan, sp, SPOOL_ACTIVE);
	while ((r = spool_scan_next(&scan, false, &item)) != 0) {
		if (r > 0 && item.inode == 0)
			continue;
		if (r > 0)
			r = recover_at_start(sp, item.inode, done);
		if (r >= 0 || r == -ENOENT)
			continue;
		done->errors++;
		log_error("%s/active: %s: cannot be moved back", sp->path,
		    strerror(-r));
	}
	spool_scan_done(&scan);
}
