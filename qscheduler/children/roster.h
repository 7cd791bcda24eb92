/* qscheduler/children/roster.h - shared memory "/qscheduler.children"
 * (docs/IPC.md): for each queue the generation of its group, pids and start
 * times of its processes, for the next supervisor. It is not mapped.
 *
 * Soft: -errno. Never logs. */
#ifndef QSCHEDULER_CHILDREN_ROSTER_H
#define QSCHEDULER_CHILDREN_ROSTER_H

#include "config/conf.h"

#include <sys/types.h>

#define ROSTER_PLACES 4 /* in a group: enum role */

struct roster_record {
	uint32_t pid; /* 0: none */
	uint32_t spare;
	int64_t start_ticks; /* 0: not known */
};
struct roster_row {
	uint32_t generation; /* of the group */
	uint32_t spare;
	struct roster_record records[ROSTER_PLACES];
};
struct roster {
	uint64_t magic;
	struct roster_row rows[CONF_QUEUE_NUM_MAX + 1]; /* by its number */
};

/* The one that is there, when it is this user's and whole; else another one in
 * its place. -EPERM: the name is somebody else's; -ENOSPC, ... */
int roster_open(const char *name, int *ret_fd);
/* The roster has its name, size and magic. */
bool roster_is_whole(int fd);
/* In the row of the queue; of another generation than the row's, it is the
 * first of its group, and nobody of the one before is there. */
int roster_write(
    int fd, uint32_t queue, uint32_t generation, uint32_t place, pid_t pid);
int roster_read(int fd, struct roster *ret_roster);

#endif
