/* deliver-local/local.h - the agent for maildirs, programs, discard and error:
 * an event loop that forks a child for each delivery (child.h).
 *
 *	local.c       the daemon: deliveries by kind, reload, stop
 *	task.c        the recipients of one delivery, one after the other
 *	watch.c       the process of one of them, until it has answered (task.h)
 *	resident.c    processes that wait for the next delivery of their account
 *	stray.c       processes of deliveries that do not end
 *	privileges.c  the rights of root that the agent keeps
 *
 * How many deliveries run at once is for queue-send to say. No result is waited
 * for anywhere but in the loop.
 */
#ifndef DELIVER_LOCAL_LOCAL_H
#define DELIVER_LOCAL_LOCAL_H

#include "config/conf.h"
#include "daemon/agent.h"
#include "deliver-local/child.h"

#include <sys/queue.h>
#include <sys/types.h>

struct event;
struct event_base;
struct task;

/* ---- stray.c ----
 *
 * A process that waits within the kernel, as for a file system of the
 * recipient's own that never answers, cannot be killed until that is over. The
 * delivery is answered for, and its slot given back, without it: SIGKILL is
 * pending, so nothing of the program runs any more, but the call that it waits
 * in may still have its effect. A stray is reaped when it ends.
 *
 * Strays are counted under the name that the scheduler has for the site.
 * One name may have STRAYS_EACH, and one only while there are STRAYS_MANY;
 * beyond that nothing is started for it, and all others go on. */

#define STRAYS_EACH 4
#define STRAYS_MANY 100

struct stray;

struct strays {
	LIST_HEAD(stray_list, stray) list;
	uint32_t count;
	struct event *timer; /* checks whether one has ended */
};

/* -ENOMEM. */
int strays_init(struct strays *s, struct event_base *base);
/* Strays that are left stay with init. */
void strays_done(struct strays *s);
/* This child is not waited for any more. Without memory it is not counted, and
 * stays a zombie. */
void strays_add(struct strays *s, const char *name, pid_t pid, usec_t now);
/* The child has ended, and a process that it started has not: one that opens an
 * include file. Its end of *fd, the pipe of the verdict, ends with it; *fd is
 * -1 then, and stays the caller's without memory. */
void strays_add_behind(struct strays *s, const char *name, int *fd, usec_t now);
/* May a process be started for this name? */
bool strays_allow(const struct strays *s, const char *name);

/* From SIGKILL to the end: a process that takes longer waits within the kernel,
 * and may do so for ever. */
#define KILL_GRACE      (5 * USEC_PER_SEC)

/* ---- resident.c ----
 *
 * A process that has delivered to a maildir may stay for a short time, and gets
 * the next message of its account (serve.c). The process looked up the account
 * when it began, so that a change of home or groups is in force for the next
 * process: RESIDENT_HOLDS later, or after a reload. A process that is idle is
 * no delivery: no slot is taken, and nothing waits for it. Without a table
 * (NULL) none stays. */

#define RESIDENTS_MAX   64                  /* that are idle */
#define RESIDENT_SERVES 1000                /* deliveries of one process */
#define RESIDENT_HOLDS  (10 * USEC_PER_SEC) /* from its look-up on */

struct resident;
struct residents;

/* kill_process: kill(), or the seam for tests. -ENOMEM. */
int residents_new(struct event_base *base, struct strays *strays,
    int (*kill_process)(pid_t, int), struct residents **ret_residents);
/* Ends all that are idle; those that do not end stay with init. */
void residents_free(struct residents **residents);
/* After a reload, and at a stop: those that are idle end, and those that run
 * end when they have answered. idle_time: from now on; 0: none stays. */
void residents_renew(struct residents *s, usec_t idle_time);
/* To make room. */
void residents_end_idle(struct residents *s);

/* For a process that is about to begin with this plan: NULL when it may not
 * stay. The caller's until one of the functions below has it. */
struct resident *
resident_new(struct residents *s, const struct child_plan *plan);
void resident_free(struct resident **resident); /* NULL is none */
/* The process has answered and waits: r, pid and fd are the table's. */
void resident_keep(struct residents *s, struct resident *r, pid_t pid, int fd);
/* The process is not wanted any more: the same. */
void resident_end(struct residents *s, struct resident *r, pid_t pid, int fd);
/* One that waits and fits; NULL: none. r, pid and fd are the caller's. */
struct resident *resident_take(struct residents *s,
    const struct child_plan *plan, pid_t *ret_pid, int *ret_fd);
/* The process has waited before, and was taken. */
bool resident_serves(const struct resident *r);

/* ---- privileges.c ----
 *
 *	CAP_SETUID, CAP_SETGID	to become the recipient
 *	CAP_KILL		to end processes of the recipient
 *
 * The bounding set stays as it is, since programs that mail is piped to may be
 * set-user-id; a process that becomes another user has no capability at all. */

/* Keep these three, as far as they are there, for good. *ret_missing names the
 * first that is not there, "" if none. -errno. */
int privileges_drop(const char **ret_missing);

/* ---- local.c, task.c and watch.c ---- */

struct local {
	struct daemon_agent link; /* first */
	struct event_base *base;
	const struct conf *conf;
	bool private;
	struct daemon_users users;
	char host[256];
	struct programs *programs;
	struct route_table *routes; /* with the aliases */
	uint32_t queue;
	LIST_HEAD(task_list, task) tasks;
	struct strays strays;
	struct residents *residents; /* NULL: no process stays */
	child_fn *child;             /* child_main(); the seam for tests */
	int (*kill)(pid_t, int);     /* kill(); the same */
	uint64_t deliveries;         /* begun */
	bool ending;                 /* nothing new begins */
	struct event *ask; /* programs to end, when a stop has gone on */
	void (*idle)(struct local *l); /* the last task has ended */
};

int local_main(int argc, char **argv);

/* The delivery is the task's until it has been answered. */
void task_begin(struct local *l, struct agent_delivery *delivery);
/* Give up tasks that wait for a process to be had. */
void task_end_waiting(struct local *l);
/* Begin no recipient of this delivery any more. */
void task_cancel(
    void *local, struct agent_delivery *delivery, enum agent_stage stage);
/* SIGTERM to tasks that run a program, for a stop in good order; of a timer. */
void task_ask_all(int fd, short what, void *local);
/* SIGKILL to all, and forget them. */
void task_end_all(void *local);

#endif
