/* Input that breaks, and signals while it comes. */
#include "scratch.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

Test(input, broken_input_leaves_nothing)
{
	struct scratch s;
	struct run run = { .argv = ARGS("sendmail", "a@b") };

	scratch_new(&s, 1, NULL);
	run.input_fd = open("/", O_RDONLY | O_CLOEXEC);
	scratch_run(&s, &run);
	cr_expect_eq(WEXITSTATUS(run.status), 74, "%s", run.err);
	cr_expect_eq(scratch_stored(&s, NULL), 0);
	close(run.input_fd);
	scratch_done(&s);
}

/* All of the pipe was read: the process waits for more. */
static void
wait_until_read(int fd)
{
	int left = 1;

	while (left > 0) {
		cr_assert_eq(ioctl(fd, FIONREAD, &left), 0);
		(void)poll(NULL, 0, 1);
	}
}

Test(input, a_signal_leaves_nothing)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	static const char part[] = "Subject: x\n\nthe first part\n";
	struct scratch s;
	size_t i;

	scratch_new(&s, 1, NULL);
	for (i = 0; i < ARRAY_LEN(signals); i++) {
		struct run run = { .argv = ARGS("sendmail", "a@b") };
		int fds[2];
		pid_t pid;

		cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
		run.input_fd = fds[0];
		pid = scratch_start(&run);
		cr_assert_eq(
		    write(fds[1], part, sizeof(part)), (ssize_t)sizeof(part));
		wait_until_read(fds[0]);
		kill(pid, signals[i]);
		scratch_wait(pid, &run);
		cr_expect(WIFEXITED(run.status), "%d", run.status);
		cr_expect_eq(WEXITSTATUS(run.status), 75, "%s", run.err);
		cr_expect_eq(scratch_stored(&s, NULL), 0);
		close(fds[0]);
		close(fds[1]);
	}
	scratch_done(&s);
}

/* nohup: a signal that was ignored stays ignored. */
Test(input, an_ignored_signal_does_not_stop)
{
	static const char part[] = "Subject: x\n\nall of it\n";
	struct run run = { .argv = ARGS("sendmail", "a@b") };
	struct scratch s;
	int fds[2];
	pid_t pid;

	scratch_new(&s, 1, NULL);
	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	run.input_fd = fds[0];
	run.close_fd = fds[1];
	signal(SIGHUP, SIG_IGN);
	pid = scratch_start(&run);
	cr_assert_eq(write(fds[1], part, sizeof(part)), (ssize_t)sizeof(part));
	wait_until_read(fds[0]);
	kill(pid, SIGHUP);
	close(fds[1]);
	scratch_wait(pid, &run);
	cr_expect_eq(run.status, 0, "%s", run.err);
	cr_expect_eq(scratch_stored(&s, NULL), 1);
	close(fds[0]);
	scratch_done(&s);
}
