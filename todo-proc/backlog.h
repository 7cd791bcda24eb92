/* todo-proc/backlog.h - files that are to be looked at. Pure: times are passed
 * in.
 *
 * Three orders of the same small nodes: `fresh`, whose bell was heard, and
 * `ready`, found by a scan, both by the mtime of the file, which is when it was
 * written; and `later`, by when it is to be looked at again. Fresh and ready
 * take turns, so that new mail waits for no backlog, and the backlog for no
 * stream of new mail.
 *
 * Bounded: ready keeps the BACKLOG_MAX oldest of what it was shown. When it
 * had to leave something out, `more` is set: then only what is older than its
 * newest comes in, so that order is kept, and when it runs low the directory
 * is to be scanned again. What finds no room in fresh goes to ready. At most
 * 64 bytes each, 4 MiB a line.
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
	usec_t at; /* mtime_wall, in later a monotonic time */
	uint64_t inode;
	uint8_t tries; /* looks that were too early */
};
RB_HEAD(candidates, candidate);

struct backlog {
	struct candidates fresh, ready, later;
	uint32_t nfresh, nready, nlater;
	bool more;
	bool turn; /* of ready */
};

void backlog_init(struct backlog *b);
void backlog_done(struct backlog *b);
/* 1: new; 0: known, or left out (see `more`); -ENOMEM, as left out. */
int backlog_add(struct backlog *b, uint64_t inode, usec_t mtime_wall);
/* The same of a file whose bell was heard; one that is ready becomes fresh. */
int backlog_ring(struct backlog *b, uint64_t inode, usec_t mtime_wall);
/* Is there one to take? fresh_only: what is ready must wait. */
bool backlog_has(const struct backlog *b, bool fresh_only);
/* Take the oldest of the line whose turn it is, or of the other one; false:
 * there is none. */
bool backlog_take(struct backlog *b, bool fresh_only, struct candidate *ret);
/* Look at it again after a while, twice as long each time, at least `least`.
 * What does not fit is left to the scan. */
void backlog_later(
    struct backlog *b, const struct candidate *c, usec_t now, usec_t least);
/* What has waited comes back to fresh, as old as it can be. The time of the
 * next one: USEC_NEVER for none. */
usec_t backlog_wake(struct backlog *b, usec_t now);
/* A scan of the whole directory begins: what it leaves out counts anew. */
void backlog_scan_begins(struct backlog *b);
/* Is it time to scan for what was left out? */
bool backlog_is_low(const struct backlog *b);

#endif
