/* deliver-local/local.h - the agent for maildirs, programs, discard and error:
 * an event loop that forks a child for each delivery (child.h).
 *
 * local.c is the daemon: link, deliveries by kind, reload, stop. task.c runs
 * the recipients of one delivery, one after the other: how many run at once is
 * for queue-send to say. No result is waited for anywhere but in the loop.
 */
#ifndef DELIVER_LOCAL_LOCAL_H
#define DELIVER_LOCAL_LOCAL_H

#include "daemon/agent.h"
#include "config/conf.h"
#include "deliver-local/child.h"
#include "deliver-local/stray.h"
#include "route/programs.h"

#include <sys/queue.h>
#include <sys/types.h>

struct event;
struct event_base;
struct task;

struct local {
	struct daemon_agent link;
	struct event_base *base;
	const struct conf *conf;
	bool private;
	uid_t system_uids[3];
	char host[256];
	struct programs *programs;
	LIST_HEAD(task_list, task) tasks;
	struct strays strays;
	child_fn *child;         /* child_main(); the seam for tests */
	int (*kill)(pid_t, int); /* kill(); the same */
	uint64_t deliveries;     /* begun */
	bool ending;             /* nothing new begins */
	struct event *ask;       /* programs to end, when a stop has gone on */
	void (*idle)(struct local *l); /* the last task has ended */
};

int local_main(int argc, char **argv);

/* The delivery is the task's until it has been answered. */
void task_begin(struct local *l, struct agent_delivery *delivery);
/* Give up those that wait for a process to be had. */
void task_end_waiting(struct local *l);
/* SIGTERM to those that run a program, for a stop in good order. */
void task_ask_all(struct local *l);
/* SIGKILL to all, and forget them. */
void task_end_all(struct local *l);

#endif
