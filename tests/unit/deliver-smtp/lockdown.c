/* What an agent may not do any more, tried from inside. */
#include "deliver-smtp/smtp.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <asm/sockios.h>
#include <sys/pidfd.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t other; /* of the same user */
static int other_fd;

static long
by_kill(void)
{
	return kill(other, SIGTERM);
}

static long
by_kill_all(void)
{
	return kill(-1, 0);
}

static long
by_kill_nothing(void)
{
	return kill(other, 0);
}

static long
by_tkill(void)
{
	return syscall(SYS_tkill, other, SIGTERM);
}

static long
by_tgkill(void)
{
	return syscall(SYS_tgkill, other, other, SIGTERM);
}

static long
by_queue(void)
{
	return sigqueue(other, SIGTERM, (union sigval){ 0 });
}

static long
by_thread_queue(void)
{
	siginfo_t si = { .si_signo = SIGTERM, .si_code = SI_QUEUE };

	return syscall(SYS_rt_tgsigqueueinfo, other, other, SIGTERM, &si);
}

static long
by_pidfd(void)
{
	return pidfd_send_signal(other_fd, SIGTERM, NULL, 0);
}

static long
by_new_pidfd(void)
{
	return pidfd_open(other, 0);
}

static long
by_its_descriptors(void)
{
	return pidfd_getfd(other_fd, 0, 0);
}

static long
by_ptrace(void)
{
	return ptrace(PTRACE_SEIZE, other, NULL, NULL);
}

static long
by_memory(void)
{
	struct iovec here = { &other, sizeof(other) };

	return process_vm_readv(other, &here, 1, &here, 1, 0);
}

static long
by_owner_of_a_descriptor(void)
{
	return fcntl(0, F_SETOWN, other);
}

static long
by_owner_ex(void)
{
	struct f_owner_ex to = { F_OWNER_PID, other };

	return fcntl(0, F_SETOWN_EX, &to);
}

static long
by_signal_of_a_descriptor(void)
{
	return fcntl(0, F_SETSIG, SIGKILL);
}

static long
by_ioctl(void)
{
	return ioctl(other_fd, FIOSETOWN, &other);
}

static long
by_limit(void)
{
	const struct rlimit none = { 0, 0 };

	return prlimit(other, RLIMIT_CPU, &none, NULL);
}

static long
by_priority(void)
{
	return setpriority(PRIO_PROCESS, (id_t)other, 19);
}

static long
by_policy(void)
{
	const struct sched_param p = { 0 };

	return sched_setscheduler(other, SCHED_IDLE, &p);
}

static long
by_processors(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	return sched_setaffinity(other, sizeof(set), &set);
}

static long
by_another_program(void)
{
	char *argv[] = { (char[]){ "/bin/true" }, NULL };

	return execv(argv[0], argv);
}

static const struct {
	const char *name;
	long (*try)(void);
} rows[] = {
	{ "kill", by_kill },
	{ "kill all", by_kill_all },
	{ "kill 0", by_kill_nothing },
	{ "tkill", by_tkill },
	{ "tgkill", by_tgkill },
	{ "sigqueue", by_queue },
	{ "rt_tgsigqueueinfo", by_thread_queue },
	{ "pidfd_send_signal", by_pidfd },
	{ "pidfd_open", by_new_pidfd },
	{ "pidfd_getfd", by_its_descriptors },
	{ "ptrace", by_ptrace },
	{ "process_vm_readv", by_memory },
	{ "F_SETOWN", by_owner_of_a_descriptor },
	{ "F_SETOWN_EX", by_owner_ex },
	{ "F_SETSIG", by_signal_of_a_descriptor },
	{ "FIOSETOWN", by_ioctl },
	{ "prlimit", by_limit },
	{ "setpriority", by_priority },
	{ "sched_setscheduler", by_policy },
	{ "sched_setaffinity", by_processors },
	{ "execve", by_another_program },
};

static void
setup(void)
{
	other = fork();
	cr_assert_geq(other, 0);
	if (other == 0)
		for (;;)
			pause();
	other_fd = pidfd_open(other, 0);
	cr_assert_geq(other_fd, 0);
}

static void
teardown(void)
{
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	close(other_fd);
}

TestSuite(lockdown, .init = setup, .fini = teardown);

/* The status of a process that locked itself down and then did this. */
static int
after_lockdown(int (*act)(void))
{
	int status = 0;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0)
		_exit(lockdown_install() < 0 ? 100 : act());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
}

/* The place of the first row that is not refused, behind the last if all are.
 */
static int
try_all(void)
{
	int i;

	for (i = 0; i < (int)ARRAY_LEN(rows); i++) {
		errno = 0;
		if (rows[i].try() != -1 || errno != EPERM)
			break;
	}
	return i;
}

/* mutation: deliver-smtp/lockdown.c, any call or argument of rows[] left out,
 * or add_own() without one of its rules. */
Test(lockdown, X8_attack_6_an_agent_reaches_no_other_process)
{
	int status = after_lockdown(try_all);

	cr_assert(WIFEXITED(status));
	cr_assert_neq(WEXITSTATUS(status), 100, "there is no filter");
	cr_expect_eq(WEXITSTATUS(status), (int)ARRAY_LEN(rows), "%s",
	    rows[WEXITSTATUS(status)].name);
	cr_expect_eq(waitpid(other, NULL, WNOHANG), 0, "the other one lives");
}

static int
end_itself(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
	    setrlimit(RLIMIT_NOFILE, &limit) < 0 || fcntl(0, F_GETFD) < 0 ||
	    fcntl(0, F_GETOWN) < 0)
		return 1;
	abort();
}

/* mutation: deliver-smtp/lockdown.c, tgkill among the calls that are refused
 * always: abort() ends by another signal. */
Test(lockdown, P15_it_may_still_abort)
{
	int status = after_lockdown(end_itself);

	cr_assert(WIFSIGNALED(status));
	cr_expect_eq(WTERMSIG(status), SIGABRT);
}
