/* todo-proc/handed.h - the last messages that were handed to queue-send and
 * may still lie in incoming/. Pure.
 *
 * queue-send gives no credit for more than HANDED_MAX messages that it has not
 * moved to active/, so whatever is older than the last HANDED_MAX has been
 * moved: a ring of that size forgets nothing too early. A file is told from a
 * later one of the same inode by its mtime (D22). An entry is good for
 * HANDED_TIME, so that nothing that went wrong elsewhere can hide a message.
 */
#ifndef TODO_PROC_HANDED_H
#define TODO_PROC_HANDED_H

#include "ipc/msg.h"

#define HANDED_MAX  MSG_PREP_WINDOW
#define HANDED_TIME (60 * USEC_PER_SEC)

struct handed {
	struct {
		uint64_t inode;
		usec_t mtime_wall;
		usec_t at;
	} last[HANDED_MAX];
	uint32_t next;
};

void
handed_add(struct handed *h, uint64_t inode, usec_t mtime_wall, usec_t now);
bool handed_has(
    const struct handed *h, uint64_t inode, usec_t mtime_wall, usec_t now);
/* queue-send says that files are there again, or has not got all of them. */
void handed_forget(struct handed *h);

#endif
