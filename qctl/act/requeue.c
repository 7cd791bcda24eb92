/* requeue --failed: recipients that failed are pending again. */
#include "qctl/act/actor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/io.h"
#include "spool/prepared.h"
#include "spool/reason.h"

/* The message is on hold, so nothing else touches its file. */
static int
take_marks_back(const struct spool *sp, int fd, bool *ret_any)
{
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	struct queue_file file;
	int r = queue_file_read(fd, &file);

	*ret_any = false;
	if (r < 0)
		return r;
	queue_rcpt_begin(&cursor, &file);
	while ((r = queue_rcpt_next(&cursor, fd, &rcpt)) > 0) {
		if (rcpt.mark != RCPT_FAILED)
			continue;
		*ret_any = true;
		r = queue_file_mark(sp->sys, fd, rcpt.offset, RCPT_PENDING);
		if (r < 0)
			return r;
	}
	return r == 0 && *ret_any && sp->sys->fsync(fd) < 0 ? -errno : r;
}

static bool
has(int marks, enum reason_mark mark)
{
	return marks > 0 && ((unsigned)marks & mark) != 0;
}

/* ---- lines of deliveries ---- */

enum line {
	LINE_NONE,
	LINE_TOLD,
	LINE_UNTOLD,
	LINE_KEPT, /* untold, of a delivery: stays in bounce/ */
};

/* The last line of each recipient in bounce/. */
struct last_lines {
	uint8_t *of; /* enum line of each recipient */
	uint32_t count;
	bool alone; /* a report told of one recipient: VERP */
	struct buf *kept;
};

static int
note_untold(const struct reason *reason, void *arg)
{
	struct last_lines *l = arg;

	if (reason->index < l->count)
		l->of[reason->index] = LINE_UNTOLD;
	return 0;
}

static void
note_told(uint32_t index, void *arg)
{
	struct last_lines *l = arg;
	uint32_t i;

	l->alone |= index != REASON_ALL;
	for (i = 0; i < l->count; i++)
		if (l->of[i] != LINE_NONE &&
		    (index == REASON_ALL || index == i))
			l->of[i] = LINE_TOLD;
}

/* Lines in front of that of a report may be untold: of a report that had no
 * room for more, and of one for one recipient. */
static int
find_last_lines(const struct spool *sp, uint64_t inode, uint32_t reports,
    struct last_lines *l)
{
	int r = reason_read_told(sp, inode, note_untold, note_told, l);

	if (r == 0 && !l->alone)
		r = reason_read_after(sp, inode, reports, note_untold, l);
	return r;
}

static int
add_kept(const struct reason *reason, void *arg)
{
	struct last_lines *l = arg;

	return reason->index < l->count && l->of[reason->index] == LINE_KEPT
	    ? reason_format(reason, l->kept)
	    : 0;
}

/* Deliveries that the sender was told of get a line again, for none is told
 * without one; their line of a report comes behind. */
static int
add_told(int fd, const struct queue_file *file, struct last_lines *l,
    struct buf *lines)
{
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	int r;

	queue_rcpt_begin(&cursor, file);
	while ((r = queue_rcpt_next(&cursor, fd, &rcpt)) > 0) {
		const struct reason line = { .index = rcpt.index,
			.dsn = "",
			.relay = "none",
			.address = rcpt.address,
			.text = "told of before it was requeued" };

		if (rcpt.mark != RCPT_DONE ||
		    !dsn_wants(rcpt.dsn.notify, DSN_SUCCESS))
			continue;
		if (l->of[rcpt.index] == LINE_UNTOLD)
			l->of[rcpt.index] = LINE_KEPT;
		r = l->of[rcpt.index] == LINE_TOLD ? reason_format(&line, lines)
						   : 0;
		if (r < 0)
			return r;
	}
	return r;
}

/* The lines of deliveries: those that were told, and those that were not. */
static int
add_deliveries(const struct spool *sp, uint64_t inode, int fd, uint32_t reports,
    struct buf *told, struct buf *untold)
{
	struct last_lines l = { .kept = untold };
	struct queue_file file;
	int r = queue_file_read(fd, &file);

	if (r < 0)
		return r;
	l.count = file.rcpt_count;
	l.of = calloc(l.count, sizeof(*l.of));
	r = l.of == NULL ? -ENOMEM : find_last_lines(sp, inode, reports, &l);
	if (r == 0)
		r = add_told(fd, &file, &l, told);
	if (r == 0)
		r = reason_read(sp, SPOOL_BOUNCE, inode, add_kept, &l);
	free(l.of);
	return r;
}

/* The mark of a message that was given up goes, too; that of a sender who was
 * warned stays. */
static int
forget_reasons(
    const struct spool *sp, const struct queue_id *id, int fd, bool warned)
{
	struct buf lines = { 0 }, untold = { 0 };
	uint32_t reports = 0;
	int r = reason_count_reports(sp, id->inode, &reports);

	if (r == 0 && reports > 0)
		r = add_deliveries(sp, id->inode, fd, reports, &lines, &untold);
	if (r == 0 && warned)
		r = reason_format_warning(id, clock_wall(), "none", &lines);
	else if (r == 0 && lines.len > 0)
		r = reason_format_report(clock_wall(), "none", &lines);
	if (r == 0)
		r = buf_add(&lines, untold.data, untold.len);
	if (r == 0)
		r = reason_replace(sp, id->inode, &lines, warned);
	buf_done(&lines);
	buf_done(&untold);
	return r;
}

/* Reports that were made of it leave prepared/ by the count of their lines.
 * Inode numbers are reused: -ENOENT for another message. */
static int
settle(const struct spool *sp, const struct queue_id *id, int fd)
{
	struct queue_file file;
	int r = queue_file_read(fd, &file);

	if (r == 0 && !queue_file_is(&file, id))
		r = -ENOENT;
	return r < 0
	    ? r
	    : spool_settle_message(sp, fd, &file, id->inode, NULL, NULL);
}

/* Marks first, synced; then the reasons: a mark of failure without its reason
 * would be pending again, too. */
int
requeue_forget(const struct spool *sp, const struct queue_id *id)
{
	const int marks = reason_marks(sp, id);
	bool any_failed = false;
	int r, fd = spool_open_file(sp, SPOOL_HOLD, id->inode, O_RDWR);

	if (fd < 0)
		return fd;
	/* queue-send may be taking it, to report what failed. */
	r = prepared_lock(fd);
	if (r == 0)
		r = settle(sp, id, fd);
	if (r == 0)
		r = take_marks_back(sp, fd, &any_failed);
	if (r == 0 && (any_failed || has(marks, REASON_GIVEN_UP)))
		r = forget_reasons(sp, id, fd, has(marks, REASON_WARNED));
	io_close(&fd);
	return r;
}
