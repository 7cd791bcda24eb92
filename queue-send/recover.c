#include "queue-send/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/io.h"
#include "log/log.h"
#include "spool/reason.h"

/* What is left to do by the marks: pending ones, or at least failed ones. */
static int
read_marks(int fd, bool *ret_pending, bool *ret_failed)
{
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct queue_file file;
	int r = queue_file_read(fd, &file);

	*ret_pending = *ret_failed = false;
	if (r < 0)
		return r;
	queue_rcpt_begin(&cursor, &file);
	while ((r = queue_rcpt_next(&cursor, fd, &rcpt)) > 0) {
		if (rcpt.mark == RCPT_PENDING) {
			*ret_pending = true;
			return 0;
		}
		*ret_failed = *ret_failed || rcpt.mark == RCPT_FAILED;
	}
	return r;
}

static int
remove_done(const struct spool *sp, uint64_t inode, struct recovered *done)
{
	int r = reason_clear(sp, SPOOL_DEFER, inode);

	if (r == 0)
		r = reason_clear(sp, SPOOL_BOUNCE, inode);
	if (r == 0)
		r = spool_remove(sp, SPOOL_ACTIVE, inode);
	done->removed += r == 0;
	return r;
}

int
recover_message(const struct spool *sp, uint64_t inode, struct recovered *done)
{
	bool pending = true, failed = false;
	int fd = spool_open_file(sp, SPOOL_ACTIVE, inode, O_RDONLY), r = fd;

	if (fd >= 0)
		r = read_marks(fd, &pending, &failed);
	io_close(&fd);
	/* What cannot be read is judged by todo-proc, with everything else. */
	if (r < 0 || pending) {
		r = spool_move(sp, SPOOL_ACTIVE, SPOOL_INCOMING, inode);
		done->returned += r == 0;
		return r;
	}
	if (!failed)
		return remove_done(sp, inode, done);
	r = spool_move(sp, SPOOL_ACTIVE, SPOOL_HOLD, inode);
	done->held += r == 0;
	return r;
}

void
recover_active(const struct spool *sp, struct recovered *ret_done)
{
	struct spool_scan scan;
	struct spool_item item;
	int r;

	*ret_done = (struct recovered){ 0 };
	spool_scan_begin(&scan, sp, SPOOL_ACTIVE);
	while ((r = spool_scan_next(&scan, false, &item)) != 0) {
		if (r > 0 && item.inode == 0)
			continue;
		if (r > 0)
			r = recover_message(sp, item.inode, ret_done);
		if (r >= 0 || r == -ENOENT)
			continue;
		ret_done->errors++;
		log_error("%s/active: %s: cannot be moved back", sp->path,
		    strerror(-r));
	}
	spool_scan_done(&scan);
}
