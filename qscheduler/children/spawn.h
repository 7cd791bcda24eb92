/* qscheduler/children/spawn.h - one child process, started and signalled.
 *
 * The child has /dev/null on 0, our 1 and 2, its channel on
 * DAEMON_CHANNEL_FD, nothing else; a process group of its own; default
 * signals. An exec that fails is known here, with its errno, by a pipe that
 * exec closes (P5).
 *
 * Soft: -errno. Never logs. Waiting for the child is the caller's. */
#ifndef QSCHEDULER_CHILDREN_SPAWN_H
#define QSCHEDULER_CHILDREN_SPAWN_H

#include "base/base.h"

#include <sys/types.h>

struct process {
	pid_t pid; /* 0: none */
	int pidfd; /* -1: none; signals go to the pid then */
};
#define PROCESS_NONE ((struct process){ 0, -1 })

struct spawn {
	const char *path;
	char *const *argv;
	char *const *envp;
	int channel;         /* the child's end; stays the caller's */
	uint64_t memory;     /* bytes of address space, 0: no limit (P13) */
	pid_t (*fork)(void); /* the seam: fork() */
};

/* *ret_step names the call that failed: "fork", "exec". */
int process_spawn(const struct spawn *how, struct process *ret_process,
    const char **ret_step);
/* By pidfd, so that a reused pid is never hit (P16). -ESRCH: it has ended. */
int process_signal(const struct process *p, int sig);
/* The process has ended but was not waited for: end what is left in its group
 * (P17), take its status, forget it. */
int process_collect(struct process *p);

#endif
