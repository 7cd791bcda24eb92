/* deliver-local/task.h - one delivery of the agent: private to task.c, which
 * begins and ends it, and watch.c, which watches the process of the recipient
 * that is being delivered to.
 */
#ifndef DELIVER_LOCAL_TASK_H
#define DELIVER_LOCAL_TASK_H

#include "deliver-local/local.h"

struct task {
	LIST_ENTRY(task) entry;
	struct local *l;
	struct agent_delivery *delivery;
	uint32_t place; /* of the recipient in the delivery */
	pid_t pid;      /* 0: none */
	int fd;         /* of the verdict, then of the process */
	struct event *event;
	unsigned failed_forks;
	usec_t started_at, deadline;
	bool killed; /* the time was over */
	/* No recipient is begun any more, and why; NULL: they are. */
	const char *cancelled;
	struct resident *resident; /* NULL: the process may not stay */
	uint64_t number;           /* of the process' delivery */
	bool alone; /* the recipient needs a process that begins anew */
	size_t got;
	/* One octet more than the longest answer shows one too long. */
	char data[1 + sizeof(uint64_t) + sizeof(struct verdict) + 1];
};

/* ---- watch.c ---- */

/* Watch ->pid, which was begun at ->started_at and answers on fd, which is the
 * task's from here on. -ENOMEM: nothing was done. */
int watch_begin(struct task *t, int fd);
/* Let go of the descriptor; the process is nobody's then. */
void watch_drop(struct task *t);
/* A program serves the recipient that is being delivered to. */
bool watch_is_program(const struct task *t);

/* ---- task.c ---- */

/* The process is over, or stays with its account: what it said. */
void task_answered(struct task *t, const struct verdict *v);
/* The process says that the recipient needs one that begins anew. */
void task_anew(struct task *t);

#endif
