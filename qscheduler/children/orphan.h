/* qscheduler/children/orphan.h - processes of a supervisor that was killed. An
 * agent of one, stopped for example, may still have connections: what its group
 * holds in the table of destinations stays taken, and nothing of the next group
 * of its queue starts, until the last of it is gone (docs/SUPERVISION.md).
 *
 * The roster (roster.h) says which there are: processes are written down before
 * they hear of each other, and it is kept from one supervisor to the next.
 *
 * Nothing here fails: without the roster there are no orphans, which is
 * logged. A process whose start time is not the one in the row is another one,
 * and is left alone. */
#ifndef QSCHEDULER_CHILDREN_ORPHAN_H
#define QSCHEDULER_CHILDREN_ORPHAN_H

#include "qscheduler/children/spawn.h"

#include <sys/queue.h>

struct child;
struct orphan;
struct super;

struct orphans {
	int fd; /* of the roster, -1: none */
	usec_t
	    made_at; /* log_due(): when it was tried to make it; 0: it is there
		      */
	LIST_HEAD(orphan_list, orphan) list;
};

/* When this is the only supervisor of the instance, before anything of it is
 * started: find them. They end by themselves, since their channel is closed;
 * what is stopped is told to go on, what does not end is killed. */
void orphans_open(struct super *s);
/* The roster is removed when no process is left that is in it. */
void orphans_close(struct super *s, bool anybody_left);
/* A process has just been started: write it down. */
void orphans_record(const struct child *c);
/* Every SUPER_TICK; a roster that was damaged is made again. */
void orphans_tick(struct super *s, usec_t now);
bool orphans_any(const struct super *s);
/* One that may still begin or end deliveries; not one that hangs in the kernel
 * though it was killed. */
bool orphans_any_to_count(const struct super *s);
/* Of that queue; and of that group of it. */
bool orphans_of(const struct super *s, uint32_t queue);
bool
orphans_of_group(const struct super *s, uint32_t queue, uint32_t generation);

#endif
