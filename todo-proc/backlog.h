/* todo-proc/backlog.h - files that are to be looked at, the oldest first.
 * Pure: times are passed in.
 *
 * Two orders of the same small nodes: `ready`, by the mtime of the file, which
 * is when it was written; and `later`, by when it is to be looked at again.
 *
 * Bounded: ready keeps the BACKLOG_MAX oldest of what it was shown. When it
 * had to leave something out, `more` is set: then only what is older than its
 * newest comes in, so that order is kept, and when it runs low the directory
 * is to be scanned again. At most 64 bytes each, 4 MiB in all.
 */
#ifndef TODO_PROC_BACKLOG_H
#define TODO_PROC_BACKLOG_H

#include "base/base.h"

#include <bsd/sys/tree.h>

#define BACKLOG_MAX       65536
#define BACKLOG_LOW       1024
#define BACKLOG_LATER_MAX 1024
#define BACKLOG_WAIT_MIN  (100 * USEC_PER_MSEC)
#define BACKLOG_WAIT_MAX  (5 * USEC_PER_SEC)

struct candidate {
	RB_ENTRY(candidate) link;
	usec_t at; /* mtime_wall in ready, a monotonic time in later */
	uint64_t inode;
	uint8_t tries; /* looks that were too early */
};
RB_HEAD(candidates, candidate);

struct backlog {
	struct candidates ready, later;
	uint32_t nready, nlater;
	bool more;
};

void backlog_init(struct backlog *b);
void backlog_done(struct backlog *b);
/* 1: new; 0: known, or left out (see `more`); -ENOMEM, as left out. */
int backlog_add(struct backlog *b, uint64_t inode, usec_t mtime_wall);
/* Take the oldest; false: nothing is ready. */
bool backlog_take(struct backlog *b, struct candidate *ret);
/* Look at it again after a while, twice as long each time, at least `least`.
 * What does not fit is left to the scan. */
void backlog_later(
    struct backlog *b, const struct candidate *c, usec_t now, usec_t least);
/* What has waited comes back to ready, as old as it can be. The time of the
 * next one: USEC_NEVER for none. */
usec_t backlog_wake(struct backlog *b, usec_t now);
/* A scan of the whole directory begins: what it leaves out counts anew. */
void backlog_scan_begins(struct backlog *b);
/* Is it time to scan for what was left out? */
bool backlog_is_low(const struct backlog *b);

#endif
