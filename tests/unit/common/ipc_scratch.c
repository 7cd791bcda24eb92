#include "ipc_scratch.h"

#include "ipc/names.h"

#include <criterion/criterion.h>
#include <grp.h>
#include <mqueue.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Seldom given to anybody, and mapped in small user namespaces too. */
#define FIRST_UID 30000
#define UIDS      30000

const char *
ipc_scratch(void)
{
	static char name[32];

	if (name[0] == '\0') /* the same in a child */
		snprintf(name, sizeof(name), "t%ld", (long)getpid());
	return name;
}

static void
remove_both(const char *name)
{
	shm_unlink(name);
	mq_unlink(name);
}

void
ipc_scratch_done(void)
{
	char name[IPC_NAME_MAX];
	uint32_t queue;

	ipc_name_scheduler(ipc_scratch(), name);
	remove_both(name);
	for (queue = 0; queue < 4; queue++) {
		ipc_name_queue(ipc_scratch(), queue, name);
		remove_both(name);
	}
}

uid_t
ipc_nobody(void)
{
	static uid_t uid; /* the same in a child */

	if (uid == 0)
		uid = geteuid() == 0 ? FIRST_UID + (uid_t)getpid() % UIDS
				     : geteuid();
	return uid;
}

int
ipc_as_nobody(int (*body)(void *arg), void *arg)
{
	const uid_t uid = ipc_nobody();
	int status;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		if (geteuid() == 0 &&
		    (setgroups(0, NULL) < 0 || setgid(uid) < 0 ||
			setuid(uid) < 0))
			_exit(126);
		_exit(body(arg));
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}
