/* qscheduler/queues/override_file.h - QUEUE_BASE/by-hand: the queues that
 *operators have disabled, so that they stay so when the supervisor is started
 *again.
 *
 *	# comment
 *	QUEUE UNTIL REASON
 *	end
 *
 * UNTIL is a second of the wall clock, 0 for ever; REASON may be empty. It is
 * written whole, and believed whole or not at all: only when it belongs to us
 * and nobody else may write it, each line is right, no queue is there twice,
 * and `end` is the last line.
 *
 * Soft: -errno with the words in *ret_error. Never logs. */
#ifndef QSCHEDULER_QUEUES_OVERRIDE_FILE_H
#define QSCHEDULER_QUEUES_OVERRIDE_FILE_H

#include "base/buf.h"
#include "ipc/page.h"

#define BYHAND_NAME "by-hand"

struct byhand_row {
	uint32_t queue;
	int64_t until_wall; /* seconds, 0: for ever */
	char reason[SCHED_REASON_SIZE];
};

struct byhand {
	uint32_t n;
	struct byhand_row rows[PAGE_QUEUES_MAX];
};

/* dir is QUEUE_BASE, path its name for words. No file: no rows. */
int byhand_read(
    int dir, const char *path, struct byhand *ret, struct buf *ret_error);
/* Without rows the file is removed. */
int byhand_write(int dir, const char *path, const struct byhand *rows,
    struct buf *ret_error);

#endif
