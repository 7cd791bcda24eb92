#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/daemon.h"

/* Each case spoils a process of its own, makes it sane, and looks at it. */
static int
in_process(void (*spoil)(void), bool (*is_sane)(void))
{
	int status;
	pid_t pid = fork();

	cr_assert(pid >= 0);
	if (pid == 0) {
		spoil();
		daemon_sane_process();
		_exit(is_sane() ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static void
close_std(void)
{
	close(0);
	close(1);
	close(2);
}

static bool
std_is_null(void)
{
	struct stat null, st;
	int fd, next;

	if (stat("/dev/null", &null) < 0)
		return false;
	for (fd = 0; fd <= 2; fd++)
		if (fstat(fd, &st) < 0 || st.st_rdev != null.st_rdev)
			return false;
	next = open("/dev/null", O_RDONLY);
	return next > 2;
}

Test(daemon_process, P18_closed_descriptors_are_dev_null)
{
	cr_expect_eq(in_process(close_std, std_is_null), 0);
}

static void
close_out(void)
{
	close(1);
}

static bool
out_is_open(void)
{
	return fcntl(1, F_GETFD) >= 0 && open("/dev/null", O_RDONLY) > 2;
}

Test(daemon_process, P18_only_what_was_closed_is_replaced)
{
	cr_expect_eq(in_process(close_out, out_is_open), 0);
}

static const int odd_signals[] = { SIGCHLD, SIGTERM, SIGHUP, SIGALRM, SIGINT,
	SIGUSR1, SIGQUIT };

static void
spoil_signals(void)
{
	sigset_t all;
	size_t i;

	for (i = 0; i < ARRAY_LEN(odd_signals); i++)
		signal(odd_signals[i], SIG_IGN);
	signal(SIGPIPE, SIG_DFL);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
}

static bool
signals_are_sane(void)
{
	struct sigaction sa;
	sigset_t mask;
	size_t i;
	int sig;

	for (i = 0; i < ARRAY_LEN(odd_signals); i++)
		if (sigaction(odd_signals[i], NULL, &sa) < 0 ||
		    sa.sa_handler != SIG_DFL)
			return false;
	if (sigaction(SIGPIPE, NULL, &sa) < 0 || sa.sa_handler != SIG_IGN ||
	    sigaction(SIGXFSZ, NULL, &sa) < 0 || sa.sa_handler != SIG_IGN)
		return false;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (sig = 1; sig < 32; sig++)
		if (sigismember(&mask, sig) == 1)
			return false;
	return true;
}

Test(daemon_process, P19_ignored_and_blocked_signals)
{
	cr_expect_eq(in_process(spoil_signals, signals_are_sane), 0);
}

/* A command has no use for the signals that are ignored, but for that of its
 * children; those that stop it stay as its caller wants (nohup). */
Test(daemon_process, P19_ignored_and_blocked_signals_of_a_command)
{
	int status;
	pid_t pid = fork();

	cr_assert(pid >= 0);
	if (pid == 0) {
		struct sigaction child, hup;
		sigset_t mask;

		close_std();
		spoil_signals();
		signal(SIGCHLD, SIG_IGN);
		signal(SIGHUP, SIG_IGN);
		daemon_sane_command();
		sigaction(SIGCHLD, NULL, &child);
		sigaction(SIGHUP, NULL, &hup);
		sigprocmask(SIG_BLOCK, NULL, &mask);
		_exit(child.sa_handler != SIG_DFL ||
		    hup.sa_handler != SIG_IGN ||
		    sigismember(&mask, SIGTERM) == 1 || !std_is_null());
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
}

static void
spoil_limits(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = 0;
	setrlimit(RLIMIT_FSIZE, &limit);
	umask(0);
}

static bool
limits_are_sane(void)
{
	char name[] = "/tmp/daemon-process-XXXXXX";
	bool written;
	int fd;

	if (umask(0) != 077)
		return false;
	fd = mkstemp(name);
	written = fd >= 0 && write(fd, "x", 1) == 1;
	unlink(name);
	return written;
}

Test(daemon_process, P19_file_size_limit_and_umask)
{
	cr_expect_eq(in_process(spoil_limits, limits_are_sane), 0);
}

Test(daemon_process, exit_codes)
{
	static const struct {
		int error, want;
	} rows[] = {
		{ -EINVAL, EXIT_PERMANENT },
		{ -ENOENT, EXIT_PERMANENT },
		{ -EPERM, EXIT_PERMANENT },
		{ -EBADMSG, EXIT_PERMANENT },
		{ -ENOMEM, EXIT_TEMPORARY },
		{ -EMFILE, EXIT_TEMPORARY },
		{ -ENOSPC, EXIT_TEMPORARY },
		{ -EBUSY, EXIT_TEMPORARY },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(daemon_exit_code(rows[i].error), rows[i].want,
		    "%s", strerror(-rows[i].error));
}
