#include "qscheduler/children/children.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/daemon.h"

static char dir[32];

static void
set_up(void)
{
	snprintf(dir, sizeof(dir), "/tmp/spawn-XXXXXX");
	cr_assert(mkdtemp(dir) != NULL);
}

static void
tear_down(void)
{
	cr_assert_eq(rmdir(dir), 0);
}

TestSuite(spawn, .init = set_up, .fini = tear_down, .timeout = 60);

static int
start(const char *path, const char *script, int channel, pid_t (*forks)(void),
    struct process *ret, const char **ret_step)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" },
		(char *)(uintptr_t)script, NULL };
	char *envp[] = { (char[]){ "ONLY=this" }, NULL };
	const struct spawn how = { path, argv, envp, channel, -1, 0, 0, forks,
		NULL, DAEMON_AS_ROOT, true };

	return process_spawn(&how, ret, ret_step);
}

static int
collect(struct process *p)
{
	siginfo_t info;

	cr_assert_eq(waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOWAIT), 0);
	return process_collect(p);
}

/* A shell script's status: what it finds to be true. */
static int
run(const char *script)
{
	struct process p = PROCESS_NONE;
	const char *step;
	int ends[2], status;

	cr_assert_eq(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	cr_assert_eq(start("/bin/sh", script, ends[1], fork, &p, &step), 0);
	cr_expect(p.pidfd >= 0);
	status = collect(&p);
	cr_expect_eq(p.pid, 0);
	cr_expect_eq(p.pidfd, -1);
	close(ends[0]);
	close(ends[1]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(spawn, a_child_gets_what_it_is_to_get_and_no_more)
{
	static const struct {
		const char *name;
		const char *script;
	} rows[] = {
		{ "channel", "[ -S /proc/self/fd/3 ]" },
		{ "stdin", "[ /proc/self/fd/0 -ef /dev/null ]" },
		{ "nothing else",
		    "for i in 4 5 6 7 8 9 10 11 12 13 77; do [ ! -e "
		    "/proc/$$/fd/$i ] || exit 1; done" },
		{ "environment",
		    "[ \"$ONLY\" = this ] && [ -z "
		    "\"$HOME$USER$SECRET\" ]" },
		{ "class of scheduling: SCHED_BATCH",
		    "read -r line </proc/$$/stat && set -- $line && "
		    "[ ${41} = 3 ]" },
		{ "own group",
		    "read -r a b c d g rest </proc/$$/stat && [ "
		    "\"$g\" = $$ ]" },
		/* But for 32 and 33, the C library's own, which make(1)
		 * leaves ignored and nobody can set back. */
		{ "no signal is blocked or ignored",
		    "grep -q 'SigBlk:.0*$' /proc/self/status && grep "
		    "-q 'SigIgn:.0*[01][08]0000000$' /proc/self/status" },
	};
	const int stray = fcntl(2, F_DUPFD, 77); /* not close-on-exec */
	size_t i;

	setenv("SECRET", "x", 1);
	signal(SIGHUP, SIG_IGN);
	for (i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(run(rows[i].script), 0, "%s", rows[i].name);
	close(stray);
}

Test(spawn, a_child_is_started_as_the_user_of_its_role)
{
	const struct daemon_users users = { .qmails = 9, .qmail = 8 };
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" },
		(char[]){ "grep -q '^Uid:.9.9.9.9$' /proc/self/status && "
			  "grep -q '^Gid:.8.8.8.8$' /proc/self/status && "
			  "grep -q '^Groups:[[:space:]]*$' /proc/self/status" },
		NULL };
	char *envp[] = { NULL };
	struct spawn how = { "/bin/sh", argv, envp, -1, -1, 0, 0, fork, &users,
		DAEMON_AS_QMAILS, false };
	struct process p = PROCESS_NONE;
	const char *step;

	if (geteuid() != 0)
		cr_skip_test("only root may become others");
	how.channel = open("/dev/null", O_RDWR | O_CLOEXEC);
	cr_assert_eq(process_spawn(&how, &p, &step), 0, "%s", step);
	cr_expect_eq(collect(&p), 0);
	close(how.channel);
}

/* mutation: child_lock() that leaves how->lock to the exec */
Test(spawn, I21_a_child_is_locked_until_its_end)
{
	char *argv[] = { (char[]){ "sleep" }, (char[]){ "1000" }, NULL };
	char *envp[] = { NULL };
	struct spawn how = { "/bin/sleep", argv, envp, -1, -1,
		child_lock_at(7, 2), 0, fork, NULL, DAEMON_AS_ROOT, false };
	struct process p = PROCESS_NONE;
	int base = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ends[2];
	const char *step;
	pid_t holder = 0;

	cr_assert_eq(child_locks_open(base, &how.lock), 0);
	cr_expect_gt(how.lock, DAEMON_LOCK_FD);
	cr_assert_eq(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	how.channel = ends[1];
	cr_expect_eq(child_locks_any(how.lock, 7), 0);
	cr_assert_eq(process_spawn(&how, &p, &step), 0, "%s", step);
	cr_expect_eq(child_lock_holder(how.lock, how.lock_at, &holder), 1);
	cr_expect_eq(holder, p.pid);
	cr_expect_eq(child_locks_any(how.lock, 7), 1);
	cr_expect_eq(child_locks_any(how.lock, 6), 0);
	cr_expect_eq(child_locks_any(how.lock, 8), 0);
	cr_assert_eq(process_signal(&p, SIGKILL), 0);
	(void)collect(&p);
	cr_expect_eq(child_lock_holder(how.lock, how.lock_at, &holder), 0);
	close(how.lock);
	cr_expect_eq(unlinkat(base, "children", 0), 0);
	close(base);
	close(ends[0]);
	close(ends[1]);
}

/* The channel's own number is the one that it is to have. */
Test(spawn, a_channel_that_is_descriptor_3)
{
	struct process p = PROCESS_NONE;
	const char *step;
	int ends[2], saved = fcntl(3, F_DUPFD_CLOEXEC, 100);

	cr_assert_eq(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	if (ends[1] != 3)
		cr_assert_eq(dup3(ends[1], 3, O_CLOEXEC), 3);
	cr_assert_eq(
	    start("/bin/sh", "[ -S /proc/self/fd/3 ]", 3, fork, &p, &step), 0);
	cr_expect_eq(collect(&p), 0);
	if (saved >= 0)
		dup2(saved, 3);
}

static const char *
make_file(const char *name, const char *text, mode_t mode)
{
	static char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	cr_assert(fd >= 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	cr_assert_eq(fchmod(fd, mode), 0);
	close(fd);
	return path;
}

Test(spawn, P5_exec_errors_are_known)
{
	static const struct {
		const char *name, *text;
		mode_t mode;
		int want;
	} rows[] = {
		{ "not-executable", "#!/bin/sh\n", 0600, -EACCES },
		{ "no-program", "\001\002\003", 0700, -ENOEXEC },
		{ "no-interpreter", "#!/no/such/thing\n", 0700, -ENOENT },
	};
	struct process p = PROCESS_NONE;
	const char *step;
	size_t i;

	cr_expect_eq(
	    start("/no/such/program", NULL, 0, fork, &p, &step), -ENOENT);
	cr_expect_str_eq(step, "exec");
	cr_expect_eq(start(dir, NULL, 0, fork, &p, &step), -EACCES);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const char *path =
		    make_file(rows[i].name, rows[i].text, rows[i].mode);

		cr_expect_eq(start(path, NULL, 0, fork, &p, &step),
		    rows[i].want, "%s", rows[i].name);
		cr_expect_str_eq(step, "exec");
		unlink(path);
	}
	cr_expect_eq(p.pid, 0);
	/* no zombie is left of them */
	cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1);
	cr_expect_eq(errno, ECHILD);
}

/* Open for writing by somebody: an upgrade that is under way. */
Test(spawn, P5_text_busy)
{
	struct process p = PROCESS_NONE;
	const char *step, *path = make_file("busy", "#!/bin/sh\n", 0700);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int r = start(path, NULL, 0, fork, &p, &step);

	if (r == 0) /* newer kernels let it pass */
		(void)collect(&p);
	else
		cr_expect_eq(r, -ETXTBSY);
	close(fd);
	unlink(path);
}

static pid_t
no_fork(void)
{
	errno = EAGAIN;
	return -1;
}

Test(spawn, P4_fork_eagain)
{
	struct process p = PROCESS_NONE;
	const char *step;

	cr_expect_eq(start("/bin/true", NULL, 0, no_fork, &p, &step), -EAGAIN);
	cr_expect_str_eq(step, "fork");
	cr_expect_eq(p.pid, 0);
}

Test(spawn, P12_no_descriptors)
{
	struct process p = PROCESS_NONE;
	const char *step;
	int fds[4096], n = 0, before;

	before = open("/dev/null", O_RDONLY);
	while (n < 4096 && (fds[n] = open("/dev/null", O_RDONLY)) >= 0)
		n++;
	if (n < 4096)
		cr_expect_eq(
		    start("/bin/true", NULL, 0, fork, &p, &step), -EMFILE);
	while (n > 0)
		close(fds[--n]);
	close(before);
}

Test(spawn, P16_signals_go_to_the_process_and_its_group_ends_with_it)
{
	struct process p = PROCESS_NONE;
	const char *step;
	int ends[2], status;
	char c;

	/* the grandchild holds the channel open, as long as it lives */
	cr_assert_eq(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	cr_assert_eq(start("/bin/sh", "sleep 1000 & echo >&3; wait", ends[1],
			 fork, &p, &step),
	    0);
	close(ends[1]);
	cr_assert_eq(read(ends[0], &c, 1), 1);
	cr_expect_eq(process_signal(&p, SIGKILL), 0);
	status = collect(&p);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	cr_expect_eq(
	    poll(&(struct pollfd){ ends[0], POLLIN, 0 }, 1, 120000), 1);
	cr_expect_eq(recv(ends[0], &c, 1, MSG_DONTWAIT), 0);
	cr_expect_eq(process_signal(&p, SIGTERM), -ESRCH);
	close(ends[0]);
}
