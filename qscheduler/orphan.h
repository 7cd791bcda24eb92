/* qscheduler/orphan.h - processes of a supervisor that was killed. An agent of
 * one, stopped for example, may still have connections: what its group holds
 * in the table of destinations stays taken, and nothing of the next group of
 * its queue starts, until the last of it is gone (docs/SUPERVISION.md).
 *
 * Shared memory "/qscheduler.children" has a row for each queue: pids and start
 * times of its processes, written before they hear of each other. It is not
 * mapped, and kept from one supervisor to the next.
 *
 * Nothing here fails: without the segment there are no orphans, which is
 * logged. A process whose start time is not the one in the row is another one,
 * and is left alone. */
#ifndef QSCHEDULER_ORPHAN_H
#define QSCHEDULER_ORPHAN_H

#include "qscheduler/spawn.h"

#include <sys/queue.h>

struct child;
struct orphan;
struct super;

struct orphans {
	int fd; /* of the segment, -1: none */
	LIST_HEAD(orphan_list, orphan) list;
};

/* When this is the only supervisor of the instance, before anything of it is
 * started: find them. They end by themselves, since their channel is closed;
 * what is stopped is told to go on, what does not end is killed. */
void orphans_open(struct super *s);
/* The segment is removed when no process is left that is in it. */
void orphans_close(struct super *s, bool anybody_left);
/* A process has just been started: write it down. */
void orphans_record(const struct child *c);
/* Every SUPER_TICK. */
void orphans_tick(struct super *s, usec_t now);
bool orphans_any(const struct super *s);
/* Of that queue; and of that group of it. */
bool orphans_of(const struct super *s, uint32_t queue);
bool
orphans_of_group(const struct super *s, uint32_t queue, uint32_t generation);

#endif
