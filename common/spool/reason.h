/* spool/reason.h - reasons of recipients: in defer/ of those that wait, in
 * bounce/ of those that failed.
 *
 * A text file with the name of the message, a line a recipient:
 *	INDEX <TAB> WALL_SECONDS <TAB> DSN <TAB> RELAY <TAB> ADDRESS <TAB> TEXT
 * cleaned, appended with one write; a line cut off at the end is ignored; the
 * last line of an index counts. Each attempt begins a new file in defer/; the
 * line in bounce/ is written before the recipient is marked RCPT_FAILED, so
 * that only a power cut leaves a mark without its reason.
 *
 * A file in defer/ that an attempt began has the number of the attempt in its
 * first line, from 1 on:
 *	attempt <TAB> NUMBER
 *
 * A line of bounce/ says that the reasons in front of it were reported to the
 * sender, in message ID (docs/REPORTS.md, "Exactly once"):
 *	report <TAB> WALL_SECONDS <TAB> ID
 * A report that warned of a delay has the message behind it; no reason in front
 * of it is untold:
 *	report <TAB> WALL_SECONDS <TAB> ID <TAB> delay <TAB> MESSAGE
 *
 * One that told of a single recipient has its index (VERP); reasons of other
 * recipients in front of it may be untold:
 *	report <TAB> WALL_SECONDS <TAB> ID <TAB> rcpt <TAB> INDEX
 *
 * One that had no room for more told of the first COUNT reasons in front of it
 * that were untold:
 *	report <TAB> WALL_SECONDS <TAB> ID <TAB> lines <TAB> COUNT
 *
 * Another one says that an operator gave up message ID:
 *	expire <TAB> WALL_SECONDS <TAB> ID
 * And one that an operator released it while there were rules of hold:
 *	release <TAB> WALL_SECONDS <TAB> ID
 *
 * The last three are marks of one message, since a file that a crash left meets
 * the next message of its inode. The mode of the file has a bit that tells of
 * them (docs/SPOOL.md).
 */
#ifndef SPOOL_REASON_H
#define SPOOL_REASON_H

#include "spool/spool.h"

struct reason {
	uint32_t index; /* of the recipient in the queue file */
	usec_t when_wall;
	const char *dsn;     /* "4.4.1" */
	const char *relay;   /* "host[ip]:25" or "none" */
	const char *address; /* the recipient */
	const char *text;    /* begins with neither the code nor a blank */
	uint32_t attempt;    /* of the first reason of an attempt, else 0 */
};

int reason_add(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    const struct reason *reason);
/* How many attempts have left reasons in defer/: 0, when it is not known. */
uint32_t reason_attempts(const struct spool *sp, uint64_t inode);
/* The same for a reader who has to know: -errno when defer/ cannot be read. */
int reason_count_attempts(
    const struct spool *sp, uint64_t inode, uint32_t *ret_count);
/* Remove the file, if there is one. */
int reason_clear(const struct spool *sp, enum spool_dir dir, uint64_t inode);
/* Remove both, unless a message of the inode lies anywhere in the queue. With a
 * second name they are lent, and stay: the queue that gives the message away
 * does that, and the message comes after them (spool_hand_over()). So do those
 * that come while this goes on. The caller sees to it that this queue itself
 * begins nothing with a message of the inode. */
void reason_clear_lost(const struct spool *sp, uint64_t inode);
/* The reasons were reported: this line is on disk, or it was taken back. */
int reason_add_report(
    const struct spool *sp, uint64_t inode, usec_t when_wall, const char *id);
/* The same of a report that told of this recipient alone. */
int reason_add_rcpt_report(const struct spool *sp, uint64_t inode,
    usec_t when_wall, const char *id, uint32_t index);
/* The same of a report that told of the first `count' of the reasons that no
 * report had told of. */
int reason_add_part_report(const struct spool *sp, uint64_t inode,
    usec_t when_wall, const char *id, uint32_t count);
/* The same of a warning of delay. */
int reason_add_warning(const struct spool *sp, const struct queue_id *id,
    usec_t when_wall, const char *report);
/* Reports that were made of the message, warnings too; without reasons 0. */
int reason_count_reports(
    const struct spool *sp, uint64_t inode, uint32_t *ret_count);
/* The lines of the three above, for reason_replace(). */
int reason_format(const struct reason *reason, struct buf *out);
int reason_format_report(usec_t when_wall, const char *id, struct buf *out);
int reason_format_warning(const struct queue_id *id, usec_t when_wall,
    const char *report, struct buf *out);
/* These lines, synced, are in bounce/ instead of all that was there; or nothing
 * has changed. Without a line the file goes. marked: a mark is among them. */
int reason_replace(const struct spool *sp, uint64_t inode,
    const struct buf *lines, bool marked);
/* The message is given up; not synced. */
int reason_add_expiry(
    const struct spool *sp, const struct queue_id *id, usec_t when_wall);
/* Rules of hold pass the message by from now on; not synced. */
int reason_add_release(
    const struct spool *sp, const struct queue_id *id, usec_t when_wall);
/* The message goes to hold/ or deleted/ when its deliveries have ended, by
 * REASON_TO_HOLD or REASON_TO_DELETE; 0: such a mark counts no more, and
 * nothing is written where there is none. Not synced. */
int reason_add_decision(const struct spool *sp, const struct queue_id *id,
    int decision, usec_t when_wall);
/* Adds to *count the recipients of an open message that are marked as failed
 * and have no reason under this name; unmark: they become pending. */
int reason_compare_marks(const struct spool *sp, int fd, uint64_t name,
    bool unmark, uint32_t *count);
enum reason_mark {
	REASON_GIVEN_UP = 1 << 0, /* by an operator */
	REASON_WARNED = 1 << 1,   /* the sender knows of the delay */
	REASON_RELEASED = 1 << 2, /* by an operator, from a hold */
	/* An operator decided it while the message was being delivered. The
	 * last such line counts. */
	REASON_TO_HOLD = 1 << 3,
	REASON_TO_DELETE = 1 << 4,
};
#define REASON_DECIDED (REASON_TO_HOLD | REASON_TO_DELETE)
/* The marks of this message, 0 for none; -ENOENT: bounce/ has no file for it.
 */
int reason_marks(const struct spool *sp, const struct queue_id *id);
/* For fsync(); -ENOENT: no reasons. */
int reason_open(const struct spool *sp, enum spool_dir dir, uint64_t inode);
/* Calls each() for every whole line in file order; stops when it returns other
 * than 0, and returns that. The strings live during the call. -ENOENT: no
 * reasons. */
int reason_read(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    int (*each)(const struct reason *reason, void *arg), void *arg);
/* The same of bounce/; told() is called for each report: with the index of the
 * recipient that it told of, or with REASON_ALL for all reasons in front of its
 * line. For a reason that a part of a report told of, it is called right behind
 * each(). NULL: not called. */
#define REASON_ALL UINT32_MAX
int reason_read_told(const struct spool *sp, uint64_t inode,
    int (*each)(const struct reason *reason, void *arg),
    void (*told)(uint32_t index, void *arg), void *arg);
/* The same of bounce/, but for reasons that the first so many reports told
 * of. */
int reason_read_after(const struct spool *sp, uint64_t inode, uint32_t reports,
    int (*each)(const struct reason *reason, void *arg), void *arg);

#endif
