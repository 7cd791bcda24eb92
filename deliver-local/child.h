/* deliver-local/child.h - one delivery, in a process of its own: become the
 * recipient, and only then look at anything.
 *
 * Privileges are dropped before the mailbox or even the header is looked at;
 * after that the kernel refuses what the user may not do (X10).
 */
#ifndef DELIVER_LOCAL_CHILD_H
#define DELIVER_LOCAL_CHILD_H

#include "agent/agent.h"
#include "route/programs.h"
#include "deliver-local/verdict.h"

#include <sys/types.h>

/* A child that gets on tells so once in this part of maildir_time_limit. */
#define PULSE_PARTS 60

/* Everything that the child needs; it has a copy of the parent's memory. */
struct child_plan {
	const struct agent_delivery *delivery;
	const char *recipient;
	pid_t parent;         /* whose end is the child's too; 0: none */
	bool private;         /* not root: everything is this user */
	uid_t system_uids[3]; /* never delivered as; ignored when private */
	const char *maildir_path, *maildir_user;
	const char *host;
	uint32_t hopcount_limit;
	usec_t command_time_limit, maildir_time_limit;
	const struct programs *programs;
	usec_t started_at; /* monotonic; the limits count from it */
	uint64_t number;   /* of the delivery, counted by the parent */
};

/* The child's life: never returns. All signals are blocked on entry; the
 * verdict is written to result_fd. */
_Noreturn void child_main(const struct child_plan *plan, int result_fd);
typedef void child_fn(const struct child_plan *plan, int result_fd);
/* What it does after it has set itself up; apart for tests. */
void child_deliver(const struct child_plan *plan, struct verdict *ret_verdict);

#endif
