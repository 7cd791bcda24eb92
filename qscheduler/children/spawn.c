#include "qscheduler/children/children.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

#define EXEC_WAIT_MSEC 2000

/* Without a lock the next supervisor does not know of this process, and the
 * mail still goes. */
static void
child_lock(const struct spawn *how)
{
	if (dup2(how->lock, DAEMON_LOCK_FD) < 0)
		return;
	/* Closed now: later, at the exec, it would end the lock. */
	(void)close(how->lock);
	(void)child_lock_take(DAEMON_LOCK_FD, how->lock_at);
}

static int
child_fds(const struct spawn *how, int null)
{
	const int channel = how->channel;
	unsigned next = DAEMON_CHANNEL_FD + 1;

	if (dup2(null, STDIN_FILENO) < 0)
		return -errno;
	if (channel != DAEMON_CHANNEL_FD) {
		if (dup2(channel, DAEMON_CHANNEL_FD) < 0)
			return -errno;
	} else if (fcntl(channel, F_SETFD, 0) < 0) {
		return -errno;
	}
	if (how->lock >= 0) {
		child_lock(how);
		next = DAEMON_LOCK_FD + 1;
	}
	/* Descriptors that others left open are not for children; older kernels
	 * know no such call, and ours are marked one by one. */
	(void)close_range(next, UINT_MAX, CLOSE_RANGE_CLOEXEC);
	return 0;
}

/* The run-time checkers of a test build reserve terabytes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_LIMIT_MEMORY false
#elif defined(__has_feature)
#define CAN_LIMIT_MEMORY \
	(!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define CAN_LIMIT_MEMORY true
#endif

/* The soft limit only: programs that mail is delivered to get the hard one
 * back. */
static void
limit_memory(uint64_t bytes)
{
	struct rlimit limit;

	if (!CAN_LIMIT_MEMORY || bytes == 0 ||
	    getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_max <= bytes)
		return;
	limit.rlim_cur = bytes;
	(void)setrlimit(RLIMIT_AS, &limit);
}

/* A class that the operator has chosen for the supervisor is the child's, too.
 */
static void
run_in_batches(void)
{
	const struct sched_param none = { 0 };

	if (sched_getscheduler(0) == SCHED_OTHER)
		(void)sched_setscheduler(0, SCHED_BATCH, &none);
}

static _Noreturn void
child_exec(const struct spawn *how, int null, int report)
{
	int error;

	(void)setpgid(0, 0);
	error = -child_fds(how, null);
	if (error == 0 && how->users != NULL && how->user != DAEMON_AS_ROOT)
		error = -daemon_become(how->users, how->user);
	if (error == 0) {
		/* All are blocked until here: a handler of the parent would
		 * write into its wake-up socket. */
		signals_reset();
		limit_memory(how->memory);
		if (how->batch)
			run_in_batches();
		execve(how->path, how->argv, how->envp);
		error = errno;
	}
	(void)io_write_all(report, &error, sizeof(error));
	_exit(EXIT_TEMPORARY);
}

/* Both ends above the numbers of channel and lock, so that making those does
 * not hit them. */
static int
open_report(int ret_fds[2])
{
	int fds[2], i;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	for (i = 0; i < 2; i++) {
		ret_fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, DAEMON_LOCK_FD + 1);
		if (ret_fds[i] < 0) {
			int r = -errno;

			if (i == 1)
				io_close(&ret_fds[0]);
			io_close(&fds[0]);
			io_close(&fds[1]);
			return r;
		}
	}
	io_close(&fds[0]);
	io_close(&fds[1]);
	return 0;
}

static pid_t
fork_blocked(const struct spawn *how, int null, int report)
{
	sigset_t all, before;
	pid_t pid;
	int error;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = how->fork();
	error = errno;
	if (pid == 0)
		child_exec(how, null, report);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return pid;
}

/* Nothing comes when exec succeeds. A program on a file system that hangs is
 * taken for started: its end will tell. */
static int
take_report(int report, pid_t pid)
{
	struct pollfd wait = { report, POLLIN, 0 };
	int error = 0, r;

	do
		r = poll(&wait, 1, EXEC_WAIT_MSEC);
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return 0;
	if (io_read_all(report, &error, sizeof(error)) != sizeof(error))
		return 0;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return error > 0 ? -error : -EIO;
}

int
process_spawn(
    const struct spawn *how, struct process *ret_process, const char **ret_step)
{
	int report[2] = { -1, -1 }, null, r;
	pid_t pid;

	*ret_step = "fork";
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0)
		return -errno;
	r = open_report(report);
	if (r < 0)
		goto out;
	pid = fork_blocked(how, null, report[1]);
	r = pid < 0 ? -errno : 0;
	io_close(&report[1]);
	if (r < 0)
		goto out;
	*ret_step = "exec";
	r = take_report(report[0], pid);
	if (r == 0)
		*ret_process = (struct process){ pid, pidfd_open(pid, 0) };
out:
	io_close(&report[0]);
	io_close(&null);
	return r;
}

int
process_signal(const struct process *p, int sig)
{
	int r;

	if (p->pid <= 0)
		return -ESRCH;
	r = p->pidfd >= 0 ? pidfd_send_signal(p->pidfd, sig, NULL, 0)
			  : kill(p->pid, sig);
	return r < 0 ? -errno : 0;
}

int
process_collect(struct process *p)
{
	int status = 0;

	ASSERT(p->pid > 0);
	/* Until it is waited for, its number belongs to nobody else. */
	(void)kill(-p->pid, SIGKILL);
	while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
		;
	io_close(&p->pidfd);
	*p = PROCESS_NONE;
	return status;
}
